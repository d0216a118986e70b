import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { asNanoUsd, asPrice } from '@signalbox/kernel/money';
import { completionTokens, costOf, promptTokens } from '@signalbox/kernel/tokens';
import type { FailureClass } from '../canonical.js';
import { eventMessage, exceptionEvent, jsonEvent, textHeader } from '../testing/event-stream.js';
import { brokenInvariants, everySplit, gather, replay, type Replayed } from '../testing/replay.js';
import { classifyConverseException, classifyConverseRefusal } from './errors.js';
import { readConverseAnswer } from './response.js';
import { createConverseTransducer } from './stream.js';
import { readUsage } from './usage.js';

const file = (name: string): string => readFileSync(new URL(`./testdata/${name}`, import.meta.url), 'utf8');
const fixture = (name: string): Buffer => Buffer.concat(file(`${name}.jsonl`).trim().split('\n').map((line) => jsonEvent(...(JSON.parse(line) as [string, unknown]))));
const create = () => createConverseTransducer({ seed: 'seed', isUnwrapped: false, isClaude: true, isOpenAi: false, names: new Map() });
const run = (...parts: readonly Buffer[]): Replayed => replay(create, parts);

const START = jsonEvent('messageStart', { role: 'assistant' });
const TEXT = jsonEvent('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'four' } });
const stopped = (stopReason: string): Buffer => jsonEvent('messageStop', { stopReason });
const USAGE = jsonEvent('metadata', { usage: { inputTokens: 5, outputTokens: 1, totalTokens: 6 } });

describe('stream', () => {
  test.each(['text', 'thinking-tools', 'json-tool', 'openai-cached'])('%s gives the same events however its bytes are split', (name) => {
    const bytes = fixture(name);
    const whole = run(bytes);
    expect(brokenInvariants(whole)).toEqual([]);
    expect(whole.events.at(-1)).toEqual({ type: 'done' });
    expect(everySplit(bytes).filter((parts) => !isDeepStrictEqual(replay(create, parts), whole))).toEqual([]);
  });

  test('text, and the usage that follows the stop reason', () => {
    const { events, summary } = run(fixture('text'));
    expect(gather(events).get(0)).toEqual({ content: '4 °C "in" 東京 é', reasoning: '', calls: [], reasons: ['stop'] });
    expect(summary).toMatchObject({ finishReason: 'stop', contentSeen: true, isFinished: true, outputBytes: 20, usage: { tokens: { inputUncached: 14, outputText: 9 }, cachedKnown: true, reasoningKnown: false, isSuspect: false } });
  });

  test('thought with its signature, calls with every digit, buckets that are disjoint', () => {
    const { events, summary } = run(fixture('thinking-tools'));
    expect(gather(events).get(0)).toEqual({
      content: 'Let me see.',
      reasoning: 'I should look.',
      calls: [
        { id: 'tooluse_aZ9-_x', name: 'get_weather', arguments: '{"city": "Zürich", "id": 12345678901234567890}', extra: undefined },
        { id: 'tooluse_b', name: 'get_time', arguments: '{}', extra: undefined },
      ],
      reasons: ['tool_calls'],
    });
    const details = events.flatMap((event) => (event.type === 'chunk' ? event.choices.flatMap(({ delta }) => (delta as { reasoning_details?: unknown[] }).reasoning_details ?? []) : []));
    expect(details).toEqual([
      { type: 'reasoning.text', text: 'I should look.', signature: 'EqQBCkgIARABGAIi', format: 'anthropic-claude-v1', index: 0 },
      { type: 'reasoning.encrypted', data: 'c2VjcmV0', format: 'anthropic-claude-v1', index: 1 },
    ]);
    expect(summary.usage).toMatchObject({ tokens: { inputUncached: 30, cacheRead: 1_000, cacheWrite: 200, outputText: 49 }, isSuspect: false });
  });

  test('a stream of OpenAI’s models counts what the cache wrote within the input, a whole answer beside it: either is charged once', () => {
    const reading = { seed: 'seed', isUnwrapped: false, isClaude: false, isOpenAi: true, names: new Map() };
    const { summary } = replay(() => createConverseTransducer(reading), [fixture('openai-cached')]);
    const once = { tokens: { inputUncached: 2, cacheRead: 0, cacheWrite: 4_993, outputText: 19 }, isSuspect: false };
    expect(summary.usage).toMatchObject(once);
    const usage = { inputTokens: 2, outputTokens: 19, totalTokens: 5_014, cacheReadInputTokens: 0, cacheWriteInputTokens: 4_993 };
    const whole = readConverseAnswer(Buffer.from(JSON.stringify({ output: { message: { role: 'assistant', content: [{ text: 'Noted.' }] } }, stopReason: 'end_turn', usage })), reading);
    expect(whole).toMatchObject({ ok: true, answer: { usage: once } });
    // A whole answer's rest may be longer than what the cache had.
    const long = readConverseAnswer(Buffer.from(JSON.stringify({ output: { message: { role: 'assistant', content: [{ text: 'Noted.' }] } }, stopReason: 'end_turn', usage: { ...usage, inputTokens: 9_000, totalTokens: 14_012 } })), reading);
    expect(long).toMatchObject({ ok: true, answer: { usage: { tokens: { inputUncached: 9_000, cacheWrite: 4_993 }, isSuspect: false } } });
    // Claude's streams keep them apart.
    expect(replay(create, [fixture('openai-cached')]).summary.usage).toMatchObject({ tokens: { inputUncached: 4_995, cacheWrite: 4_993 }, isSuspect: false });
  });

  test('what another maker’s model signs is not given out as Claude’s', () => {
    const { events } = replay(() => createConverseTransducer({ seed: 'seed', isUnwrapped: false, isClaude: false, isOpenAi: false, names: new Map() }), [fixture('thinking-tools')]);
    expect(gather(events).get(0)).toMatchObject({ content: 'Let me see.', reasoning: 'I should look.' });
    const whole = readConverseAnswer(Buffer.from(file('answer.json')), { seed: 'seed', isUnwrapped: false, isClaude: false, isOpenAi: false, names: new Map() });
    expect(whole.ok && (JSON.parse(String(whole.answer.choices)) as { message: object }[])[0]?.message).toMatchObject({ reasoning_content: 'I should look.' });
    expect(JSON.stringify(events) + String(whole.ok && whole.answer.choices)).not.toContain('reasoning_details');
  });

  test('the input of the tool that stands for a JSON answer is the content, and only where it is ours', () => {
    const { events } = replay(() => createConverseTransducer({ seed: 'seed', isUnwrapped: true, isClaude: true, isOpenAi: false, names: new Map() }), [fixture('json-tool')]);
    expect(gather(events).get(0)).toEqual({ content: '{"c": 4}', reasoning: '', calls: [], reasons: ['stop'] });
    expect(gather(run(fixture('json-tool')).events).get(0)).toMatchObject({ content: '', calls: [{ name: 'signalbox_json_answer' }], reasons: ['tool_calls'] });
  });

  test.each<[string, string]>([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['guardrail_intervened', 'content_filter'],
    ['content_filtered', 'content_filter'],
    ['refusal', 'content_filter'],
    ['something_new', 'stop'],
  ])('%s is %s', (told, ours) => {
    expect(gather(run(START, TEXT, stopped(told), USAGE).events).get(0)?.reasons).toEqual([ours]);
  });

  test.each<[string, readonly Buffer[], FailureClass]>([
    ['nothing at all', [], 'EMPTY'],
    ['a start alone', [START], 'DISCONNECTED'],
    ['text that just stops', [START, TEXT], 'DISCONNECTED'],
    ['a message cut within', [START, TEXT, stopped('end_turn').subarray(0, 20)], 'DISCONNECTED'],
    ['a page', [Buffer.from('<html><body>Bad Gateway</body></html>')], 'GARBAGE'],
    ['a flipped bit', [START, Buffer.from(TEXT.map((byte, at) => (at === 40 ? byte ^ 1 : byte)))], 'GARBAGE'],
    ['an event that is no JSON', [START, eventMessage(textHeader(':event-type', 'contentBlockDelta'), '{"del')], 'GARBAGE'],
    ['a call without a name', [START, jsonEvent('contentBlockStart', { contentBlockIndex: 0, start: { toolUse: { toolUseId: 'a' } } })], 'GARBAGE'],
    ['an exception at once', [exceptionEvent('throttlingException', 'Too many requests, please wait.')], 'RATE_LIMITED'],
    ['an exception after text', [START, TEXT, exceptionEvent('modelStreamErrorException', 'x')], 'PROVIDER_ERROR'],
    ['an exception of ours', [exceptionEvent('validationException', 'Input is too long for requested model.')], 'CONTEXT_LENGTH'],
    ['an unmodeled error', [eventMessage(Buffer.concat([textHeader(':message-type', 'error'), textHeader(':error-code', 'InternalFailure'), textHeader(':error-message', 'secret text')]), '')], 'PROVIDER_ERROR'],
    ['a malformed call', [START, stopped('malformed_tool_use'), USAGE], 'PROVIDER_ERROR'],
    ['an answer that policy left nothing of', [START, stopped('guardrail_intervened'), USAGE], 'CONTENT_POLICY'],
    ['a refusal of Claude before its first word', [START, stopped('refusal'), USAGE], 'CONTENT_POLICY'],
  ])('%s fails', (_what, parts, expected) => {
    const whole = run(...parts);
    expect(whole.events.at(-1)).toMatchObject({ type: 'failed', failure: { class: expected } });
    expect(JSON.stringify(whole.events.at(-1))).not.toContain('secret');
    expect(brokenInvariants(whole)).toEqual([]);
  });

  test('a malformed call or answer is the model’s fault, and its endpoint works', () => {
    expect(run(START, TEXT, stopped('malformed_model_output'), USAGE).events.at(-1)).toMatchObject({ failure: { class: 'PROVIDER_ERROR', retryable: true, isEndpointWell: true } });
  });

  test.each<[string, readonly Buffer[]]>([
    ['missing', []],
    ['cut off', [USAGE.subarray(0, 30)]],
  ])('usage that is %s behind the stop reason leaves the answer whole', (_what, parts) => {
    const { events, summary } = run(START, TEXT, stopped('end_turn'), ...parts);
    expect(gather(events).get(0)).toMatchObject({ content: 'four', reasons: ['stop'] });
    expect(events.at(-1)).toEqual({ type: 'done' });
    expect(summary).toMatchObject({ usage: undefined, usageUnreadable: false });
  });

  test('arguments of a call whose start was lost are garbage', () => {
    expect(run(START, jsonEvent('contentBlockDelta', { contentBlockIndex: 1, delta: { toolUse: { input: '{"a":1}' } } }), stopped('tool_use'), USAGE).events.at(-1)).toMatchObject({ type: 'failed', failure: { class: 'GARBAGE' } });
  });

  test('a block that begins in the place of another ends that one: each call has its arguments', () => {
    const call = (name: string): Buffer => jsonEvent('contentBlockStart', { contentBlockIndex: 0, start: { toolUse: { toolUseId: name, name } } });
    const { events } = run(START, call('a'), call('b'), jsonEvent('contentBlockDelta', { contentBlockIndex: 0, delta: { toolUse: { input: '{"b":1}' } } }), stopped('tool_use'), USAGE);
    expect(gather(events).get(0)?.calls.map((each) => [each.id, each.arguments])).toEqual([['a', '{}'], ['b', '{"b":1}']]);
  });

  test('figures that more was said behind are not final', () => {
    expect(run(START, USAGE, TEXT, stopped('end_turn')).summary).toMatchObject({ usage: undefined, promptUsage: { tokens: { inputUncached: 5 } } });
  });

  test('figures that are no counts are said to be unreadable', () => {
    expect(run(START, TEXT, stopped('end_turn'), jsonEvent('metadata', { usage: { inputTokens: -1, outputTokens: 1 } })).summary).toMatchObject({ usage: undefined, usageUnreadable: true });
  });

  test('no events of any JSON break it', () => {
    const oddity = fc.oneof(fc.jsonValue(), fc.constantFrom('end_turn', 'tool_use', 0, 1, -1, {}, []));
    const use = fc.record({ toolUseId: oddity, name: fc.oneof(fc.string({ minLength: 1 }), oddity), input: oddity }, { requiredKeys: [] });
    const delta = fc.record({ text: oddity, toolUse: fc.oneof(oddity, fc.record({ input: fc.constantFrom('', '{}') })), reasoningContent: fc.oneof(oddity, fc.record({ text: oddity, signature: oddity, redactedContent: oddity }, { requiredKeys: [] })) }, { requiredKeys: [] });
    const index = fc.constantFrom<unknown>(0, 1, 2, 'x');
    const event = fc.oneof(
      fc.tuple(fc.constant('contentBlockStart'), fc.record({ contentBlockIndex: index, start: fc.oneof(oddity, fc.record({ toolUse: use })) })),
      fc.tuple(fc.constant('contentBlockDelta'), fc.record({ contentBlockIndex: index, delta: fc.oneof(oddity, delta) })),
      fc.tuple(fc.constant('contentBlockStop'), fc.record({ contentBlockIndex: index })),
      fc.tuple(fc.constantFrom('messageStart', 'messageStop', 'metadata', 'other'), fc.oneof(oddity, fc.record({ stopReason: oddity, usage: oddity }, { requiredKeys: [] }))),
    );
    fc.assert(
      fc.property(fc.array(event), (events) => {
        // Pieces of a call's input are what the model makes of them.
        const broken = brokenInvariants(run(...events.map(([type, payload]) => jsonEvent(type, payload)))).filter((what) => what !== 'arguments are JSON');
        expect(broken).toEqual([]);
      }),
    );
  });
});

describe('whole answer', () => {
  const read = (value: unknown, isUnwrapped = false, isClaude = true) => readConverseAnswer(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)), { seed: 'seed', isUnwrapped, isClaude, isOpenAi: false, names: new Map() });
  const answer = (content: readonly object[], stopReason: string): object => ({ output: { message: { role: 'assistant', content } }, stopReason, usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5 } });

  test('text, thought, calls and usage', () => {
    const result = read(file('answer.json'));
    expect(result.ok && JSON.parse(String(result.answer.choices))).toEqual([
      {
        index: 0,
        message: {
          role: 'assistant',
          content: 'Let me see.',
          refusal: null,
          reasoning_content: 'I should look.',
          reasoning_details: [
            { type: 'reasoning.text', text: 'I should look.', signature: 'EqQBCkgIARABGAIi', format: 'anthropic-claude-v1', index: 0 },
            { type: 'reasoning.encrypted', data: 'c2VjcmV0', format: 'anthropic-claude-v1', index: 1 },
          ],
          tool_calls: [
            { id: 'tooluse_a', type: 'function', function: { name: 'get_weather', arguments: '{ "city": "Zürich", "id": 12345678901234567890 }' } },
            { id: 'tooluse_b', type: 'function', function: { name: 'get_time', arguments: '{}' } },
          ],
        },
        logprobs: null,
        finish_reason: 'tool_calls',
      },
    ]);
    expect(result).toMatchObject({ ok: true, answer: { usage: { tokens: { inputUncached: 30, outputText: 49 } }, usageUnreadable: false } });
  });

  test('a JSON answer is unwrapped and finishes as stop', () => {
    const result = read(answer([{ toolUse: { toolUseId: 'x', name: 'signalbox_json_answer', input: { c: 4 } } }], 'tool_use'), true);
    expect(result.ok && JSON.parse(String(result.answer.choices))).toEqual([{ index: 0, message: { role: 'assistant', content: '{"c":4}', refusal: null }, logprobs: null, finish_reason: 'stop' }]);
  });

  test('a malformed call is the model’s fault, and its endpoint works', () => {
    expect(read(answer([{ text: 'a' }], 'malformed_tool_use'))).toMatchObject({ failure: { class: 'PROVIDER_ERROR', retryable: true, isEndpointWell: true } });
  });

  test.each<[unknown, FailureClass]>([
    ['<html>', 'GARBAGE'],
    ['[]', 'GARBAGE'],
    [{}, 'EMPTY'],
    [{ output: {} }, 'EMPTY'],
    [{ __type: 'ThrottlingException', message: 'x' }, 'RATE_LIMITED'],
    [answer([], 'guardrail_intervened'), 'CONTENT_POLICY'],
    [answer([], 'refusal'), 'CONTENT_POLICY'],
    [answer([{ text: 'a' }], 'malformed_model_output'), 'PROVIDER_ERROR'],
  ])('%j fails as %s', (body, expected) => {
    expect(read(body)).toMatchObject({ ok: false, failure: { class: expected } });
  });
});

