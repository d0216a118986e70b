import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { brokenCuts, brokenInvariants, everySplit, gather, replay, type Replayed } from '../testing/replay.js';
import { classifyOllamaRefusal } from './errors.js';
import { readOllamaAnswer } from './response.js';
import { createOllamaTransducer } from './stream.js';
import { readUsage } from './usage.js';

const fixture = (name: string): Buffer => readFileSync(new URL(`./testdata/${name}.ndjson`, import.meta.url));
const create = () => createOllamaTransducer('seed', false);
const createForced = () => createOllamaTransducer('seed', true);
const lines = (frames: readonly unknown[]): Buffer[] => frames.map((value) => Buffer.from(`${typeof value === 'string' ? value : JSON.stringify(value)}\n`));
const run = (...frames: readonly unknown[]): Replayed => replay(create, lines(frames));
const said = (content: string): object => ({ message: { role: 'assistant', content }, done: false });
const done = (more: object = {}): object => ({ message: { role: 'assistant', content: '' }, done: true, done_reason: 'stop', prompt_eval_count: 3, eval_count: 2, ...more });

describe('stream', () => {
  test.each(['text', 'thinking-tools', 'logprobs-crlf', 'forced'])('%s gives the same events however its bytes are split', (name) => {
    const make = name === 'forced' ? createForced : create;
    const bytes = fixture(name);
    const whole = replay(make, [bytes]);
    expect(brokenInvariants(whole)).toEqual([]);
    expect(whole.events.at(-1)).toEqual({ type: 'done' });
    for (const parts of everySplit(bytes)) expect(JSON.stringify(replay(make, parts))).toBe(JSON.stringify(whole));
  });

  test.each(['text', 'thinking-tools', 'logprobs-crlf'])('%s cut off at any byte ends as a failure, with nothing that was not said', (name) => {
    expect(brokenCuts(create, fixture(name))).toEqual([]);
  });

  test('text, its finish and its usage', () => {
    const { events, summary } = replay(create, [fixture('text')]);
    expect(gather(events).get(0)).toMatchObject({ content: '4 °C "in" 東京 é!\n', reasons: ['length'] });
    expect(summary).toMatchObject({ finishReason: 'length', usage: { tokens: { inputUncached: 26, outputText: 15 }, cachedKnown: false, reasoningKnown: false } });
  });

  test('calls of several lines are numbered on, have ids and keep every digit', () => {
    expect(gather(replay(create, [fixture('thinking-tools')]).events).get(0)).toEqual({
      content: '',
      reasoning: 'I should look.\n✓',
      calls: [
        { id: 'call_x', name: 'get_weather', arguments: '{"city":"Zürich","id":12345678901234567890}', extra: undefined },
        { id: 'call_seed1', name: 'get_time', arguments: '{}', extra: undefined },
        { id: 'call_seed2', name: 'get_weather', arguments: '{"city":"Oslo"}', extra: undefined },
      ],
      reasons: ['tool_calls'],
    });
  });

  test('logprobs', () => {
    expect(replay(create, [fixture('logprobs-crlf')]).events[0]).toMatchObject({ choices: [{ logprobs: { content: [{ token: 'A', logprob: -0.1, top_logprobs: [{ token: 'A' }, { token: 'é' }] }], refusal: null } }] });
  });

  test('a call that had to be made is told as the call it is, and as text when it is none', () => {
    expect(gather(replay(createForced, [fixture('forced')]).events).get(0)).toMatchObject({ content: '', calls: [{ id: 'call_seed0', name: 'get_weather', arguments: '{"city": "Oslo", "id": 12345678901234567890}' }], reasons: ['tool_calls'] });
    expect(gather(replay(createForced, lines([said('{"name":"get_w'), done({ done_reason: 'length' })])).events).get(0)).toMatchObject({ content: '{"name":"get_w', calls: [], reasons: ['length'] });
    const real = { message: { content: '', tool_calls: [{ function: { name: 'f', arguments: { a: 1 } } }] }, done: false };
    expect(gather(replay(createForced, lines([real, done()])).events).get(0)?.calls).toHaveLength(1);
  });

  test('arguments that came as text stay text', () => {
    expect(gather(run({ message: { content: '', tool_calls: [{ function: { name: 'f', arguments: '{"a":1}' } }, { function: { name: 'g', arguments: null } }] }, done: false }, done()).events).get(0)?.calls.map((call) => call.arguments)).toEqual(['{"a":1}', '{}']);
  });

  test('a last line without its line feed counts, and an answer without a word is one', () => {
    expect(replay(create, [Buffer.from(JSON.stringify(done()))]).events.at(-1)).toEqual({ type: 'done' });
  });

  test('a prompt that was still in memory is not counted: the caller estimates', () => {
    expect(run(said('a'), done({ prompt_eval_count: undefined })).summary).toMatchObject({ usage: undefined, usageUnreadable: false, outputBytes: 1 });
    expect(run(said('a'), done({ eval_count: -1 })).summary).toMatchObject({ usage: undefined, usageUnreadable: true });
    expect(readUsage({ prompt_eval_count: 0, eval_count: 0 })?.tokens).toMatchObject({ inputUncached: 0, outputText: 0 });
  });

  test.each([
    ['a stream that just stops', [said('a')], 'DISCONNECTED'],
    ['nothing at all', [], 'EMPTY'],
    ['a model that was only loaded', [done({ done_reason: 'load' })], 'EMPTY'],
    ['bytes that are no JSON', ['<html>'], 'GARBAGE'],
    ['a line of no object', [said('a'), '[1]'], 'GARBAGE'],
    ['a line beyond a megabyte', ['a'.repeat(1_100_000)], 'GARBAGE'],
    ['an error line', [said('a'), { error: 'an error was encountered while running the model: unexpected EOF' }], 'PROVIDER_ERROR'],
    ['an error line of no text', [{ error: {} }], 'PROVIDER_ERROR'],
  ])('%s fails', (_what, frames, expected) => {
    const whole = run(...frames);
    expect(whole.events.at(-1)).toMatchObject({ type: 'failed', failure: { class: expected, publicMessage: '' } });
    expect(brokenInvariants(whole)).toEqual([]);
  });

  test('no line of any JSON breaks it', () => {
    const oddity = fc.oneof(fc.jsonValue(), fc.constantFrom('stop', 'length', true, 0, {}, []));
    const call = fc.record({ id: oddity, function: fc.oneof(oddity, fc.record({ name: fc.oneof(oddity, fc.constant('f')), arguments: fc.oneof(fc.dictionary(fc.string(), fc.jsonValue()), fc.constantFrom(null, '', 1)) }, { requiredKeys: [] })) }, { requiredKeys: [] });
    const message = fc.record({ content: oddity, thinking: oddity, tool_calls: fc.oneof(oddity, fc.array(call)) }, { requiredKeys: [] });
    const frame = fc.oneof(oddity, fc.record({ message: fc.oneof(oddity, message), done: oddity, done_reason: oddity, error: oddity, logprobs: oddity, prompt_eval_count: oddity, eval_count: oddity }, { requiredKeys: [] }));
    fc.assert(
      fc.property(fc.array(frame), fc.boolean(), (frames, isForced) => {
        expect(brokenInvariants(replay(isForced ? createForced : create, lines(frames)))).toEqual([]);
      }),
    );
  });
});

