import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { asNanoUsd, asPrice } from '@signalbox/kernel/money';
import { completionTokens, costOf, promptTokens } from '@signalbox/kernel/tokens';
import { brokenCuts, brokenInvariants, everySplit, gather, replay, type Replayed } from '../testing/replay.js';
import { classifyMessagesRefusal } from './errors.js';
import { readMessagesAnswer } from './response.js';
import { createMessagesTransducer } from './stream.js';
import { laterFigures, readFigures, usageOf } from './usage.js';

const fixture = (name: string): Buffer => readFileSync(new URL(`./testdata/${name}`, import.meta.url));
const create = () => createMessagesTransducer('seed', true);
const run = (...frames: readonly unknown[]): Replayed => replay(create, frames.map((value) => Buffer.from(`event: x\ndata: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`)));

const START = { type: 'message_start', message: { usage: { input_tokens: 10, output_tokens: 1 } } };
const STOP = { type: 'message_stop' };
const begin = (index: number, block: object): object => ({ type: 'content_block_start', index, content_block: block });
const delta = (index: number, told: object): object => ({ type: 'content_block_delta', index, delta: told });
const end = (index: number): object => ({ type: 'content_block_stop', index });
const finish = (reason: string, usage: object | undefined = { output_tokens: 5 }): object => ({ type: 'message_delta', delta: { stop_reason: reason }, ...(usage === undefined ? {} : { usage }) });
const said = (text: string): readonly object[] => [begin(0, { type: 'text', text: '' }), delta(0, { type: 'text_delta', text }), end(0)];
const error = (type: string, message = 'x'): object => ({ type: 'error', error: { type, message } });

