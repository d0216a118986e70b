import { LLMock } from '@copilotkit/aimock';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startFakeProvider, type FakeProvider } from '@signalbox/testkit/fake-provider';
import { contentOf, NO_NEIGHBOURS, startAskedWorker, type AskedWorker } from '@signalbox/worker-kit/testing/asked-worker';
import { composeWorkerCohere } from './compose.js';
import { loadWorkerCohereConfig } from './config.js';

const USAGE = { input_tokens: 12, output_tokens: 7 };
const GREETING = 'Hi there, this text comes in several pieces: “äöü – 日本語”.';

let mock: LLMock;
let provider: FakeProvider;
let atMock: AskedWorker;
let atProvider: AskedWorker;

const start = (baseUrl: string): Promise<AskedWorker> =>
  startAskedWorker(({ surroundings, options }) => composeWorkerCohere(loadWorkerCohereConfig({ ...NO_NEIGHBOURS, CO_API_KEY: 'co-upstream', COHERE_BASE_URL: baseUrl }), surroundings, options));

beforeAll(async () => {
  mock = new LLMock({ port: 0, chunkSize: 7 });
  mock.on({ userMessage: 'two tools', hasToolResult: false }, { toolCalls: [{ id: 'c1', name: 'get_weather', arguments: '{"city":"Oslo"}' }, { id: 'c2', name: 'get_time', arguments: '{}' }], usage: USAGE });
  mock.on({ hasToolResult: true }, { content: 'It is 4 °C in Oslo.', usage: USAGE });
  mock.onMessage('cut short', { content: 'Once upon a', finishReason: 'length', usage: USAGE });
  mock.onMessage(/./s, { content: GREETING, usage: USAGE });
  provider = await startFakeProvider();
  await mock.start();
  [atMock, atProvider] = await Promise.all([start(`${mock.url}/v2`), start(provider.baseUrl)]);
});
afterAll(async () => {
  await Promise.all([atMock.stop(), atProvider.stop()]);
  await Promise.all([mock.stop(), provider.stop()]);
});

const user = (content: string): object => ({ messages: [{ role: 'user', content }] });
const asked = (content: string, more: object = {}): Record<string, unknown> => ({ ...user(content), ...more });
const TOOLS = { tools: [{ type: 'function', function: { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } } }, { type: 'function', function: { name: 'get_time' } }] };

test('streams text with its cost', async () => {
  const events = await atMock.ask(asked('hello'));
  expect(contentOf(events)).toBe(GREETING);
  expect(events.at(-1)?.end).toMatchObject({ source: 'PROVIDER', finishReason: 'stop', tokens: { inputUncached: 12, outputText: 7 }, costNanoUsd: '26' });
});

test('answers whole', async () => {
  const events = await atMock.ask(asked('cut short'), { stream: false });
  expect(JSON.parse(String(events[0]?.body?.choices))).toMatchObject([{ index: 0, message: { role: 'assistant', content: 'Once upon a' }, finish_reason: 'length' }]);
});

test.each([true, false])('parallel calls and their results, streamed: %p', async (stream) => {
  const events = await atMock.ask(asked('two tools', TOOLS), { stream });
  const told = JSON.stringify(events.map((event) => String(event.chunk?.choices ?? event.body?.choices ?? '')));
  for (const part of ['get_weather', 'get_time', 'c1', 'c2']) expect(told).toContain(part);
  expect(events.at(-1)?.end?.finishReason).toBe('tool_calls');
  const calls = [{ id: 'c1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Oslo"}' } }];
  const results = await atMock.ask({ ...TOOLS, messages: [{ role: 'user', content: 'two tools' }, { role: 'assistant', content: null, tool_calls: calls }, { role: 'tool', tool_call_id: 'c1', content: '{"c":4}' }] });
  expect(contentOf(results)).toBe('It is 4 °C in Oslo.');
});

test('calls the v2 path with the credential and the request id', async () => {
  provider.enqueue({ status: 429, headers: { 'retry-after': '2' }, body: { message: 'slow down' } });
  const events = await atProvider.ask(asked('hi'), { requestId: 'chatcmpl-cohere', providerModelId: 'command-a-03-2025' });
  expect(events).toMatchObject([{ failed: { class: 'RATE_LIMITED', status: 429, retryAfterMs: 2_000 } }]);
  expect(provider.requests.at(-1)).toMatchObject({ path: '/v1/chat', headers: { authorization: 'Bearer co-upstream', accept: 'text/event-stream', 'x-request-id': 'chatcmpl-cohere/1' } });
});

test('a request that the wire cannot carry is refused by the parameter’s name and never sent', async () => {
  const before = provider.requests.length;
  const messages = [{ role: 'user', content: [{ type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERi0xLjQK' } }] }];
  expect(await atProvider.ask({ messages }, { providerModelId: 'other' })).toMatchObject([{ failed: { class: 'BAD_REQUEST', publicParam: 'messages.[0].content.[0].file.file_data', retryable: true } }]);
  expect(provider.requests).toHaveLength(before);
});

test('a stream that is cut ends with what was delivered', async () => {
  provider.enqueue({ chunks: ['event: content-delta\ndata: {"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"four"}}}}\n\n'], cut: true });
  const events = await atProvider.ask(asked('hi'), { providerModelId: 'third' });
  expect(contentOf(events)).toBe('four');
  expect(events.at(-1)?.end).toMatchObject({ cut: { class: 'DISCONNECTED' }, source: 'ESTIMATED', flags: ['estimated'] });
});