describe('usage', () => {
  const price = asPrice(1_000_000n);
  const card = { id: 'c', inputUncached: price, cacheRead: price, cacheWrite: price, outputText: price, outputReasoning: price, audio: price, image: price, requestNanoUsd: asNanoUsd(0n) };
  const figure = fc.nat(1_000_000);

  test('buckets sum to what Bedrock counts and the cost is never negative', () => {
    fc.assert(
      fc.property(figure, figure, figure, figure, (input, read, write, output) => {
        const usage = readUsage({ inputTokens: input, cacheReadInputTokens: read, cacheWriteInputTokens: write, outputTokens: output, totalTokens: input + read + write + output });
        if (usage === undefined) throw new Error('no usage');
        expect(promptTokens(usage.tokens)).toBe(input + read + write);
        expect(completionTokens(usage.tokens)).toBe(output);
        expect(costOf(usage.tokens, card) >= 0n).toBe(true);
        expect(usage.isSuspect).toBe(false);
      }),
    );
  });

  test('where the cache is counted within the input the prompt is what was told, and the cost never negative', () => {
    fc.assert(
      fc.property(figure, figure, figure, figure, fc.boolean(), (rest, read, write, output, isDoubled) => {
        const whole = rest + read + write;
        const usage = readUsage({ inputTokens: whole, cacheReadInputTokens: read, cacheWriteInputTokens: write, outputTokens: output, totalTokens: whole + output + (isDoubled ? read + write : 0) }, true);
        if (usage === undefined) throw new Error('no usage');
        expect(usage).toMatchObject({ tokens: { inputUncached: rest, cacheRead: read, cacheWrite: write }, isSuspect: false });
        expect(costOf(usage.tokens, card) >= 0n).toBe(true);
      }),
    );
    expect(readUsage({ inputTokens: 3, cacheReadInputTokens: 100, outputTokens: 1, totalTokens: 104 }, true)).toMatchObject({ tokens: { inputUncached: 3, cacheRead: 100 }, isSuspect: false });
  });

  test.each([
    [{ inputTokens: 1, outputTokens: 1, totalTokens: 9 }, true],
    [{ inputTokens: 1, outputTokens: 1 }, false],
    [{ inputTokens: 1, outputTokens: 1, cacheWriteInputTokens: 4, cacheDetails: [{ ttl: '1h', inputTokens: 4 }] }, true],
    [{ inputTokens: 1, outputTokens: 1, cacheWriteInputTokens: 4, cacheDetails: [{ ttl: '5m', inputTokens: 4 }] }, false],
  ])('%j is suspect: %s', (raw, isSuspect) => {
    expect(readUsage(raw)).toMatchObject({ isSuspect });
  });

  test.each([[{ inputTokens: -1, outputTokens: 1 }], [{ inputTokens: 1.5, outputTokens: 1 }], [{ inputTokens: 1 }], [null]])('refuses figures that are no counts: %j', (raw) => {
    expect(readUsage(raw)).toBeUndefined();
  });
});

