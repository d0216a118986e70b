import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { asNanoUsd, asPrice } from '@signalbox/kernel/money';
import { completionTokens, costOf, promptTokens } from '@signalbox/kernel/tokens';
import { brokenCuts, brokenInvariants, everySplit, gather, replay, type Replayed } from '../testing/replay.js';
import { classifyCohereRefusal } from './errors.js';
import { readCohereAnswer } from './response.js';
import { createCohereTransducer } from './stream.js';
import { readUsage } from './usage.js';

const fixture = (name: string): Buffer => readFileSync(new URL(`./testdata/${name}.sse`, import.meta.url));
const create = () => createCohereTransducer('seed');
const run = (...frames: readonly unknown[]): Replayed => replay(create, frames.map((value) => Buffer.from(`data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`)));
const text = (content: string): object => ({ type: 'content-delta', index: 0, delta: { message: { content: { text: content } } } });
const ended = (delta: object): object => ({ type: 'message-end', delta });

describe('stream', () => {
  test.each(['text', 'tools', 'thinking-crlf'])('%s gives the same events however its bytes are split', (name) => {
    const bytes = fixture(name);
    const whole = replay(create, [bytes]);
    expect(brokenInvariants(whole)).toEqual([]);
    expect(whole.events.at(-1)).toEqual({ type: 'done' });
    for (const parts of everySplit(bytes)) expect(replay(create, parts)).toEqual(whole);
  });

  test.each(['text', 'tools', 'thinking-crlf'])('%s cut off at any byte ends as a failure, with nothing that was not said', (name) => {
    expect(brokenCuts(create, fixture(name))).toEqual([]);
  });

  test('text arrives whole and what is billed counts, not what was added to the prompt', () => {
    const { events, summary } = replay(create, [fixture('text')]);
    expect(gather(events).get(0)).toMatchObject({ content: '4 °C "in" 東京 é', reasons: ['stop'] });
    expect(summary.usage).toMatchObject({ tokens: { inputUncached: 4, cacheRead: 5, outputText: 7 }, cachedKnown: true, reasoningKnown: false, isSuspect: false });
  });

  test('the plan is reasoning, calls come in pieces, a call without arguments is called with an empty object', () => {
    expect(gather(replay(create, [fixture('tools')]).events).get(0)).toEqual({
      content: '',
      reasoning: 'I will look.',
      calls: [
        { id: 'get_weather_k1', name: 'get_weather', arguments: '{\n    "city": "Zürich"}', extra: undefined },
        { id: 'get_time_k2', name: 'get_time', arguments: '{}', extra: undefined },
      ],
      reasons: ['tool_calls'],
    });
  });

  test('thoughts are told apart from text', () => {
    expect(gather(replay(create, [fixture('thinking-crlf')]).events).get(0)).toMatchObject({ content: 'Yes', reasoning: 'Hm, so.', reasons: ['length'] });
  });

  test('logprobs ride on the text they belong to', () => {
    const { events } = run({ ...text('hi'), logprobs: { text: 'hi', token_ids: [1, 2], logprobs: [-0.25, -0.5] } }, ended({ finish_reason: 'COMPLETE' }));
    expect(events[0]).toMatchObject({ choices: [{ delta: { content: 'hi' }, logprobs: { content: [{ token: 'hi', logprob: -0.75, bytes: [104, 105], top_logprobs: [] }], refusal: null } }] });
  });

  test.each([
    ['a stream that just stops', [text('a')], 'DISCONNECTED'],
    ['nothing at all', [], 'EMPTY'],
    ['bytes that are no JSON', ['<html>'], 'GARBAGE'],
    ['a JSON value that is no object', ['7'], 'GARBAGE'],
    ['an error in place of events', [{ message: 'internal server error' }], 'PROVIDER_ERROR'],
    ['a generation that failed', [text('a'), ended({ finish_reason: 'ERROR', error: 'scheduler overloaded' })], 'PROVIDER_ERROR'],
    ['a generation that failed without a word', [ended({ finish_reason: 'ERROR' })], 'PROVIDER_ERROR'],
    ['a generation that took too long', [text('a'), ended({ finish_reason: 'TIMEOUT' })], 'PROVIDER_ERROR'],
  ])('%s fails', (_what, frames, expected) => {
    const whole = run(...frames);
    expect(whole.events.at(-1)).toMatchObject({ type: 'failed', failure: { class: expected } });
    expect(brokenInvariants(whole)).toEqual([]);
  });

  test('arguments of a call whose start was lost are garbage', () => {
    const piece = { type: 'tool-call-delta', index: 3, delta: { message: { tool_calls: { function: { arguments: '{"a":1}' } } } } };
    expect(run(text('a'), piece, ended({ finish_reason: 'TOOL_CALL' })).events.at(-1)).toMatchObject({ type: 'failed', failure: { class: 'GARBAGE' } });
  });

  test('a call that the limit cut short stays as it is', () => {
    const { events } = run({ type: 'tool-call-start', index: 0, delta: { message: { tool_calls: { id: 'c', function: { name: 'f', arguments: '' } } } } }, ended({ finish_reason: 'MAX_TOKENS' }));
    expect(gather(events).get(0)).toMatchObject({ calls: [{ id: 'c', arguments: '' }], reasons: ['length'] });
  });

  test('no event of any JSON breaks it', () => {
    const oddity = fc.oneof(fc.jsonValue(), fc.constantFrom(0, 1, {}, [], 'COMPLETE', 'TOOL_CALL', 'ERROR'));
    const message = fc.record({ content: oddity, tool_plan: oddity, tool_calls: fc.oneof(oddity, fc.record({ id: oddity, function: fc.record({ name: oddity, arguments: fc.constantFrom('', '{}') }, { requiredKeys: [] }) }, { requiredKeys: [] })) }, { requiredKeys: [] });
    const delta = fc.record({ message: fc.oneof(oddity, message), finish_reason: oddity, usage: oddity, error: oddity }, { requiredKeys: [] });
    const type = fc.constantFrom('message-start', 'content-start', 'content-delta', 'tool-plan-delta', 'tool-call-start', 'tool-call-delta', 'tool-call-end', 'message-end', 'citation-start');
    const frame = fc.oneof(oddity, fc.record({ type: fc.oneof(type, oddity), index: fc.nat(3), delta: fc.oneof(oddity, delta), logprobs: oddity }, { requiredKeys: ['type'] }));
    const own = (wrong: readonly string[]): readonly string[] => wrong.filter((what) => what !== 'ids of calls differ' && what !== 'arguments are JSON');
    fc.assert(fc.property(fc.array(frame), (frames) => expect(own(brokenInvariants(run(...frames)))).toEqual([])));
  });
});

