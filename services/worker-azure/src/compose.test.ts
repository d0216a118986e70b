import { readFileSync } from 'node:fs';
import { LLMock } from '@copilotkit/aimock';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startFakeProvider, type FakeProvider, type RecordedRequest } from '@signalbox/testkit/fake-provider';
import { answerOf, NO_NEIGHBOURS, startAskedWorker, type AskedWorker } from '@signalbox/worker-kit/testing/asked-worker';
import { createAzureAdapter } from './adapter.js';
import { composeWorkerAzure } from './compose.js';
import { isAzureWanted, loadWorkerAzureConfig } from './config.js';

const MODEL = { model: 'openai/gpt-4o-mini', providerModelId: 'gpt-4o-mini', wireProtocol: 'azure-openai' };
const CLAUDE = { model: 'anthropic/claude-sonnet-4.6', providerModelId: 'claude-sonnet-4-6', wireProtocol: 'anthropic-messages' };
const HELLO = { messages: [{ role: 'developer', content: 'Be brief.' }, { role: 'user', content: 'hello' }] };
const ENTRA = 'eyJ0eXAiOiJKV1QifQ.eyJhdWQiOiJ4In0.c2lnbmF0dXJl';

const start = (environment: Readonly<Record<string, string>>): Promise<AskedWorker> =>
  startAskedWorker(({ surroundings, options }) => composeWorkerAzure(loadWorkerAzureConfig({ ...NO_NEIGHBOURS, AZURE_API_KEY: 'az-one', ...environment }), surroundings, options));
const wire = (path: string): Buffer => readFileSync(new URL(`../../../libs/wires/src/${path}`, import.meta.url));

