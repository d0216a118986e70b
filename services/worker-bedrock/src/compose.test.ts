import { createHash, createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { LLMock } from '@copilotkit/aimock';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startFakeProvider, type FakeProvider, type RecordedRequest } from '@signalbox/testkit/fake-provider';
import { answerOf, NO_NEIGHBOURS, startAskedWorker, type AskedWorker } from '@signalbox/worker-kit/testing/asked-worker';
import { exceptionEvent, jsonEvent } from '@signalbox/wires/testing/event-stream';
import { composeWorkerBedrock } from './compose.js';
import { isBedrockWanted, loadWorkerBedrockConfig } from './config.js';

const MODEL = 'us.anthropic.claude-sonnet-4-20250514-v1:0';
const HELLO = { messages: [{ role: 'user', content: 'hello' }] };
const PAIR = { AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY', AWS_REGION: 'eu-central-1' };

const start = (environment: Readonly<Record<string, string>>): Promise<AskedWorker> =>
  startAskedWorker(({ surroundings, options }) => composeWorkerBedrock(loadWorkerBedrockConfig({ ...NO_NEIGHBOURS, ...environment }), surroundings, options));
const fixture = (name: string): Buffer[] =>
  readFileSync(new URL(`../../../libs/wires/src/bedrock-converse/testdata/${name}.jsonl`, import.meta.url), 'utf8').trim().split('\n').map((line) => jsonEvent(...(JSON.parse(line) as [string, unknown])));

/** Signature Version 4, implemented from its description, over the received request. */
function signatureOf({ path, headers, body }: RecordedRequest, signedHeaders: string, scope: string, secret: string): string {
  const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
  const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
  const twiceEncoded = path.split('/').map(encodeURIComponent).join('/');
  const canonical = ['POST', twiceEncoded, '', ...signedHeaders.split(';').map((name) => `${name}:${String(headers[name])}`), '', signedHeaders, sha256(body)].join('\n');
  const toSign = ['AWS4-HMAC-SHA256', String(headers['x-amz-date']), scope, sha256(canonical)].join('\n');
  return hmac(scope.split('/').reduce<string | Buffer>((key, part) => hmac(key, part), `AWS4${secret}`), toSign).toString('hex');
}

describe('against scripted answers', () => {
  let provider: FakeProvider;
  let worker: AskedWorker;
  const at = (environment: Readonly<Record<string, string>>): Promise<AskedWorker> => start({ BEDROCK_BASE_URL: new URL(provider.baseUrl).origin, ...environment });
  beforeAll(async () => {
    provider = await startFakeProvider();
    worker = await at(PAIR);
  });
  afterAll(async () => {
    await worker.stop();
    await provider.stop();
  });

  test('calls the encoded path, and signs what it sends', async () => {
    provider.enqueue({ chunks: fixture('thinking-tools') });
    const events = await worker.ask(HELLO, { providerModelId: MODEL, requestId: 'chatcmpl-bedrock' });
    expect(answerOf(events)).toMatchObject({ content: 'Let me see.', reasoning_content: 'I should look.', finish_reason: 'tool_calls' });
    expect(events.at(-1)?.end).toMatchObject({ source: 'PROVIDER', tokens: { inputUncached: 30, cacheRead: 1_000, cacheWrite: 200, outputText: 49 } });
    const [asked] = provider.requests;
    if (asked === undefined) throw new Error('not asked');
    expect(asked.path).toBe('/model/us.anthropic.claude-sonnet-4-20250514-v1%3A0/converse-stream');
    expect(asked.headers).toMatchObject({ 'content-type': 'application/json', accept: 'application/vnd.amazon.eventstream', 'x-request-id': 'chatcmpl-bedrock/1' });
    const [, id, scope = '', signed = '', signature] = /^AWS4-HMAC-SHA256 Credential=([^/]+)\/([^,]+), SignedHeaders=([^,]+), Signature=(\w+)$/.exec(asked.headers.authorization ?? '') ?? [];
    expect(id).toBe('AKIDEXAMPLE');
    expect(scope).toBe(`${String(asked.headers['x-amz-date']).slice(0, 8)}/eu-central-1/bedrock/aws4_request`);
    expect(signed.split(';')).toEqual(expect.arrayContaining(['host', 'x-amz-date']));
    expect(signature).toBe(signatureOf(asked, signed, scope, PAIR.AWS_SECRET_ACCESS_KEY));
  });

  test('a session’s token is signed, too, and an API key is sent as it is', async () => {
    const [session, bearer] = await Promise.all([at({ ...PAIR, AWS_SESSION_TOKEN: 'session/token==' }), at({ ...PAIR, AWS_BEARER_TOKEN_BEDROCK: 'bedrock-api-key-abc' })]);
    provider.enqueue({ chunks: fixture('text') }, { chunks: fixture('text') });
    await session.ask(HELLO, { providerModelId: MODEL });
    await bearer.ask(HELLO, { providerModelId: MODEL });
    const [bySession, byKey] = provider.requests.slice(-2);
    expect(bySession?.headers).toMatchObject({ 'x-amz-security-token': 'session/token==', authorization: expect.stringContaining('x-amz-security-token') });
    expect(byKey?.headers).toMatchObject({ authorization: 'Bearer bedrock-api-key-abc' });
    expect(byKey?.headers['x-amz-date']).toBeUndefined();
    await Promise.all([session.stop(), bearer.stop()]);
  });

  test('a JSON answer that came through a tool call is returned as content', async () => {
    provider.enqueue({ chunks: fixture('json-tool') });
    const schema = { type: 'object', properties: { c: { type: 'number' } } };
    const events = await worker.ask({ ...HELLO, response_format: { type: 'json_schema', json_schema: { name: 's', schema } } }, { providerModelId: MODEL });
    expect(answerOf(events)).toMatchObject({ content: '{"c": 4}', tool_calls: [], finish_reason: 'stop' });
    expect(JSON.parse(provider.requests.at(-1)?.body ?? '')).toMatchObject({ toolConfig: { toolChoice: { tool: { name: 'signalbox_json_answer' } } } });
  });

  test.each([
    ['throttling inside a 200', { chunks: [jsonEvent('messageStart', { role: 'assistant' }), exceptionEvent('throttlingException', 'wait')] }, { class: 'RATE_LIMITED', retryable: true }],
    ['a page', { chunks: ['<html>'], headers: { 'content-type': 'text/html' } }, { class: 'DISCONNECTED' }],
    ['a model that is not open to the account', { status: 403, headers: { 'x-amzn-errortype': 'AccessDeniedException' }, body: { message: "You don't have access to the model with the specified model ID." } }, { class: 'NOT_FOUND', retryable: true }],
    ['a cut', { chunks: [jsonEvent('messageStart', { role: 'assistant' })], cut: true }, { class: 'DISCONNECTED' }],
  ])('%s fails the attempt before anything is delivered', async (_what, answer, expected) => {
    provider.enqueue(answer);
    expect((await worker.ask(HELLO, { providerModelId: `fails-${_what}` })).at(-1)?.failed).toMatchObject(expected);
  });

  test('an image URL that leads to an internal address is refused by its name, and nothing is sent', async () => {
    const before = provider.requests.length;
    const content = [{ type: 'image_url', image_url: { url: `https://127.0.0.1:${new URL(provider.baseUrl).port}/a.png` } }];
    const events = await worker.ask({ messages: [{ role: 'user', content }] }, { providerModelId: MODEL });
    expect(events).toMatchObject([{ failed: { class: 'BAD_REQUEST', publicParam: 'messages.[0].content.[0].image_url.url', retryable: false } }]);
    expect(provider.requests).toHaveLength(before);
  });
});

describe('against aimock', () => {
  const USAGE = { input_tokens: 12, output_tokens: 7 };
  let mock: LLMock;
  let worker: AskedWorker;
  beforeAll(async () => {
    mock = new LLMock({ port: 0, chunkSize: 7 });
    mock.on({ userMessage: 'two tools', hasToolResult: false }, { toolCalls: [{ id: 'c1', name: 'get_weather', arguments: '{"city":"Oslo"}' }, { id: 'c2', name: 'get_time', arguments: '{}' }], usage: USAGE });
    mock.on({ hasToolResult: true }, { content: 'It is 4 °C in Oslo.', usage: USAGE });
    mock.onMessage('think', { content: 'Yes.', reasoning: 'Let me think.', usage: USAGE });
    mock.onMessage(/./s, { content: 'Hi there, “äöü – 日本語”.', usage: USAGE });
    await mock.start();
    worker = await start({ ...PAIR, BEDROCK_BASE_URL: mock.url });
  });
  afterAll(async () => {
    await worker.stop();
    await mock.stop();
  });

  const TOOLS = ['get_weather', 'get_time'].map((name) => ({ type: 'function', function: { name, parameters: { type: 'object', properties: { city: { type: 'string' } } } } }));

  test.each([true, false])('text, with its cost, streamed: %p', async (stream) => {
    const events = await worker.ask(HELLO, { providerModelId: MODEL, stream });
    expect(answerOf(events)).toMatchObject({ content: 'Hi there, “äöü – 日本語”.', finish_reason: 'stop' });
    expect(events.at(-1)?.end).toMatchObject({ source: 'PROVIDER', tokens: { inputUncached: 12, outputText: 7 }, costNanoUsd: '26' });
  });

  test.each([true, false])('reasoning, streamed: %p', async (stream) => {
    expect(answerOf(await worker.ask({ messages: [{ role: 'user', content: 'think' }] }, { providerModelId: MODEL, stream }))).toMatchObject({ content: 'Yes.', reasoning_content: 'Let me think.' });
  });

  test.each([true, false])('parallel calls and their results, streamed: %p', async (stream) => {
    const asked = [{ role: 'user', content: 'two tools' }];
    const { finish_reason: reason, tool_calls: calls } = answerOf(await worker.ask({ tools: TOOLS, messages: asked }, { providerModelId: MODEL, stream }));
    expect(reason).toBe('tool_calls');
    expect(calls.map((call) => [call.function.name, JSON.parse(call.function.arguments)])).toEqual([['get_weather', { city: 'Oslo' }], ['get_time', {}]]);
    const results = calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: '4' }));
    expect(answerOf(await worker.ask({ tools: TOOLS, messages: [...asked, { role: 'assistant', content: null, tool_calls: calls }, ...results] }, { providerModelId: MODEL, stream })).content).toBe('It is 4 °C in Oslo.');
  });
});

