import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { LLMock } from '@copilotkit/aimock';
import { ConfigError } from '@signalbox/runtime/config';
import { startFakeProvider, type FakeProvider } from '@signalbox/testkit/fake-provider';
import { answerOf, NO_NEIGHBOURS, startAskedWorker, type AskedWorker } from '@signalbox/worker-kit/testing/asked-worker';
import { composeWorkerOllama } from './compose.js';
import { loadWorkerOllamaConfig } from './config.js';

const TOOL = { type: 'function', function: { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } } };
const fixture = (name: string): Buffer => readFileSync(new URL(`../../../libs/wires/src/ollama/testdata/${name}.ndjson`, import.meta.url));
const user = (content: unknown): { messages: object[] } => ({ messages: [{ role: 'user', content }] });

const start = (environment: Readonly<Record<string, string>>): Promise<AskedWorker> =>
  startAskedWorker(({ surroundings, options }) => composeWorkerOllama(loadWorkerOllamaConfig({ ...NO_NEIGHBOURS, ...environment }), surroundings, options));

describe('against recorded answers', () => {
  let provider: FakeProvider;
  let worker: AskedWorker;
  const sent = (): Record<string, unknown> => JSON.parse(provider.requests.at(-1)?.body ?? '') as Record<string, unknown>;
  beforeAll(async () => {
    provider = await startFakeProvider();
    worker = await start({ OLLAMA_BASE_URL: `${provider.baseUrl}/`, OLLAMA_KEEP_ALIVE: '10m', OLLAMA_NUM_CTX: '16384' });
  });
  afterAll(async () => {
    await worker.stop();
    await provider.stop();
  });

  test('calls the configured address without a key, with the configured context length and keep-alive', async () => {
    provider.enqueue({ chunks: [fixture('text')] });
    const events = await worker.ask(user('hello'), { providerModelId: 'qwen3:32b' });
    expect(answerOf(events)).toMatchObject({ content: '4 °C "in" 東京 é!\n', finish_reason: 'length' });
    expect(events.at(-1)?.end).toMatchObject({ source: 'PROVIDER', tokens: { inputUncached: 26, outputText: 15 } });
    expect(provider.requests.at(-1)?.path).toBe('/v1/api/chat');
    expect(provider.requests.at(-1)?.headers.authorization).toBeUndefined();
    expect(sent()).toEqual({ model: 'qwen3:32b', stream: true, messages: [{ role: 'user', content: 'hello' }], keep_alive: '10m', options: { num_ctx: 16_384 } });
  });

  test('a forced tool call is made', async () => {
    provider.enqueue({ chunks: [fixture('forced')] });
    const events = await worker.ask({ ...user('hello'), tools: [TOOL], tool_choice: 'required' });
    expect(answerOf(events)).toMatchObject({ content: '', tool_calls: [{ function: { name: 'get_weather', arguments: '{"city": "Oslo", "id": 12345678901234567890}' } }], finish_reason: 'tool_calls' });
    expect(sent()).toMatchObject({ format: { properties: { name: { enum: ['get_weather'] } } } });
  });

  test('log probabilities of a long answer are read in pieces, and passed on unchanged', async () => {
    const token = { token: 'é', logprob: -0.1, bytes: [195, 169], top_logprobs: [{ token: 'é', logprob: -0.1 }] };
    const logprobs = Array.from({ length: 10_000 }, () => token);
    provider.enqueue({ body: { model: 'm', message: { role: 'assistant', content: 'x' }, done: true, done_reason: 'stop', prompt_eval_count: 3, eval_count: 9, logprobs } });
    const parse = jest.spyOn(JSON, 'parse');
    const events = await worker.ask({ ...user('hello'), logprobs: true, top_logprobs: 1 }, { stream: false, clientStream: false });
    const longest = Math.max(...parse.mock.calls.map(([text]) => String(text).length));
    parse.mockRestore();
    expect(JSON.stringify(logprobs).length).toBeGreaterThan(800_000);
    expect(longest).toBeLessThan(600_000);
    const [choice] = JSON.parse(String(events.find(({ body }) => body)?.body?.choices)) as readonly { readonly logprobs: unknown }[];
    expect(choice?.logprobs).toEqual({ content: logprobs, refusal: null });
    expect(events.at(-1)?.end).toMatchObject({ source: 'PROVIDER', tokens: { inputUncached: 3, outputText: 9 } });
  });

  test.each([
    [{ status: 404, body: { error: "model 'qwen9' not found" } }, { class: 'NOT_FOUND', retryable: true }],
    [{ status: 400, body: { error: 'qwen3:32b does not support tools' } }, { class: 'BAD_REQUEST', retryable: true }],
    [{ status: 500, body: { error: 'model requires more system memory' } }, { class: 'PROVIDER_ERROR', publicMessage: '' }],
    [{ chunks: ['{"error":"unexpected EOF"}\n'] }, { class: 'PROVIDER_ERROR', publicMessage: '' }],
    [{ chunks: ['{"mess'], cut: true }, { class: 'DISCONNECTED' }],
    [{ status: 200, body: '<html>' }, { class: 'GARBAGE' }],
  ])('%j is told as %j', async (answer, failed) => {
    provider.enqueue(answer);
    expect((await worker.ask(user('hello'))).at(-1)?.failed).toMatchObject(failed);
  });

  test('an image at an internal address is not fetched, and nothing is sent', async () => {
    const before = provider.requests.length;
    const events = await worker.ask(user([{ type: 'image_url', image_url: { url: 'https://169.254.169.254/a.png' } }]));
    expect(events.at(-1)?.failed).toMatchObject({ class: 'BAD_REQUEST', status: 0, publicParam: 'messages.[0].content.[0].image_url.url', publicMessage: 'The URL does not lead to a public address.' });
    expect(provider.requests).toHaveLength(before);
  });

  test('an invalid setting is refused by its name', () => {
    expect(() => loadWorkerOllamaConfig({ OLLAMA_KEEP_ALIVE: 'for ever', OLLAMA_NUM_CTX: '1' })).toThrow(ConfigError);
    expect(() => loadWorkerOllamaConfig({ OLLAMA_BASE_URL: 'no address' })).toThrow(/OLLAMA_BASE_URL/);
  });
});