describe('whole answer', () => {
  const read = (value: unknown) => readCohereAnswer(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)), 'seed');

  test('plan, thoughts, calls and logprobs', () => {
    const result = read({
      id: 'x',
      finish_reason: 'TOOL_CALL',
      message: { role: 'assistant', tool_plan: 'I will look. ', content: [{ type: 'thinking', thinking: 'Hm.' }], tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }, { id: 'c2', type: 'function', function: { name: 'g' } }] },
      logprobs: [{ text: 'a', token_ids: [1], logprobs: [-1] }],
      usage: { billed_units: { input_tokens: 4, output_tokens: 2 }, tokens: { input_tokens: 70, output_tokens: 3 } },
    });
    expect(result.ok && JSON.parse(Buffer.from(result.answer.choices).toString())).toEqual([
      {
        index: 0,
        message: {
          role: 'assistant',
          content: null,
          refusal: null,
          reasoning_content: 'I will look. Hm.',
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }, { id: 'c2', type: 'function', function: { name: 'g', arguments: '{}' } }],
        },
        logprobs: { content: [{ token: 'a', logprob: -1, bytes: [97], top_logprobs: [] }], refusal: null },
        finish_reason: 'tool_calls',
      },
    ]);
    expect(result.ok && result.answer.usage?.tokens).toMatchObject({ inputUncached: 4, outputText: 2 });
  });

  test.each([
    ['<html>502</html>', 'GARBAGE'],
    ['[]', 'GARBAGE'],
    [{}, 'EMPTY'],
    [{ message: 'internal server error' }, 'PROVIDER_ERROR'],
    [{ message: { role: 'assistant', content: [] }, finish_reason: 'ERROR' }, 'PROVIDER_ERROR'],
    [{ message: { role: 'assistant', content: [] }, finish_reason: 'ERROR_TOXIC' }, 'CONTENT_POLICY'],
  ])('%j fails as %s', (body, expected) => {
    expect(read(body)).toMatchObject({ ok: false, failure: { class: expected } });
  });
});