describe('settings', () => {
  test.each<[Readonly<Record<string, string>>, boolean]>([
    [{}, false],
    [{ AWS_ACCESS_KEY_ID: 'a' }, false],
    [{ AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' }, true],
    [{ AWS_BEARER_TOKEN_BEDROCK: 'a' }, true],
  ])('%j asks for the worker: %s', (environment, expected) => {
    expect(isBedrockWanted(environment)).toBe(expected);
  });

  test.each([
    [{}, 'https://bedrock-runtime.us-east-1.amazonaws.com'],
    [{ AWS_DEFAULT_REGION: 'eu-west-3' }, 'https://bedrock-runtime.eu-west-3.amazonaws.com'],
    [{ AWS_DEFAULT_REGION: 'eu-west-3', AWS_REGION: 'us-gov-west-1' }, 'https://bedrock-runtime.us-gov-west-1.amazonaws.com'],
    [{ AWS_REGION: 'eu-west-3', BEDROCK_BASE_URL: 'http://127.0.0.1:9/x' }, 'http://127.0.0.1:9/x'],
  ])('%j is at %s', (environment, address) => {
    expect(loadWorkerBedrockConfig({ ...NO_NEIGHBOURS, ...environment }).BASE_URL).toBe(address);
  });

  test('an invalid region is named', () => {
    expect(() => loadWorkerBedrockConfig({ ...NO_NEIGHBOURS, AWS_REGION: 'evil.example/' })).toThrow(/AWS_REGION/);
  });

  test.each([
    [{ AWS_BEARER_TOKEN_BEDROCK: 'a key' }, 'AWS_BEARER_TOKEN_BEDROCK'],
    [{ AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'a key' }, 'AWS_SECRET_ACCESS_KEY'],
  ])('a credential with blanks is told by its own name: %j', (environment, name) => {
    expect(() => loadWorkerBedrockConfig({ ...NO_NEIGHBOURS, ...environment })).toThrow(new RegExp(`^${name}: must be printable`));
  });
});
