import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { LLMock } from '@copilotkit/aimock';
import { startFakeProvider, type FakeProvider } from '@signalbox/testkit/fake-provider';
import type { AttemptEnd, Journal } from '@signalbox/worker-kit/journal';
import { answerOf, FORGETFUL, NO_NEIGHBOURS, startAskedWorker, type AskedWorker } from '@signalbox/worker-kit/testing/asked-worker';
import { composeWorkerAnthropic } from './compose.js';
import { loadWorkerAnthropicConfig } from './config.js';

const HELLO = { messages: [{ role: 'user', content: 'hello' }] };
const TOOL = { type: 'function', function: { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } } };
const fixture = (name: string): Buffer => readFileSync(new URL(`../../../libs/wires/src/anthropic-messages/testdata/${name}`, import.meta.url));

const start = (environment: Readonly<Record<string, string>>): Promise<AskedWorker> =>
  startAskedWorker(({ surroundings, options }) => composeWorkerAnthropic(loadWorkerAnthropicConfig({ ...NO_NEIGHBOURS, ...environment }), surroundings, options));

describe('against recorded answers', () => {
  let provider: FakeProvider;
  let worker: AskedWorker;
  const at = (key: string): Promise<AskedWorker> => start({ ANTHROPIC_API_KEY: key, ANTHROPIC_BASE_URL: provider.baseUrl });
  const ask = (fields: Readonly<Record<string, unknown>>, over: object = {}) => worker.ask(fields, { providerModelId: 'claude-sonnet-4-6', ...over });
  const sent = (): Record<string, unknown> => JSON.parse(provider.requests.at(-1)?.body ?? '') as Record<string, unknown>;
  beforeAll(async () => {
    provider = await startFakeProvider();
    worker = await at('sk-ant-one');
  });
  afterAll(async () => {
    await worker.stop();
    await provider.stop();
  });

  test('sends the wire’s request to the configured address', async () => {
    provider.enqueue({ chunks: [fixture('text.sse')] });
    const events = await ask(HELLO);
    expect(answerOf(events)).toMatchObject({ content: '4 °C "in" 東京 é!\n', finish_reason: 'length' });
    expect(events.at(-1)?.end).toMatchObject({ source: 'PROVIDER', tokens: { inputUncached: 25, cacheRead: 14, cacheWrite: 6, outputText: 15 }, cachedKnown: true });
    const asked = provider.requests.at(-1);
    expect(asked?.path).toBe('/v1/messages');
    expect(asked?.headers).toMatchObject({ 'x-api-key': 'sk-ant-one', 'anthropic-version': '2023-06-01' });
    expect(asked?.headers.authorization).toBeUndefined();
    expect(sent()).toEqual({ model: 'claude-sonnet-4-6', max_tokens: 4_096, stream: true, messages: [{ role: 'user', content: [{ type: 'text', text: 'hello' }] }] });
  });

  test('reasoning of one turn is sent back in the next', async () => {
    provider.enqueue({ body: JSON.parse(fixture('answer.json').toString()) as object }, { chunks: [fixture('text.sse')] });
    const { finish_reason: reason, ...message } = answerOf(await ask({ ...HELLO, tools: [TOOL] }, { stream: false }));
    expect(reason).toBe('tool_calls');
    const results = message.tool_calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: '4' }));
    await ask({ tools: [TOOL], reasoning_effort: 'high', messages: [...HELLO.messages, { role: 'assistant', ...message }, ...results] });
    const { messages } = sent() as { messages: { content: { type: string }[] }[] };
    expect(messages.map(({ content }) => content.map(({ type }) => type))).toEqual([['text'], ['thinking', 'redacted_thinking', 'text', 'tool_use', 'tool_use'], ['tool_result', 'tool_result']]);
  });

  test('a model that binds its reasoning to the conversation is told, in the body and by a header, to drop what does not fit', async () => {
    const thought = { role: 'assistant', content: 'Hi.', reasoning_details: [{ type: 'reasoning.text', text: 'Hm.', signature: 's==', format: 'anthropic-claude-v1' }] };
    provider.enqueue({ chunks: [fixture('text.sse')] }, { chunks: [fixture('text.sse')] });
    await ask({ messages: [...HELLO.messages, thought, ...HELLO.messages] }, { providerModelId: 'claude-opus-5-5' });
    expect(provider.requests.at(-1)?.headers['anthropic-beta']).toBe('thinking-binding-controls-2026-08-01');
    expect(sent()).toMatchObject({ thinking: { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } } });
    await ask(HELLO, { providerModelId: 'claude-opus-5-5' });
    expect(provider.requests.at(-1)?.headers['anthropic-beta']).toBeUndefined();
  });

  test('a JSON answer that came through a tool call is returned as content', async () => {
    provider.enqueue({ chunks: [fixture('json-tool.sse')] });
    const schema = { type: 'object', additionalProperties: true };
    expect(answerOf(await ask({ ...HELLO, response_format: { type: 'json_schema', json_schema: { name: 's', schema } } }))).toMatchObject({ content: '{"city":"Oslo","celsius":4}', tool_calls: [], finish_reason: 'stop' });
    expect(sent()).toMatchObject({ tool_choice: { type: 'tool', name: 'signalbox_json_answer' } });
  });

  test.each(['whole', 'streamed'])('a refusal before the first word costs nothing at Anthropic, which does not bill it: %s', async (how) => {
    const ends: AttemptEnd[] = [];
    const keeping: Journal = { ...FORGETFUL, end: (_request, _attempt, end) => Promise.resolve(void ends.push(end)) };
    const journaled = await startAskedWorker(({ surroundings, options }) => composeWorkerAnthropic(loadWorkerAnthropicConfig({ ...NO_NEIGHBOURS, ANTHROPIC_API_KEY: 'sk-ant-two', ANTHROPIC_BASE_URL: provider.baseUrl }), surroundings, { ...options, journal: keeping }));
    const usage = { input_tokens: 106, output_tokens: 1 };
    const refusal = { stop_reason: 'refusal', stop_details: { type: 'refusal', category: 'cyber', explanation: 'No.' } };
    const frames = [{ type: 'message_start', message: { usage } }, { type: 'message_delta', delta: refusal, usage }, { type: 'message_stop' }];
    provider.enqueue(how === 'streamed' ? { chunks: frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`) } : { body: { type: 'message', content: [], ...refusal, usage } });
    expect((await journaled.ask(HELLO, { stream: how === 'streamed' })).at(-1)?.failed).toMatchObject({ class: 'CONTENT_POLICY', retryable: false });
    expect(ends).toMatchObject([{ failure: 'CONTENT_POLICY', costNanoUsd: 0n, tokens: { inputUncached: 0, outputText: 0 } }]);
    await journaled.stop();
  });

  test('an overload error inside a 200 fails the attempt before anything is delivered', async () => {
    provider.enqueue({ chunks: ['event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'] });
    expect((await ask(HELLO)).at(-1)?.failed).toMatchObject({ class: 'PROVIDER_ERROR', status: 529, retryable: true });
  });

  test('a stream that is cut after content ends as cut, with what was delivered', async () => {
    const whole = fixture('text.sse').toString();
    provider.enqueue({ chunks: [whole.slice(0, whole.indexOf('event: content_block_stop'))], cut: true });
    expect((await ask(HELLO)).at(-1)?.end).toMatchObject({ cut: { class: 'DISCONNECTED' }, source: 'ESTIMATED', flags: ['estimated'] });
  });

  test('a refused key is the operator’s problem, and nothing of the refusal is passed on', async () => {
    const alone = await at('sk-ant-two');
    provider.enqueue({ status: 401, body: { type: 'error', error: { type: 'authentication_error', message: 'invalid x-api-key' } } });
    expect((await alone.ask(HELLO)).at(-1)?.failed).toMatchObject({ class: 'CREDENTIAL', publicMessage: '' });
    await alone.stop();
  });

  test('an image at an internal address is not fetched, and nothing is sent', async () => {
    const minimax = await start({ PROVIDER: 'minimax', MINIMAX_API_KEY: 'k', MINIMAX_BASE_URL: provider.baseUrl });
    const before = provider.requests.length;
    const events = await minimax.ask({ messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://127.0.0.1/a.png' } }] }] });
    expect(events.at(-1)?.failed).toMatchObject({ class: 'BAD_REQUEST', status: 0, publicParam: 'messages.[0].content.[0].image_url.url', publicMessage: 'The URL does not lead to a public address.', retryable: false });
    expect(provider.requests).toHaveLength(before);
    await minimax.stop();
  });
});

describe('against a third-party simulator', () => {
  const mock = new LLMock({ port: 0, strict: true });
  const usage = { input_tokens: 12, output_tokens: 7 };
  let worker: AskedWorker;
  beforeAll(async () => {
    mock.on({ userMessage: 'two tools', hasToolResult: false }, { toolCalls: [{ id: 'toolu_a1', name: 'get_weather', arguments: '{"city":"Oslo"}' }, { id: 'toolu_a2', name: 'get_time', arguments: '{}' }], usage });
    mock.on({ hasToolResult: true }, { content: 'It is 4 °C in Oslo.', usage });
    mock.onMessage('think', { content: 'Four.', reasoning: 'Two and two.', usage });
    mock.onMessage('cut short', { content: 'Once upon a', finishReason: 'length', usage });
    mock.onMessage('busy', { error: { message: 'Overloaded', type: 'overloaded_error' }, status: 529 });
    mock.onMessage(/./s, { content: 'Hi there: “äöü – 日本語”.', usage });
    await mock.start();
    worker = await start({ ANTHROPIC_API_KEY: 'sk-ant-one', ANTHROPIC_BASE_URL: `${mock.url}/v1` });
  });
  afterAll(async () => {
    await worker.stop();
    await mock.stop();
  });

  describe.each([true, false])('stream %p', (stream) => {
    const ask = (fields: Readonly<Record<string, unknown>>) => worker.ask(fields, { stream, clientStream: stream, providerModelId: 'claude-opus-4-6' });
    const user = (content: string): { messages: object[] } => ({ messages: [{ role: 'user', content }] });

    test('text, usage and cost', async () => {
      const events = await ask(user('hello'));
      expect(answerOf(events)).toMatchObject({ content: 'Hi there: “äöü – 日本語”.', finish_reason: 'stop' });
      expect(events.at(-1)?.end).toMatchObject({ source: 'PROVIDER', costNanoUsd: '26', tokens: { inputUncached: 12, outputText: 7 } });
    });

    test('parallel tool calls, and the answer to their results', async () => {
      const tools = [TOOL, { type: 'function', function: { name: 'get_time' } }];
      const { finish_reason: reason, ...message } = answerOf(await ask({ ...user('two tools'), tools, tool_choice: 'required' }));
      expect(message.tool_calls).toEqual([
        { id: 'toolu_a1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Oslo"}' } },
        { id: 'toolu_a2', type: 'function', function: { name: 'get_time', arguments: '{}' } },
      ]);
      expect(reason).toBe('tool_calls');
      const messages = [...user('two tools').messages, { role: 'assistant', ...message }, ...message.tool_calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: '4' }))];
      expect(answerOf(await ask({ messages, tools })).content).toBe('It is 4 °C in Oslo.');
    });

    test('reasoning', async () => {
      expect(answerOf(await ask({ ...user('think'), reasoning_effort: 'low' }))).toMatchObject({ content: 'Four.', reasoning_content: 'Two and two.', reasoning_details: [{ type: 'reasoning.text', text: 'Two and two.', format: 'anthropic-claude-v1' }] });
    });

    test('an answer that is cut, and an overload', async () => {
      expect(answerOf(await ask(user('cut short')))).toMatchObject({ content: 'Once upon a', finish_reason: 'length' });
      expect((await ask(user('busy'))).at(-1)?.failed).toMatchObject({ class: 'PROVIDER_ERROR', status: 529 });
    });
  });
});