describe('usage', () => {
  const price = asPrice(1_000_000n);
  const card = { id: 'c', inputUncached: price, cacheRead: price, cacheWrite: price, outputText: price, outputReasoning: price, audio: price, image: price, requestNanoUsd: asNanoUsd(0n) };
  const figure = fc.nat(1_000_000);

  test('buckets sum to what is billed and the cost is never negative', () => {
    fc.assert(
      fc.property(figure, figure, figure, (input, output, cached) => {
        const usage = readUsage({ billed_units: { input_tokens: input, output_tokens: output }, tokens: { input_tokens: input + 5, output_tokens: output }, cached_tokens: cached });
        if (usage === undefined) throw new Error('no usage');
        expect(promptTokens(usage.tokens)).toBe(input);
        expect(completionTokens(usage.tokens)).toBe(output);
        expect(costOf(usage.tokens, card) >= 0n).toBe(true);
        expect(usage.isSuspect).toBe(cached > input + 5);
      }),
    );
  });

  test('tokens stand in where nothing is said of the bill', () => {
    expect(readUsage({ tokens: { input_tokens: 7, output_tokens: 3 } })?.tokens).toMatchObject({ inputUncached: 7, outputText: 3 });
  });

  test.each([[{}], [{ billed_units: { input_tokens: -1, output_tokens: 2 } }], [{ tokens: { input_tokens: 1.5, output_tokens: 2 } }], [{ billed_units: { input_tokens: 2 ** 60, output_tokens: 2 } }], [null]])('refuses figures that are no counts: %j', (raw) => {
    expect(readUsage(raw)).toBeUndefined();
  });
});

describe('errors', () => {
  test.each([
    [400, { message: "invalid request: unsupported content type 'image_url'" }, 'BAD_REQUEST', false],
    [400, { message: 'too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs.' }, 'CONTEXT_LENGTH', true],
    [400, { error: { message: 'No fixture' } }, 'BAD_REQUEST', false],
    [401, { message: 'invalid api token' }, 'CREDENTIAL', true],
    [402, { message: 'Please add or update your payment method.' }, 'CREDENTIAL', true],
    [403, { message: 'Forbidden' }, 'CREDENTIAL', true],
    [403, { message: "your organization does not have access to model 'x'" }, 'NOT_FOUND', true],
    [403, '<html></html>', 'PROVIDER_ERROR', true],
    [400, { message: "invalid request: 'invalid_api_key' is no reasoning effort" }, 'BAD_REQUEST', false],
    [404, { message: "model 'x' not found, make sure the correct model ID was used" }, 'NOT_FOUND', true],
    [422, { message: 'invalid type: parameter seed' }, 'BAD_REQUEST', false],
    [429, { message: 'You are using a Trial key, which is limited to 20 API calls / minute.' }, 'RATE_LIMITED', true],
    [429, { message: 'You are using a Trial key, which is limited to 1000 API calls / month.' }, 'CREDENTIAL', true],
    [498, { message: 'invalid token' }, 'CREDENTIAL', true],
    [499, { message: 'client closed request' }, 'PROVIDER_ERROR', true],
    [500, { message: 'internal' }, 'PROVIDER_ERROR', true],
    [504, '<html></html>', 'PROVIDER_ERROR', true],
    [400, '<html></html>', 'PROVIDER_ERROR', true],
  ])('%d %j is %s', (status, error, expected, retryable) => {
    const told = classifyCohereRefusal({ status, headers: { 'retry-after': '3' }, body: Buffer.from(typeof error === 'string' ? error : JSON.stringify(error)), nowMs: 0 });
    expect(told).toMatchObject({ class: expected, status, retryable, retryAfterMs: 3_000 });
    if (!['BAD_REQUEST', 'CONTEXT_LENGTH'].includes(expected)) expect(told.publicMessage).toBe('');
  });
});
