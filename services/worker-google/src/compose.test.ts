import { LLMock } from '@copilotkit/aimock';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { sse, startFakeProvider, type FakeProvider } from '@signalbox/testkit/fake-provider';
import { contentOf, NO_NEIGHBOURS, startAskedWorker, type AskedWorker } from '@signalbox/worker-kit/testing/asked-worker';
import { composeWorkerGoogle } from './compose.js';
import { loadWorkerGoogleConfig, type GoogleProvider } from './config.js';

const USAGE = { promptTokenCount: 12, candidatesTokenCount: 7, totalTokenCount: 19 };
const GREETING = 'Hi there, this text comes in several pieces: “äöü – 日本語”.';
const MODEL = { providerModelId: 'gemini-3.8-flash', wireProtocol: 'google-generate-content' };

let mock: LLMock;
let fake: FakeProvider;
const workers: AskedWorker[] = [];

async function start(environment: Readonly<Record<string, string>>): Promise<AskedWorker> {
  const worker = await startAskedWorker(({ surroundings, options }) => composeWorkerGoogle(loadWorkerGoogleConfig({ ...NO_NEIGHBOURS, ...environment }), surroundings, options));
  workers.push(worker);
  return worker;
}

let atMock: Record<GoogleProvider, AskedWorker>;
let studio: AskedWorker;
let vertex: AskedWorker;

beforeAll(async () => {
  mock = new LLMock({ port: 0, chunkSize: 7 });
  mock.on({ userMessage: 'two tools', hasToolResult: false }, { toolCalls: [{ id: 'c1', name: 'get_weather', arguments: '{"city":"Oslo"}' }, { name: 'get_time', arguments: '{}' }], usage: USAGE });
  mock.on({ hasToolResult: true }, { content: 'It is 4 °C in Oslo.', usage: USAGE });
  mock.onMessage('cut short', { content: 'Once upon a', finishReason: 'length', usage: USAGE });
  mock.onMessage('think', { content: 'Yes.', reasoning: 'Let me think.', usage: USAGE });
  mock.onMessage(/./s, { content: GREETING, usage: USAGE });
  await mock.start();
  fake = await startFakeProvider();
  atMock = {
    'google-ai-studio': await start({ PROVIDER: 'google-ai-studio', GEMINI_API_KEY: 'k', GEMINI_BASE_URL: `${mock.url}/v1beta` }),
    'google-vertex': await start({ PROVIDER: 'google-vertex', VERTEX_ACCESS_TOKEN: 't', VERTEX_BASE_URL: `${mock.url}/v1/projects/p/locations/l` }),
  };
  studio = await start({ PROVIDER: 'google-ai-studio', GEMINI_API_KEY: 'AIza-1', GEMINI_BASE_URL: fake.baseUrl });
  vertex = await start({ PROVIDER: 'google-vertex', VERTEX_ACCESS_TOKEN: 'ya29.x', VERTEX_BASE_URL: `${fake.baseUrl}/projects/p/locations/l` });
});
afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.stop()));
  await Promise.all([mock.stop(), fake.stop()]);
});

const asked = (content: string, more: object = {}): Record<string, unknown> => ({ messages: [{ role: 'user', content }], ...more });
const TOOLS = { tools: [{ type: 'function', function: { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } } }, { type: 'function', function: { name: 'get_time' } }] };
const text = (content: string, finish?: string): string => sse({ candidates: [{ content: { role: 'model', parts: [{ text: content }] }, ...(finish === undefined ? {} : { finishReason: finish }) }], ...(finish === undefined ? {} : { usageMetadata: USAGE }) });

describe.each(['google-ai-studio', 'google-vertex'] as const)('%s, against a third-party simulator', (provider) => {
  test('streams text with its cost', async () => {
    const events = await atMock[provider].ask(asked('hello'), MODEL);
    expect(contentOf(events)).toBe(GREETING);
    expect(events.at(-1)?.end).toMatchObject({ source: 'PROVIDER', finishReason: 'stop', tokens: { inputUncached: 12, outputText: 7 }, costNanoUsd: '26' });
  });

  test('answers whole', async () => {
    const events = await atMock[provider].ask(asked('cut short'), { ...MODEL, stream: false });
    expect(JSON.parse(String(events[0]?.body?.choices))).toMatchObject([{ index: 0, message: { role: 'assistant', content: 'Once upon a' }, finish_reason: 'length' }]);
  });

  test('returns reasoning separately', async () => {
    const events = await atMock[provider].ask(asked('think', { reasoning_effort: 'high' }), { ...MODEL, stream: false });
    expect(JSON.parse(String(events[0]?.body?.choices))).toMatchObject([{ message: { content: 'Yes.', reasoning_content: 'Let me think.' } }]);
  });

  test.each([true, false])('parallel calls and their results, streamed: %p', async (stream) => {
    const events = await atMock[provider].ask(asked('two tools', TOOLS), { ...MODEL, stream });
    const told = JSON.stringify(events.map((event) => String(event.chunk?.choices ?? event.body?.choices ?? '')));
    for (const part of ['get_weather', 'get_time', 'c1']) expect(told).toContain(part);
    expect(events.at(-1)?.end?.finishReason).toBe('tool_calls');
    const calls = [{ id: 'c1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Oslo"}' } }];
    const results = await atMock[provider].ask({ ...TOOLS, messages: [{ role: 'user', content: 'two tools' }, { role: 'assistant', content: null, tool_calls: calls }, { role: 'tool', tool_call_id: 'c1', content: '{"c":4}' }] }, MODEL);
    expect(contentOf(results)).toBe('It is 4 °C in Oslo.');
  });
});