describe('whole answer', () => {
  const read = (value: unknown, isForced = false) => readOllamaAnswer(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)), 'seed', isForced);

  test('thinking, text and calls', () => {
    const text = JSON.stringify({ ...done(), message: { role: 'assistant', content: 'Looking.', thinking: 'Hm.', tool_calls: [{ function: { name: 'f', arguments: { n: 0 } } }] } }).replace('"n":0', '"n":12345678901234567890');
    const result = read(text);
    expect(result.ok && JSON.parse(String(result.answer.choices))).toEqual([
      { index: 0, message: { role: 'assistant', content: 'Looking.', refusal: null, reasoning_content: 'Hm.', tool_calls: [{ id: 'call_seed0', type: 'function', function: { name: 'f', arguments: '{"n":12345678901234567890}' } }] }, logprobs: null, finish_reason: 'tool_calls' },
    ]);
    expect(result).toMatchObject({ answer: { usage: { tokens: { inputUncached: 3, outputText: 2 } } } });
  });

  test('a call that had to be made', () => {
    const result = read({ ...done(), message: { content: '{"name":"f","arguments":{"a":1}}' } }, true);
    expect(result.ok && JSON.parse(String(result.answer.choices))).toMatchObject([{ message: { content: null, tool_calls: [{ function: { name: 'f', arguments: '{"a":1}' } }] }, finish_reason: 'tool_calls' }]);
  });

  test.each([
    ['<html>502</html>', 'GARBAGE'],
    ['[]', 'GARBAGE'],
    [{}, 'EMPTY'],
    [done({ done_reason: 'load' }), 'EMPTY'],
    [said('half an'), 'DISCONNECTED'],
    [{ error: 'model runner has unexpectedly stopped' }, 'PROVIDER_ERROR'],
  ])('%j fails as %s', (body, expected) => {
    expect(read(body)).toMatchObject({ ok: false, failure: { class: expected } });
  });
});

test.each([
  [400, 'registry.ollama.ai/library/gemma3:27b does not support tools', 'BAD_REQUEST', true],
  [400, 'invalid options: temperature', 'BAD_REQUEST', false],
  [400, 'unexpected EOF', 'PROVIDER_ERROR', true],
  [404, "model 'llama9' not found", 'NOT_FOUND', true],
  [500, 'model requires more system memory (40 GiB) than is available (16 GiB)', 'PROVIDER_ERROR', true],
  [503, 'server busy, please try again. maximum pending requests exceeded', 'PROVIDER_ERROR', true],
])('a refusal of %d, %s, is %s', (status, message, expected, retryable) => {
  expect(classifyOllamaRefusal({ status, headers: {}, body: Buffer.from(JSON.stringify({ error: message })), nowMs: 0 })).toMatchObject({ class: expected, status, retryable });
});