describe('stream', () => {
  test.each(['text', 'tools', 'thinking-crlf', 'json-tool', 'refusal'])('%s gives the same events however its bytes are split', (name) => {
    const bytes = fixture(`${name}.sse`);
    const whole = replay(create, [bytes]);
    expect(brokenInvariants(whole)).toEqual([]);
    expect(whole.events.at(-1)).toEqual({ type: 'done' });
    for (const parts of everySplit(bytes)) expect(JSON.stringify(replay(create, parts))).toBe(JSON.stringify(whole));
  });

  test.each(['text', 'tools', 'thinking-crlf', 'json-tool'])('%s cut off at any byte ends as a failure, with nothing that was not said', (name) => {
    expect(brokenCuts(create, fixture(`${name}.sse`))).toEqual([]);
  });

  test('an answer that has its reason is whole, wherever the source ends behind it', () => {
    const bytes = fixture('text.sse');
    const whole = replay(create, [bytes]);
    const told = bytes.lastIndexOf('event: message_stop');
    for (let length = told; length < bytes.length; length += 1) {
      const cut = replay(create, [bytes.subarray(0, length)]);
      expect([length, cut.events, cut.summary.usage]).toEqual([length, whole.events, whole.summary.usage]);
    }
  });

  test('text, its finish, and input told at the start with output told at the end', () => {
    const { events, summary } = replay(create, [fixture('text.sse')]);
    expect(gather(events).get(0)).toMatchObject({ content: '4 °C "in" 東京 é!\n', reasons: ['length'] });
    expect(summary).toMatchObject({ finishReason: 'length', usage: { tokens: { inputUncached: 25, cacheRead: 14, cacheWrite: 6, outputText: 15, outputReasoning: 0 }, cachedKnown: true, reasoningKnown: false, isSuspect: false } });
  });

  test('calls are numbered apart from the blocks, keep every digit, and have arguments even when they take none', () => {
    const { events, summary } = replay(create, [fixture('tools.sse')]);
    expect(gather(events).get(0)).toEqual({
      content: 'Okay, let me look.',
      reasoning: '',
      calls: [
        { id: 'toolu_01T1x1fJ34qAmk2tNTrN7Up6', name: 'get_weather', arguments: '{"city": "Zürich", "id": 12345678901234567890}', extra: undefined },
        { id: 'toolu_02', name: 'get_time', arguments: '{}', extra: undefined },
      ],
      reasons: ['tool_calls'],
    });
    expect(summary.usage?.tokens).toMatchObject({ inputUncached: 472, outputText: 89 });
  });

  test('thinking goes out as text and, with its signature, as what can be sent back', () => {
    const { events, summary } = replay(create, [fixture('thinking-crlf.sse')]);
    expect(gather(events).get(0)).toMatchObject({ content: 'The answer is 21.', reasoning: 'I need the greatest common divisor of 1071 and 462.\n147 × 3 = 441 ✓', reasons: ['stop'] });
    const details = events.flatMap((event) => (event.type === 'chunk' ? event.choices.flatMap((choice) => (choice.delta as { reasoning_details?: object[] }).reasoning_details ?? []) : []));
    expect(details).toEqual([
      { type: 'reasoning.text', text: 'I need the greatest common divisor of 1071 and 462.\n147 × 3 = 441 ✓', signature: 'EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds', format: 'anthropic-claude-v1', index: 0 },
      { type: 'reasoning.encrypted', data: 'EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIwxtE3rAFBa8cr3qpP', format: 'anthropic-claude-v1', index: 1 },
    ]);
    expect(summary.usage).toMatchObject({ tokens: { outputText: 17, outputReasoning: 61 }, reasoningKnown: true });
  });

  test('the input of the JSON tool is the content, and the tool is never seen', () => {
    const { events } = replay(create, [fixture('json-tool.sse')]);
    expect(gather(events).get(0)).toEqual({ content: '{"city":"Oslo","celsius":4}', reasoning: '', calls: [], reasons: ['stop'] });
    expect(JSON.stringify(events)).not.toContain('signalbox');
    const asked = replay(() => createMessagesTransducer('seed', false), [fixture('json-tool.sse')]);
    expect(gather(asked.events).get(0)?.calls).toHaveLength(1);
  });

  test('a refusal ends what was said as content_filter, and is an answer to nothing said', () => {
    expect(gather(replay(create, [fixture('refusal.sse')]).events).get(0)).toMatchObject({ content: 'Sure, first', reasons: ['content_filter'] });
    expect(run(START, finish('refusal'), STOP)).toMatchObject({ events: [{ type: 'failed', failure: { class: 'CONTENT_POLICY' } }], summary: { usage: { tokens: { outputText: 5 } } } });
  });

  test('a filter that is not in the list of reasons stops it likewise, and an error is none of an answer', () => {
    const text = [{ type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'Sure' } }, { type: 'content_block_stop', index: 0 }];
    expect(gather(run(START, ...text, finish('sensitive'), STOP).events).get(0)).toMatchObject({ content: 'Sure', reasons: ['content_filter'] });
    expect(run(START, finish('sensitive'), STOP).events).toMatchObject([{ type: 'failed', failure: { class: 'CONTENT_POLICY' } }]);
    expect(run(START, ...text, finish('error'), STOP).events.at(-1)).toMatchObject({ type: 'failed', failure: { class: 'PROVIDER_ERROR' } });
  });

  test('where a refusal before the first block is not billed, its figures are not used; one behind a block is billed, thought that is not shown included', () => {
    const usageOf = (...frames: readonly object[]): unknown => replay(() => createMessagesTransducer('seed', true, undefined, true), frames.map((frame) => Buffer.from(`data: ${JSON.stringify(frame)}\n\n`))).summary.usage?.tokens.outputText;
    const thought = { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } };
    const lost = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Sure' } };
    expect([usageOf(START, finish('refusal'), STOP), usageOf(START, thought, finish('refusal'), STOP), usageOf(START, lost, finish('refusal'), STOP), usageOf(START, finish('end_turn'), STOP)]).toEqual([undefined, 5, 5, 5]);
    const read = (content: readonly object[], reason: string): unknown => readMessagesAnswer(Buffer.from(JSON.stringify({ type: 'message', content, stop_reason: reason, usage: { input_tokens: 106, output_tokens: 1 } })), 'seed', true, undefined, true);
    expect(read([], 'refusal')).toMatchObject({ ok: false, failure: { class: 'CONTENT_POLICY' }, usage: undefined });
    expect(read([{ type: 'thinking', thinking: '', signature: 'x' }], 'refusal')).toMatchObject({ ok: false, usage: { tokens: { inputUncached: 106 } } });
    expect(read([{ type: 'text', text: 'Sure' }], 'refusal')).toMatchObject({ ok: true, answer: { usage: { tokens: { inputUncached: 106 } } } });
  });

  test('input that came whole with the start of a call is its arguments, unless deltas follow', () => {
    const whole = run(START, begin(0, { type: 'tool_use', id: 'a', name: 'f', input: { a: 1 } }), end(0), begin(1, { type: 'tool_use', id: 'b', name: 'g', input: { b: 1 } }), delta(1, { type: 'input_json_delta', partial_json: '{"b":2}' }), end(1), finish('tool_use'), STOP);
    expect(gather(whole.events).get(0)?.calls.map((call) => call.arguments)).toEqual(['{"a":1}', '{"b":2}']);
  });

  test('what comes of a block whose start was lost, or that is over, is given; arguments of no call are garbage', () => {
    const lost = run(START, delta(0, { type: 'text_delta', text: 'It is ' }), end(0), delta(0, { type: 'text_delta', text: '4 °C.' }), delta(7, { type: 'thinking_delta', thinking: 'Hm.' }), finish('end_turn'), STOP);
    expect(gather(lost.events).get(0)).toMatchObject({ content: 'It is 4 °C.', reasoning: 'Hm.', reasons: ['stop'] });
    expect(run(START, ...said('a'), delta(1, { type: 'input_json_delta', partial_json: '{"a":1}' }), finish('tool_use'), STOP).events.at(-1)).toMatchObject({ type: 'failed', failure: { class: 'GARBAGE' } });
  });

  test('a block that begins in the place of another ends that one: each call has its arguments', () => {
    const call = (id: string): object => ({ type: 'content_block_start', content_block: { type: 'tool_use', id, name: id, input: {} } });
    const { events } = run(START, call('a'), call('b'), { type: 'content_block_delta', delta: { type: 'input_json_delta', partial_json: '{"b":1}' } }, finish('tool_use'), STOP);
    expect(gather(events).get(0)?.calls.map((each) => [each.id, each.arguments])).toEqual([['a', '{}'], ['b', '{"b":1}']]);
  });

  test('figures that more was said behind are not final', () => {
    expect(run(START, { type: 'message_delta', delta: {}, usage: { output_tokens: 1 } }, ...said('and so on'), { type: 'message_delta', delta: { stop_reason: 'end_turn' } }, STOP).summary).toMatchObject({ usage: undefined, promptUsage: { tokens: { inputUncached: 10 } } });
  });

  test('calls that share an id are told apart', () => {
    const whole = run(START, begin(0, { type: 'tool_use', id: 'a', name: 'f', input: {} }), begin(1, { type: 'tool_use', id: 'a', name: 'f', input: {} }), finish('tool_use'), STOP);
    expect(brokenInvariants(whole)).toEqual([]);
    expect(gather(whole.events).get(0)?.calls).toHaveLength(2);
  });

  test('an answer without a word is an answer', () => {
    expect(gather(run(START, finish('end_turn'), STOP).events).get(0)).toMatchObject({ content: '', reasons: ['stop'] });
  });

  test('a stream that says nothing after its finish ended well', () => {
    expect(run(START, ...said('a'), finish('end_turn')).events.at(-1)).toEqual({ type: 'done' });
  });

  test('an answer that breaks off has no usage but its prompt: the first output figure is a guess', () => {
    expect(run(START, ...said('abc')).summary).toMatchObject({ usage: undefined, promptUsage: { tokens: { inputUncached: 10, outputText: 0 }, cachedKnown: false }, usageUnreadable: false, outputBytes: 3 });
    const bytes = fixture('cut-cached.sse');
    for (const parts of everySplit(bytes)) {
      const { events, summary } = replay(create, parts);
      expect(events.at(-1)).toMatchObject({ type: 'failed', failure: { class: 'DISCONNECTED' } });
      expect(summary).toMatchObject({ usage: undefined, promptUsage: { tokens: { inputUncached: 3, cacheRead: 100_000, cacheWrite: 40, outputText: 0, outputReasoning: 0 }, cachedKnown: true }, outputBytes: 11 });
    }
  });

  test.each([
    ['nothing', undefined],
    ['zeros, as hosts do that count at the end', { input_tokens: 0, output_tokens: 0 }],
    ['no count', { input_tokens: -1, output_tokens: 1 }],
  ])('of a start that tells %s the prompt is not known', (_what, usage) => {
    expect(run({ type: 'message_start', message: { usage } }, ...said('abc')).summary).toMatchObject({ usage: undefined, promptUsage: undefined });
    expect(run({ type: 'message_start', message: { usage } }, ...said('abc'), finish('end_turn', { input_tokens: 9, output_tokens: 5 }), STOP).summary).toMatchObject({ usage: { tokens: { inputUncached: 9, outputText: 5 } } });
  });

  test('input without output tells the prompt', () => {
    expect(run({ type: 'message_start', message: { usage: { input_tokens: 4, cache_read_input_tokens: 5 } } }, ...said('abc')).summary.promptUsage?.tokens).toMatchObject({ inputUncached: 4, cacheRead: 5, outputText: 0 });
  });

  test.each([
    ['a stream that just stops', [START, ...said('a')], 'DISCONNECTED', 200],
    ['a stream that stops at its start', [START], 'DISCONNECTED', 200],
    ['nothing at all', [], 'EMPTY', 200],
    ['pings alone', [{ type: 'ping' }], 'EMPTY', 200],
    ['an end alone', [STOP], 'EMPTY', 200],
    ['bytes that are no JSON', ['<html>'], 'GARBAGE', 200],
    ['overload before the answer', [error('overloaded_error')], 'PROVIDER_ERROR', 529],
    ['overload within it', [START, ...said('a'), error('overloaded_error')], 'PROVIDER_ERROR', 529],
    ['a rate limit', [error('rate_limit_error')], 'RATE_LIMITED', 429],
    ['a refused key', [error('authentication_error')], 'CREDENTIAL', 200],
    ['a call without a name', [START, begin(0, { type: 'tool_use', id: 'a' })], 'GARBAGE', 200],
    ['an error of no kind', [{ type: 'error' }], 'PROVIDER_ERROR', 200],
  ])('%s fails', (_what, frames, expected, status) => {
    const whole = run(...frames);
    expect(whole.events.at(-1)).toMatchObject({ type: 'failed', failure: { class: expected, status, publicMessage: '' } });
    expect(brokenInvariants(whole)).toEqual([]);
  });

  test('no event of any JSON breaks it', () => {
    const oddity = fc.oneof(fc.jsonValue(), fc.constantFrom('end_turn', 'tool_use', 'refusal', 0, 1, -1, {}, []));
    const type = fc.constantFrom('message_start', 'content_block_start', 'content_block_delta', 'content_block_stop', 'message_delta', 'message_stop', 'error', 'ping', 'x');
    const block = fc.record({ type: fc.constantFrom('text', 'thinking', 'redacted_thinking', 'tool_use', 'server_tool_use'), text: oddity, thinking: oddity, signature: oddity, data: oddity, id: oddity, name: fc.oneof(oddity, fc.constant('f')), input: oddity }, { requiredKeys: [] });
    const part = fc.record({ type: fc.constantFrom('text_delta', 'thinking_delta', 'signature_delta', 'input_json_delta'), text: oddity, thinking: oddity, signature: oddity, partial_json: fc.constantFrom('', 1, null), stop_reason: oddity }, { requiredKeys: [] });
    const frame = fc.oneof(oddity, fc.record({ type: fc.oneof(oddity, type), index: fc.constantFrom(0, 1, 'x'), content_block: fc.oneof(oddity, block), delta: fc.oneof(oddity, part), usage: oddity, message: oddity, error: oddity }, { requiredKeys: [] }));
    fc.assert(fc.property(fc.array(frame), (frames) => expect(brokenInvariants(run(...frames))).toEqual([])));
  });
});