describe('addresses and credentials', () => {
  const over = (id: string, more: object = {}) => ({ ...MODEL, requestId: `chatcmpl-${id}`, ...more });

  test('the Gemini API: key in its header, alt=sse for streams', async () => {
    fake.enqueue({ chunks: [text('a', 'STOP')] }, { body: { candidates: [{ content: { parts: [{ text: 'a' }] }, finishReason: 'STOP' }] } });
    await studio.ask(asked('hi'), over('one'));
    await studio.ask(asked('hi'), over('two', { stream: false }));
    expect(fake.requests.slice(-2)).toMatchObject([
      { path: '/v1/models/gemini-3.8-flash:streamGenerateContent?alt=sse', headers: { 'x-goog-api-key': 'AIza-1', 'x-request-id': 'chatcmpl-one/1' } },
      { path: '/v1/models/gemini-3.8-flash:generateContent', headers: { 'x-goog-api-key': 'AIza-1' } },
    ]);
  });

  test('Vertex: three wires under one project, with a bearer token', async () => {
    fake.enqueue({ chunks: [text('a', 'STOP')] }, { status: 500, body: {} }, { status: 500, body: {} });
    await vertex.ask(asked('hi'), over('one'));
    await vertex.ask(asked('hi'), over('two', { providerModelId: 'claude-opus-4-8@default', wireProtocol: 'anthropic-messages' }));
    await vertex.ask({ messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }] }, over('three', { providerModelId: 'zai-org/glm-5-maas', wireProtocol: 'openai-chat' }));
    const sent = fake.requests.slice(-3);
    expect(sent.map((request) => request.path.replace('/v1/projects/p/locations/l', ''))).toEqual(['/publishers/google/models/gemini-3.8-flash:streamGenerateContent?alt=sse', '/publishers/anthropic/models/claude-opus-4-8@default:streamRawPredict', '/endpoints/openapi/chat/completions']);
    expect(sent.map((request) => request.headers.authorization)).toEqual(['Bearer ya29.x', 'Bearer ya29.x', 'Bearer ya29.x']);
    expect(JSON.parse(sent[1]?.body ?? '')).toMatchObject({ anthropic_version: 'vertex-2023-10-16' });
    expect(JSON.parse(sent[2]?.body ?? '')).toMatchObject({ model: 'zai-org/glm-5-maas', messages: [{ content: 'hi' }] });
  });
});

describe('faults', () => {
  const ask = (over: object = {}) => studio.ask(asked('hi'), { ...MODEL, ...over });

  test.each([
    ['a rate limit with its hint', { status: 429, body: { error: { code: 429, message: 'm', status: 'RESOURCE_EXHAUSTED', details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '2s' }] } } }, { class: 'RATE_LIMITED', retryAfterMs: 2_000, status: 429 }],
    ['an overload', { status: 503, body: { error: { code: 503, message: 'm', status: 'UNAVAILABLE' } } }, { class: 'PROVIDER_ERROR', status: 503 }],
    ['HTML', { status: 502, body: '<html></html>' }, { class: 'PROVIDER_ERROR', status: 502 }],
    ['an overload inside a 200', { chunks: [sse({ error: { code: 503, message: 'm', status: 'UNAVAILABLE' } })] }, { class: 'PROVIDER_ERROR' }],
    ['garbage', { chunks: ['data: {"candidates":[{\n\n'] }, { class: 'GARBAGE' }],
    ['nothing', { chunks: [] }, { class: 'EMPTY' }],
    ['a refused prompt', { chunks: [sse({ promptFeedback: { blockReason: 'SAFETY' } })] }, { class: 'CONTENT_POLICY', retryable: false }],
  ])('%s', async (what, answer, failed) => {
    fake.enqueue(answer);
    expect(await ask({ providerModelId: `gemini-3.8-flash-${what.replaceAll(' ', '-')}` })).toMatchObject([{ failed }]);
  });

  test.each([true, false])('an answer of nothing is charged by its usage, and said to be one (streamed: %s)', async (stream) => {
    const nothing = { candidates: [{ content: { role: 'model' }, finishReason: 'STOP', index: 0 }], usageMetadata: { promptTokenCount: 9, thoughtsTokenCount: 70, totalTokenCount: 79 } };
    fake.enqueue(stream ? { chunks: [sse(nothing)] } : { body: nothing });
    expect((await ask({ stream })).at(-1)).toMatchObject({ end: { nothingSaid: true, source: 'PROVIDER', finishReason: 'stop', tokens: { inputUncached: 9, outputText: 0, outputReasoning: 70 } } });
  });

  test('a stream that is cut ends with what was delivered', async () => {
    fake.enqueue({ chunks: [text('four')], cut: true });
    const events = await ask();
    expect(contentOf(events)).toBe('four');
    expect(events.at(-1)?.end).toMatchObject({ cut: { class: 'DISCONNECTED' }, source: 'ESTIMATED', flags: ['estimated'] });
  });

  test('an image at an internal address is refused by its name, and nothing is sent', async () => {
    const before = fake.requests.length;
    const messages = [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://169.254.169.254/latest' } }] }];
    expect(await studio.ask({ messages }, MODEL)).toMatchObject([{ failed: { class: 'BAD_REQUEST', publicParam: 'messages.[0].content.[0].image_url.url', retryable: false } }]);
    expect(fake.requests).toHaveLength(before);
  });
});