describe('errors', () => {
  const classify = (status: number, type: string, body: unknown, headers = {}) =>
    classifyConverseRefusal({ status, headers: { ...(type === '' ? {} : { 'x-amzn-errortype': type }), ...headers }, body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)), nowMs: 0 });

  test.each<[number, string, unknown, FailureClass, boolean]>([
    [429, 'ThrottlingException:http://internal.amazon.com/coral/com.amazon.bedrock/', { message: 'Too many requests, please wait before trying again.' }, 'RATE_LIMITED', true],
    [429, 'ModelNotReadyException', { message: 'The model is not ready.' }, 'PROVIDER_ERROR', true],
    [400, 'ServiceQuotaExceededException', { message: 'Your request exceeds the service quota.' }, 'RATE_LIMITED', true],
    [403, 'AccessDeniedException', { Message: 'User: arn:aws:iam::123:user/x is not authorized to perform: bedrock:InvokeModel' }, 'CREDENTIAL', true],
    [403, 'AccessDeniedException', { message: "You don't have access to the model with the specified model ID." }, 'NOT_FOUND', true],
    [403, 'AccessDeniedException', { Message: 'User: arn:aws:iam::123:user/x is not authorized to perform: bedrock:InvokeModel on resource: arn:aws:bedrock:us-east-1::foundation-model/x because no identity-based policy allows the bedrock:InvokeModel action' }, 'NOT_FOUND', true],
    [403, '', '<html>from something in between</html>', 'PROVIDER_ERROR', true],
    [403, 'UnrecognizedClientException', { message: 'The security token included in the request is invalid.' }, 'CREDENTIAL', true],
    [403, 'InvalidSignatureException', { message: 'The request signature we calculated does not match.' }, 'CREDENTIAL', true],
    [403, 'ExpiredTokenException', { message: 'The security token included in the request is expired' }, 'CREDENTIAL', true],
    [403, '', { message: 'Authentication failed: Please make sure your API Key is valid.' }, 'CREDENTIAL', true],
    [404, 'ResourceNotFoundException', { message: 'Could not resolve the foundation model.' }, 'NOT_FOUND', true],
    [400, 'ValidationException', { message: 'The provided model identifier is invalid.' }, 'NOT_FOUND', true],
    [400, 'ValidationException', { message: 'Invocation of model ID x with on-demand throughput isn’t supported. Retry your request with the ID or ARN of an inference profile that contains this model.' }, 'NOT_FOUND', true],
    [400, 'ValidationException', { message: 'Access to Anthropic models is not allowed from unsupported countries, regions, or territories. Please refer to https://www.anthropic.com/supported-countries for more information.' }, 'NOT_FOUND', true],
    [400, 'ValidationException', { message: 'Input is too long for requested model.' }, 'CONTEXT_LENGTH', true],
    [400, 'ValidationException', { message: 'input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000' }, 'CONTEXT_LENGTH', true],
    [400, 'ValidationException', { message: 'The model returned the following errors: Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.' }, 'CONTEXT_LENGTH', true],
    [400, 'ValidationException', { message: "This model doesn't support tool use in streaming mode." }, 'BAD_REQUEST', true],
    [400, 'ValidationException', { message: 'Operation not allowed' }, 'CREDENTIAL', true],
    [400, 'ValidationException', { message: 'messages: Operation not allowed' }, 'BAD_REQUEST', false],
    [400, 'ValidationException', { message: 'messages: roles must alternate' }, 'BAD_REQUEST', false],
    [400, '', { __type: 'com.amazon.coral.service#ValidationException', message: 'Output blocked by content filtering policy' }, 'CONTENT_POLICY', false],
    [400, 'ValidationException', { message: 'The model returned the following errors: Schemas contains too many parameters with union types (18 parameters with type arrays or anyOf), which would cause exponential compilation cost. Reduce the number of union-typed parameters (limit: 16).' }, 'BAD_REQUEST', true],
    [408, 'ModelTimeoutException', { message: 'x' }, 'PROVIDER_ERROR', true],
    [424, 'ModelErrorException', { message: 'x' }, 'PROVIDER_ERROR', true],
    [500, 'InternalServerException', { message: 'x' }, 'PROVIDER_ERROR', true],
    [503, 'ServiceUnavailableException', { message: 'x' }, 'PROVIDER_ERROR', true],
    [503, '', '<html>', 'PROVIDER_ERROR', true],
    [400, '', '<html>from something in between</html>', 'PROVIDER_ERROR', true],
    [413, '', '<html>413 Request Entity Too Large</html>', 'CONTEXT_LENGTH', true],
    [302, '', '', 'PROVIDER_ERROR', true],
  ])('%d %s %j is %s', (status, type, body, expected, retryable) => {
    const told = classify(status, type, body);
    expect(told).toMatchObject({ class: expected, status, retryable });
    if (!['BAD_REQUEST', 'CONTEXT_LENGTH', 'CONTENT_POLICY'].includes(expected)) expect(told.publicMessage).toBe('');
  });

  test('a hint is honoured, and a public sentence holds no account', () => {
    expect(classify(429, 'ThrottlingException', { message: 'x' }, { 'retry-after': '3' }).retryAfterMs).toBe(3_000);
    expect(classify(400, 'ValidationException', { message: 'Malformed input for arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-4-6-v1' }).publicMessage).not.toContain('123456789012');
  });

  test('Nova refuses a prompt that is too long inside a 200', () => {
    expect(classifyConverseException('validationException', { message: 'The model returned the following errors: Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.' })).toMatchObject({ class: 'CONTEXT_LENGTH', status: 400, retryable: true });
  });

  test.each<[string, FailureClass, number]>([
    ['throttlingException', 'RATE_LIMITED', 429],
    ['serviceUnavailableException', 'PROVIDER_ERROR', 503],
    ['internalServerException', 'PROVIDER_ERROR', 500],
    ['modelStreamErrorException', 'PROVIDER_ERROR', 424],
    ['validationException', 'BAD_REQUEST', 400],
    ['somethingNewException', 'PROVIDER_ERROR', 200],
    ['', 'PROVIDER_ERROR', 200],
  ])('%s in a stream is %s', (type, expected, status) => {
    expect(classifyConverseException(type, { message: 'x' })).toMatchObject({ class: expected, status });
  });
});