describe('whole answer', () => {
  const read = (value: unknown, isUnwrapped = true) => readMessagesAnswer(Buffer.isBuffer(value) ? value : Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)), 'seed', isUnwrapped);
  const message = (content: readonly object[], more: object = {}): object => ({ type: 'message', role: 'assistant', content, stop_reason: 'end_turn', usage: { input_tokens: 1, output_tokens: 2 }, ...more });

  test('thinking, text and calls, with every digit of their arguments', () => {
    const result = read(fixture('answer.json'));
    expect(result.ok && JSON.parse(String(result.answer.choices))).toEqual([
      {
        index: 0,
        message: {
          role: 'assistant',
          content: 'Looking.',
          refusal: null,
          reasoning_content: 'Two places.',
          reasoning_details: [
            { type: 'reasoning.text', text: 'Two places.', signature: 'sig1==', format: 'anthropic-claude-v1', index: 0 },
            { type: 'reasoning.encrypted', data: 'enc==', format: 'anthropic-claude-v1', index: 1 },
          ],
          tool_calls: [
            { id: 'toolu_A', type: 'function', function: { name: 'get_weather', arguments: expect.stringMatching(/"id": 12345678901234567890\b/) } },
            { id: 'toolu_B', type: 'function', function: { name: 'get_time', arguments: '{}' } },
          ],
        },
        logprobs: null,
        finish_reason: 'tool_calls',
      },
    ]);
    expect(result).toMatchObject({ answer: { usage: { tokens: { inputUncached: 2095, cacheRead: 400, cacheWrite: 100, outputText: 383, outputReasoning: 120 } } } });
  });

  test('the input of the JSON tool is the content', () => {
    const answer = message([{ type: 'tool_use', id: 'a', name: 'signalbox_json_answer', input: { a: [1] } }], { stop_reason: 'tool_use' });
    const result = read(answer);
    expect(result.ok && JSON.parse(String(result.answer.choices))).toMatchObject([{ message: { content: '{"a":[1]}' }, finish_reason: 'stop' }]);
    expect(result.ok && String(result.answer.choices)).not.toContain('signalbox');
  });

  test.each([
    ['<html>502</html>', 'GARBAGE'],
    ['[]', 'GARBAGE'],
    [{}, 'EMPTY'],
    [{ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }, 'PROVIDER_ERROR'],
    [message([], { stop_reason: 'refusal' }), 'CONTENT_POLICY'],
    [message([], { stop_reason: 'sensitive' }), 'CONTENT_POLICY'],
    [message([{ type: 'text', text: 'Half' }], { stop_reason: 'error' }), 'PROVIDER_ERROR'],
  ])('%j fails as %s', (body, expected) => {
    expect(read(body)).toMatchObject({ ok: false, failure: { class: expected } });
  });

  test('whole and streamed say the same', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.record({ type: fc.constant('text'), text: fc.string() }), fc.record({ type: fc.constant('tool_use'), name: fc.constantFrom('f', 'g'), input: fc.dictionary(fc.string(), fc.jsonValue()) })), { minLength: 1 }), (drawn) => {
        const content = drawn.map((block, index) => ({ ...block, id: `toolu_${String(index)}` }));
        const frames = content.flatMap((block, index) =>
          block.type === 'text' ? [begin(index, { type: 'text', text: '' }), delta(index, { type: 'text_delta', text: block.text }), end(index)] : [begin(index, { ...block, input: {} }), delta(index, { type: 'input_json_delta', partial_json: JSON.stringify(block.input) }), end(index)],
        );
        const whole = read(message(content));
        const streamed = gather(run(START, ...frames, finish('end_turn'), STOP).events).get(0);
        const [choice] = whole.ok ? (JSON.parse(String(whole.answer.choices)) as { message: { content: string | null; tool_calls?: { id: string; function: { name: string; arguments: string } }[] }; finish_reason: string }[]) : [];
        expect(choice?.message.content ?? '').toBe(streamed?.content);
        expect((choice?.message.tool_calls ?? []).map((call) => [call.id, call.function.name, call.function.arguments])).toEqual(streamed?.calls.map((call) => [call.id, call.name, call.arguments]));
        expect(choice?.finish_reason).toBe(streamed?.reasons[0]);
      }),
    );
  });
});