describe('against scripted answers', () => {
  let provider: FakeProvider;
  let worker: AskedWorker;
  const at = (path: string, more: Readonly<Record<string, string>> = {}): Promise<AskedWorker> => start({ AZURE_BASE_URL: `${new URL(provider.baseUrl).origin}${path}`, ...more });
  const last = (): RecordedRequest => {
    const request = provider.requests.at(-1);
    if (request === undefined) throw new Error('not asked');
    return request;
  };
  beforeAll(async () => {
    provider = await startFakeProvider();
    worker = await at('/openai', { AZURE_DEPLOYMENTS: 'gpt-5=prod five, claude-opus-4-7=opus' });
  });
  afterAll(async () => {
    await worker.stop();
    await provider.stop();
  });

  test('calls the deployment named like the model, with the key and a version', async () => {
    provider.enqueue({ chunks: [wire('openai-chat/testdata/azure.sse')] });
    const events = await worker.ask(HELLO, MODEL);
    expect(answerOf(events)).toMatchObject({ content: 'It is 4 °C in Oslo.', finish_reason: 'stop' });
    expect(events.at(-1)?.end).toMatchObject({ source: 'PROVIDER', tokens: { inputUncached: 20, outputText: 9 } });
    expect(last().path).toBe('/openai/deployments/gpt-4o-mini/chat/completions?api-version=2025-04-01-preview');
    expect(last().headers).toMatchObject({ 'api-key': 'az-one', accept: 'text/event-stream' });
    expect(last().headers.authorization).toBeUndefined();
    expect(JSON.parse(last().body)).toEqual({ model: 'gpt-4o-mini', stream: true, stream_options: { include_usage: true }, ...HELLO });
  });

  test('calls the configured deployment; models of other makers get no role developer, and no texts in parts', async () => {
    provider.enqueue({ chunks: [wire('openai-chat/testdata/azure.sse')] });
    await worker.ask({ messages: [HELLO.messages[0], { role: 'user', content: [{ type: 'text', text: 'hello' }] }] }, { ...MODEL, model: 'deepseek/deepseek-v3.2', providerModelId: 'gpt-5' });
    expect(last().path).toBe('/openai/deployments/prod%20five/chat/completions?api-version=2025-04-01-preview');
    expect(JSON.parse(last().body)).toMatchObject({ model: 'prod five', messages: [{ role: 'system' }, { role: 'user', content: 'hello' }] });
  });

  test.each([['deepseek/deepseek-v4-pro', { reasoning_content: 'Hm.' }], ['meta-llama/llama-3.3-70b-instruct', {}]])('%s is sent back %j of what was thought', async (model, thought) => {
    provider.enqueue({ chunks: [wire('openai-chat/testdata/azure.sse')] });
    const said = { role: 'assistant', content: 'Yes.' };
    await worker.ask({ messages: [{ role: 'user', content: 'a' }, { ...said, reasoning: 'Hm.', reasoning_details: [] }, { role: 'user', content: 'b' }] }, { ...MODEL, model });
    expect((JSON.parse(last().body) as { messages: unknown[] }).messages[1]).toEqual({ ...said, ...thought });
  });

  test('a model that takes tools only without reasoning is sent the effort none with them, whatever its deployment is called', async () => {
    provider.enqueue({ chunks: [wire('openai-chat/testdata/azure.sse')] });
    await worker.ask({ ...HELLO, tools: [{ type: 'function', function: { name: 'f' } }] }, { ...MODEL, model: 'openai/gpt-5.6-sol', providerModelId: 'gpt-5' });
    expect(JSON.parse(last().body)).toMatchObject({ model: 'prod five', reasoning_effort: 'none' });
  });

  test.each<[string, Readonly<Record<string, string>>, string]>([
    ['/openai/v1', {}, '/openai/v1/chat/completions'],
    ['/openai/v1/', { AZURE_API_VERSION: 'preview' }, '/openai/v1/chat/completions?api-version=preview'],
    ['/openai', { AZURE_API_VERSION: '2024-10-21' }, '/openai/deployments/gpt-4o-mini/chat/completions?api-version=2024-10-21'],
    ['/openai?api-version=2024-06-01', {}, '/openai/deployments/gpt-4o-mini/chat/completions?api-version=2024-06-01'],
  ])('at %s under %j it asks %s', async (path, more, expected) => {
    const other = await at(path, { AZURE_API_KEY: ENTRA, ...more });
    provider.enqueue({ chunks: [wire('openai-chat/testdata/azure.sse')] });
    await other.ask(HELLO, MODEL);
    expect(last().path).toBe(expected);
    expect(last().headers).toMatchObject({ authorization: `Bearer ${ENTRA}` });
    expect(last().headers['api-key']).toBeUndefined();
    await other.stop();
  });

  test('Claude is called with its own format beside the OpenAI path', async () => {
    provider.enqueue({ chunks: [wire('anthropic-messages/testdata/text.sse')] });
    const events = await worker.ask({ ...HELLO, temperature: 1.5 }, { ...CLAUDE, temperatureMax: 2 });
    expect(answerOf(events)).toMatchObject({ finish_reason: 'length' });
    expect(events.at(-1)?.end).toMatchObject({ source: 'PROVIDER', tokens: { inputUncached: 25, cacheRead: 14, cacheWrite: 6, outputText: 15 } });
    expect(last().path).toBe('/anthropic/v1/messages');
    expect(last().headers).toMatchObject({ 'x-api-key': 'az-one', 'anthropic-version': '2023-06-01' });
    expect(JSON.parse(last().body)).toMatchObject({ model: 'claude-sonnet-4-6', temperature: 1, system: [{ type: 'text', text: 'Be brief.' }] });
    provider.enqueue({ body: JSON.parse(wire('anthropic-messages/testdata/answer.json').toString()) as object });
    await worker.ask(HELLO, { ...CLAUDE, providerModelId: 'claude-opus-4-7', stream: false });
    expect(JSON.parse(last().body)).toMatchObject({ model: 'opus' });
  });

  test.each([
    ['a filtered prompt', { status: 400, body: { error: { message: "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.", type: null, param: 'prompt', code: 'content_filter', status: 400, innererror: { code: 'ResponsibleAIPolicyViolation', content_filter_result: { violence: { filtered: true, severity: 'high' } } } } } }, { class: 'CONTENT_POLICY', retryable: false, publicParam: 'prompt' }],
    ['a deployment that is not there', { status: 404, body: { error: { code: 'DeploymentNotFound', message: 'The API deployment for this resource does not exist.' } } }, { class: 'NOT_FOUND', retryable: true, publicMessage: '' }],
    ['a rate limit', { status: 429, headers: { 'retry-after-ms': '1500', 'retry-after': '2' }, body: { error: { code: '429', message: 'Requests have exceeded token rate limit.' } } }, { class: 'RATE_LIMITED', retryAfterMs: 1_500 }],
    ['a bad key', { status: 401, body: { error: { code: '401', message: 'Access denied due to invalid subscription key or wrong API endpoint.' } } }, { class: 'CREDENTIAL', publicMessage: '' }],
    ['overload of Claude', { status: 529, body: { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } } }, { class: 'PROVIDER_ERROR', retryable: true }],
  ])('%s', async (what, answer, expected) => {
    const other = await at('/openai', { AZURE_API_KEY: `az-${what.length}` });
    provider.enqueue(answer);
    expect((await other.ask(HELLO, what.includes('Claude') ? CLAUDE : MODEL)).at(-1)?.failed).toMatchObject(expected);
    await other.stop();
  });
});