describe('against a third-party simulator', () => {
  const mock = new LLMock({ port: 0, strict: true });
  let worker: AskedWorker;
  beforeAll(async () => {
    mock.on({ userMessage: 'two tools', hasToolResult: false }, { toolCalls: [{ name: 'get_weather', arguments: '{"city":"Oslo"}' }, { name: 'get_time', arguments: '{}' }] });
    mock.on({ hasToolResult: true }, { content: 'It is 4 °C in Oslo.' });
    mock.onMessage('think', { content: 'Four.', reasoning: 'Two and two.' });
    mock.onMessage('busy', { error: { message: 'server busy' }, status: 503 });
    mock.onMessage(/./s, { content: 'Hi there: “äöü – 日本語”.' });
    await mock.start();
    worker = await start({ OLLAMA_BASE_URL: mock.url });
  });
  afterAll(async () => {
    await worker.stop();
    await mock.stop();
  });

  describe.each([true, false])('stream %p', (stream) => {
    const ask = (fields: Readonly<Record<string, unknown>>) => worker.ask(fields, { stream, clientStream: stream, providerModelId: 'gpt-oss:20b' });

    test('text', async () => {
      const events = await ask(user('hello'));
      expect(answerOf(events)).toMatchObject({ content: 'Hi there: “äöü – 日本語”.', finish_reason: 'stop' });
      expect(events.at(-1)?.end).toMatchObject({ source: 'PROVIDER' });
    });

    test.each(['auto', 'required'])('parallel calls with choice %s, and the answer to their results', async (choice) => {
      const tools = [TOOL, { type: 'function', function: { name: 'get_time' } }];
      const { finish_reason: reason, ...message } = answerOf(await ask({ ...user('two tools'), tools, tool_choice: choice }));
      expect(message.tool_calls.map((call) => call.function)).toEqual([{ name: 'get_weather', arguments: '{"city":"Oslo"}' }, { name: 'get_time', arguments: '{}' }]);
      expect(reason).toBe('tool_calls');
      const messages = [...user('two tools').messages, { role: 'assistant', ...message }, ...message.tool_calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: '4' }))];
      expect(answerOf(await ask({ messages, tools })).content).toBe('It is 4 °C in Oslo.');
    });

    test('reasoning, and a busy server', async () => {
      expect(answerOf(await ask({ ...user('think'), reasoning_effort: 'low' }))).toMatchObject({ content: 'Four.', reasoning_content: 'Two and two.' });
      expect((await ask(user('busy'))).at(-1)?.failed).toMatchObject({ class: 'PROVIDER_ERROR', status: 503 });
    });
  });
});