describe('usage', () => {
  const price = asPrice(1_000_000n);
  const card = { id: 'c', inputUncached: price, cacheRead: price, cacheWrite: price, outputText: price, outputReasoning: price, audio: price, image: price, requestNanoUsd: asNanoUsd(0n) };
  const figure = fc.nat(1_000_000);
  const usage = (first: object, later?: object) => {
    const before = readFigures(first);
    const after = later === undefined ? undefined : readFigures(later);
    return usageOf(after === undefined ? before : laterFigures(before, after));
  };

  test('buckets sum to what Anthropic counts and the cost is never negative', () => {
    fc.assert(
      fc.property(figure, figure, figure, figure, figure, (input, cacheRead, cacheWrite, output, thinking) => {
        const read = usage({ input_tokens: input, cache_read_input_tokens: cacheRead, cache_creation_input_tokens: cacheWrite, output_tokens: output, output_tokens_details: { thinking_tokens: thinking } });
        if (read === undefined) throw new Error('no usage');
        expect(promptTokens(read.tokens)).toBe(input + cacheRead + cacheWrite);
        expect(completionTokens(read.tokens)).toBe(output);
        expect(costOf(read.tokens, card) >= 0n).toBe(true);
        expect(Object.values(read.tokens).every((count) => count >= 0)).toBe(true);
      }),
    );
  });

  test.each([
    ['later output counts, earlier input stays', { input_tokens: 9, cache_read_input_tokens: 4, output_tokens: 1 }, { output_tokens: 7 }, { inputUncached: 9, cacheRead: 4, outputText: 7 }],
    ['input of 0 beside the output is no news', { input_tokens: 9, output_tokens: 1 }, { input_tokens: 0, output_tokens: 7 }, { inputUncached: 9, outputText: 7 }],
    ['input told anew replaces what was told', { input_tokens: 100, output_tokens: 0 }, { input_tokens: 20, cache_read_input_tokens: 80, output_tokens: 7 }, { inputUncached: 20, cacheRead: 80, outputText: 7 }],
    ['input told late counts', { input_tokens: 0, output_tokens: 0 }, { input_tokens: 20, output_tokens: 7 }, { inputUncached: 20, outputText: 7 }],
    ['explicit zeros are figures', { input_tokens: 0, output_tokens: 0 }, { output_tokens: 0 }, { inputUncached: 0, outputText: 0 }],
  ])('%s', (_what, first, later, tokens) => {
    expect(usage(first, later)?.tokens).toMatchObject(tokens);
  });

  test('writes for an hour, which the card has no price of, are suspect', () => {
    expect(usage({ input_tokens: 1, cache_creation_input_tokens: 8, cache_creation: { ephemeral_1h_input_tokens: 8 }, output_tokens: 1 })).toMatchObject({ isSuspect: true });
  });

  test.each([[{ input_tokens: -1, output_tokens: 2 }], [{ input_tokens: 1.5, output_tokens: 2 }], [{ input_tokens: 2 ** 60, output_tokens: 2 }], [{ output_tokens: 2 }], [{}], [null]])('refuses figures that are no counts: %j', (raw) => {
    expect(usageOf(readFigures(raw))).toBeUndefined();
  });

  test('figures that are no counts are told as unreadable', () => {
    expect(run(START, ...said('a'), finish('end_turn', { output_tokens: -3 }), STOP).summary).toMatchObject({ usage: undefined, usageUnreadable: true });
    expect(run(START, ...said('a'), { type: 'message_delta', delta: { stop_reason: 'end_turn' } }, STOP).summary).toMatchObject({ usage: undefined, usageUnreadable: false });
  });
});