describe('against aimock', () => {
  let mock: LLMock;
  let worker: AskedWorker;
  beforeAll(async () => {
    mock = new LLMock({ port: 0, chunkSize: 7 });
    mock.on({ userMessage: 'tools' }, { toolCalls: [{ id: 'c1', name: 'get_weather', arguments: '{"city":"Oslo"}' }] });
    mock.onMessage(/./s, { content: 'Hi there.' });
    await mock.start();
    worker = await start({ AZURE_BASE_URL: `${mock.url}/openai` });
  });
  afterAll(async () => {
    await worker.stop();
    await mock.stop();
  });

  test.each([true, false])('text and calls, streamed: %p', async (stream) => {
    expect(answerOf(await worker.ask(HELLO, { ...MODEL, stream }))).toMatchObject({ content: 'Hi there.', finish_reason: 'stop' });
    const tools = [{ type: 'function', function: { name: 'get_weather', parameters: { type: 'object' } } }];
    expect(answerOf(await worker.ask({ messages: [{ role: 'user', content: 'tools' }], tools }, { ...MODEL, stream }))).toMatchObject({ tool_calls: [{ function: { name: 'get_weather', arguments: '{"city":"Oslo"}' } }], finish_reason: 'tool_calls' });
  });
});

describe('settings', () => {
  test.each<[Readonly<Record<string, string>>, boolean]>([
    [{}, false],
    [{ AZURE_API_KEY: 'k' }, false],
    [{ AZURE_RESOURCE_NAME: 'r' }, false],
    [{ AZURE_API_KEY: 'k', AZURE_RESOURCE_NAME: 'r' }, true],
    [{ AZURE_API_KEY: 'k', AZURE_BASE_URL: 'http://127.0.0.1:9/openai' }, true],
  ])('%j asks for the worker: %s', (environment, expected) => {
    expect(isAzureWanted(environment)).toBe(expected);
  });

  test('the resource name determines both of its hosts', async () => {
    const { BASE_URL: baseUrl } = loadWorkerAzureConfig({ ...NO_NEIGHBOURS, AZURE_API_KEY: 'k', AZURE_RESOURCE_NAME: 'acme-eu' });
    const adapter = createAzureAdapter({ baseUrl, apiVersion: undefined, deployments: new Map(), media: { compose: (_accountId, _draft, _types, send) => send(Buffer.from('{}')) } });
    const request = { requestId: 'chatcmpl-x', stream: true, fields: [], maxTokensParam: '', temperatureMax: 0, model: '' };
    const compose = async (over: object) => adapter.compose({ ...request, ...over } as never, undefined);
    expect(adapter.origin).toBe('https://acme-eu.openai.azure.com');
    expect(await compose(MODEL)).toMatchObject({ path: '/openai/deployments/gpt-4o-mini/chat/completions?api-version=2025-04-01-preview' });
    expect(await compose(CLAUDE)).toMatchObject({ origin: 'https://acme-eu.services.ai.azure.com', path: '/anthropic/v1/messages' });
  });

  test.each([
    ['AZURE_RESOURCE_NAME', 'https://acme.openai.azure.com'],
    ['AZURE_DEPLOYMENTS', 'gpt-4o'],
    ['AZURE_API_VERSION', 'a b'],
    ['FETCH_ALLOW', '10.0.0.1/8'],
  ])('%s that is wrong is named', (name, value) => {
    expect(() => loadWorkerAzureConfig({ ...NO_NEIGHBOURS, AZURE_API_KEY: 'k', AZURE_BASE_URL: 'http://127.0.0.1:9', [name]: value })).toThrow(new RegExp(name));
  });
});