describe('errors', () => {
  const classify = (status: number, body: unknown, headers = {}) => classifyMessagesRefusal({ status, headers, body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)), nowMs: 0 });

  test.each([
    [400, error('invalid_request_error', 'max_tokens: must be greater than or equal to 1'), 'BAD_REQUEST', false],
    [400, error('invalid_request_error', 'tool_choice: type "tool" and "any" are not supported for this model.'), 'BAD_REQUEST', true],
    [400, error('invalid_request_error', 'output_config.format.schema: Invalid schema: The compiled grammar is too large, which would cause performance issues. Simplify your tool schemas or reduce the number of strict tools.'), 'BAD_REQUEST', true],
    [400, error('invalid_request_error', 'Schema is too complex for compilation. Try reducing the number of tools or simplifying tool schemas.'), 'BAD_REQUEST', true],
    [400, error('invalid_request_error', 'Schemas contains too many optional parameters (87), which would make grammar compilation inefficient. Reduce the number of optional parameters in your tool schemas (limit: 24).'), 'BAD_REQUEST', true],
    [400, error('invalid_request_error', 'prompt is too long: 200251 tokens > 200000 maximum'), 'CONTEXT_LENGTH', true],
    [400, error('invalid_request_error', 'Your credit balance is too low to access the Anthropic API.'), 'CREDENTIAL', true],
    [400, error('invalid_request_error', 'Output blocked by content filtering policy'), 'CONTENT_POLICY', false],
    [401, error('authentication_error', 'invalid x-api-key'), 'CREDENTIAL', true],
    [402, error('billing_error'), 'CREDENTIAL', true],
    [403, error('permission_error'), 'CREDENTIAL', true],
    [403, error('permission_error', 'Your organization does not have access to model claude-x.'), 'NOT_FOUND', true],
    [403, error('permission_error', 'Your API key does not have permission to use the specified resource.'), 'NOT_FOUND', true],
    [403, error('permission_error', 'OAuth authentication is currently not allowed for this organization.'), 'CREDENTIAL', true],
    [403, '<html>from something in between</html>', 'PROVIDER_ERROR', true],
    [400, error('invalid_request_error', 'You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.'), 'CREDENTIAL', true],
    [400, error('invalid_request_error', 'You have reached your specified workspace API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.'), 'CREDENTIAL', true],
    [400, error('invalid_request_error', "output_config.effort: Input should be 'low' or 'high', got 'credit balance'"), 'BAD_REQUEST', false],
    [404, error('not_found_error', 'model: claude-x'), 'NOT_FOUND', true],
    [413, error('request_too_large'), 'CONTEXT_LENGTH', true],
    [429, error('rate_limit_error', 'This request would exceed your rate limit.'), 'RATE_LIMITED', true],
    [429, error('rate_limit_error', 'You have reached your specified API usage limits.'), 'CREDENTIAL', true],
    [429, { type: 'error', error: { type: 'rate_limit_error', message: 'Usage is paused until the first day of the next month.', details: { error_code: 'enforced_spend_limit_reached' } } }, 'CREDENTIAL', true],
    [500, error('api_error', 'Internal server error'), 'PROVIDER_ERROR', true],
    [529, error('overloaded_error', 'Overloaded'), 'PROVIDER_ERROR', true],
    [400, [{ error: { code: 400, message: 'Publisher model not found', status: 'FAILED_PRECONDITION' } }], 'BAD_REQUEST', false],
    [429, { error: { code: 429, message: 'Quota exceeded', status: 'RESOURCE_EXHAUSTED' } }, 'RATE_LIMITED', true],
    [502, '<html>Bad Gateway</html>', 'PROVIDER_ERROR', true],
    [400, '<html>from something in between</html>', 'PROVIDER_ERROR', true],
    [413, '<html>413 Request Entity Too Large</html>', 'CONTEXT_LENGTH', true],
    [401, '', 'CREDENTIAL', true],
    [302, '', 'PROVIDER_ERROR', true],
  ])('%d %j is %s', (status, body, expected, retryable) => {
    expect(classify(status, body)).toMatchObject({ class: expected, status, retryable });
  });

  test('the hint of when to come back is kept, and nothing else of a failure that is ours is told', () => {
    expect(classify(429, error('rate_limit_error', 'org-1234567 is over its limit'), { 'retry-after': '12' })).toMatchObject({ retryAfterMs: 12_000, publicMessage: '' });
    expect(classify(529, 'x', { 'retry-after': '3' })).toMatchObject({ retryAfterMs: 3_000 });
    expect(classify(400, error('invalid_request_error', 'bad key sk-ant-api03-abcdefgh in temperature')).publicMessage).toBe('bad key [redacted] in temperature');
  });
});
