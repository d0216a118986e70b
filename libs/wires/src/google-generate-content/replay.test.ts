import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { asNanoUsd, asPrice } from '@signalbox/kernel/money';
import { completionTokens, costOf, NO_TOKENS, promptTokens } from '@signalbox/kernel/tokens';
import type { Failure } from '../canonical.js';
import { brokenCuts, brokenInvariants, everySplit, gather, replay, type Replayed } from '../testing/replay.js';
import { classifyGoogleRefusal } from './errors.js';
import { readGenerateContentAnswer } from './response.js';
import { createGenerateContentTransducer } from './stream.js';
import { readUsage } from './usage.js';

const fixture = (name: string): Buffer => readFileSync(new URL(`./testdata/${name}.sse`, import.meta.url));
const create = () => createGenerateContentTransducer('seed');
const run = (...frames: readonly unknown[]): Replayed => replay(create, frames.map((value) => Buffer.from(`data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`)));
const said = (parts: readonly object[], more: object = {}): object => ({ candidates: [{ content: { role: 'model', parts }, ...more }] });

describe('stream', () => {
  test.each(['text', 'thinking-tools', 'two-candidates-crlf'])('%s gives the same events however its bytes are split', (name) => {
    const bytes = fixture(name);
    const whole = replay(create, [bytes]);
    expect(brokenInvariants(whole)).toEqual([]);
    expect(whole.events.at(-1)).toEqual({ type: 'done' });
    for (const parts of everySplit(bytes)) expect(replay(create, parts)).toEqual(whole);
  });

  test.each(['text', 'thinking-tools', 'two-candidates-crlf'])('%s cut off at any byte ends as a failure, with nothing that was not said', (name) => {
    expect(brokenCuts(create, fixture(name))).toEqual([]);
  });

  test('text arrives whole, a late signature rides on a delta of its own, the last usage counts', () => {
    const { events, summary } = replay(create, [fixture('text')]);
    expect(gather(events).get(0)).toMatchObject({ content: '4 °C "in" 東京 é', reasons: ['stop'] });
    expect(events).toContainEqual({ type: 'chunk', content: false, finish: false, choices: [{ index: 0, delta: { extra_content: { google: { thought_signature: 'c2ln' } } }, logprobs: null, finish_reason: null }] });
    expect(summary).toMatchObject({ finishReason: 'stop', contentSeen: true, isFinished: true, usage: { tokens: { inputUncached: 5, cacheRead: 4, outputText: 7, outputReasoning: 0 }, cachedKnown: true, reasoningKnown: false } });
  });

  test('of an answer that breaks off the prompt is known, and the output is not', () => {
    const cut = (prompt: object) => run({ ...said([{ text: 'abc' }]), usageMetadata: prompt }).summary;
    expect(cut({ promptTokenCount: 900, candidatesTokenCount: 2, totalTokenCount: 902, cachedContentTokenCount: 800 })).toMatchObject({ usage: undefined, promptUsage: { tokens: { inputUncached: 100, cacheRead: 800, outputText: 0, outputReasoning: 0 }, cachedKnown: true } });
    expect(cut({ candidatesTokenCount: 2 })).toMatchObject({ usage: undefined, promptUsage: undefined, usageUnreadable: false });
    const text = fixture('text');
    const stopped = replay(create, [text.subarray(0, text.indexOf('data:', text.indexOf('candidatesTokenCount')))]);
    expect(stopped.summary).toMatchObject({ usage: undefined, promptUsage: { tokens: { inputUncached: 9, outputText: 0 } } });
  });

  test('what the last event leaves out of the figures was told before', () => {
    const first = { ...said([{ text: 'a' }]), usageMetadata: { promptTokenCount: 900, cachedContentTokenCount: 800, thoughtsTokenCount: 30, totalTokenCount: 930 } };
    const last = { ...said([{ text: 'b' }], { finishReason: 'STOP' }), usageMetadata: { promptTokenCount: 900, candidatesTokenCount: 2, totalTokenCount: 932 } };
    expect(run(first, last).summary.usage).toEqual({ tokens: { ...NO_TOKENS, inputUncached: 100, cacheRead: 800, outputText: 2, outputReasoning: 30 }, cachedKnown: true, reasoningKnown: true, isSuspect: false });
    expect(run(first, last, { usageMetadata: { promptTokenCount: 900, candidatesTokenCount: 3, totalTokenCount: 933 } }).summary.usage?.tokens).toMatchObject({ inputUncached: 100, cacheRead: 800, outputText: 3, outputReasoning: 30 });
  });

  test('usage told when one candidate was over is not final once another begins', () => {
    const usageMetadata = { promptTokenCount: 9, candidatesTokenCount: 2 };
    const first = { candidates: [{ index: 0, content: { parts: [{ text: 'a' }] }, finishReason: 'STOP' }], usageMetadata };
    expect(run(first).summary.usage?.tokens).toMatchObject({ outputText: 2 });
    expect(run(first, { candidates: [{ index: 1, content: { parts: [{ text: 'b' }] } }] }).summary).toMatchObject({ usage: undefined, promptUsage: { tokens: { inputUncached: 9 } } });
  });

  test('calls of several events are numbered on, carry their signatures and finish as tool_calls', () => {
    const { events, summary } = replay(create, [fixture('thinking-tools')]);
    expect(gather(events).get(0)).toEqual({
      content: '',
      reasoning: 'I should look. ',
      calls: [
        { id: 'call_seed0', name: 'get_weather', arguments: '{"city":"Zürich","zip":8001}', extra: { google: { thought_signature: 'AbC+/==' } } },
        { id: 'call_seed1', name: 'get_time', arguments: '{}', extra: undefined },
        { id: 'fc_3', name: 'get_weather', arguments: '{"city":"Oslo"}', extra: undefined },
      ],
      reasons: ['tool_calls'],
    });
    expect(summary.usage).toMatchObject({ tokens: { inputUncached: 30, outputText: 24, outputReasoning: 25 }, reasoningKnown: true });
  });

  test('candidates are choices, with their logprobs', () => {
    const { events } = replay(create, [fixture('two-candidates-crlf')]);
    expect([...gather(events)].map(([index, choice]) => [index, choice.content, choice.reasons])).toEqual([[0, 'A1', ['length']], [1, 'B2', ['stop']]]);
    expect(events[0]).toMatchObject({ choices: [{ logprobs: { content: [{ token: 'A', logprob: -0.1, bytes: [65], top_logprobs: [{ token: 'A' }, { token: 'é', logprob: -2.5, bytes: [195, 169] }] }] } }, { logprobs: null }] });
  });

  test('text after a finish reason is not lost: the finish comes last', () => {
    const whole = run(said([{ text: 'a' }], { finishReason: 'STOP' }), said([{ text: 'b' }], { finishReason: 'STOP' }));
    expect(gather(whole.events).get(0)).toMatchObject({ content: 'ab', reasons: ['stop'] });
    expect(brokenInvariants(whole)).toEqual([]);
  });

  test.each([
    ['a stream that just stops', [said([{ text: 'a' }])], 'DISCONNECTED'],
    ['nothing at all', [], 'EMPTY'],
    ['usage alone', [{ usageMetadata: { promptTokenCount: 1 } }], 'EMPTY'],
    ['bytes that are no JSON', ['<html>'], 'GARBAGE'],
    ['a JSON value that is no object', ['[1,2]'], 'GARBAGE'],
    ['an error event', [said([{ text: 'a' }]), { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }], 'PROVIDER_ERROR'],
    ['an error event in a list', [[{ error: { code: 429, message: 'Slow down.', status: 'RESOURCE_EXHAUSTED' } }]], 'RATE_LIMITED'],
    ['a malformed call', [said([], { finishReason: 'MALFORMED_FUNCTION_CALL' })], 'PROVIDER_ERROR'],
    ['a refused prompt', [{ promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 4, totalTokenCount: 4 } }], 'CONTENT_POLICY'],
    ['an answer that policy left nothing of', [said([], { finishReason: 'SAFETY' })], 'CONTENT_POLICY'],
  ])('%s fails', (_what, frames, expected) => {
    const whole = run(...frames);
    expect(whole.events.at(-1)).toMatchObject({ type: 'failed', failure: { class: expected } });
    expect(brokenInvariants(whole)).toEqual([]);
  });

  test.each([
    ['MALFORMED_FUNCTION_CALL', true], ['UNEXPECTED_TOOL_CALL', true], ['TOO_MANY_TOOL_CALLS', true], ['MALFORMED_RESPONSE', true], ['NO_IMAGE', true], ['OTHER', undefined], ['other', undefined], ['A_REASON_OF_TOMORROW', true],
  ])('%s: whether the endpoint works is known', (finishReason, isEndpointWell) => {
    const candidate = { candidates: [{ content: { parts: [] }, finishReason }] };
    expect(run(candidate).events).toEqual([{ type: 'failed', failure: expect.objectContaining({ class: 'PROVIDER_ERROR', retryable: true }) }]);
    const failures = [run(candidate).events[0], readGenerateContentAnswer(Buffer.from(JSON.stringify(candidate)), 's')].map((told) => (told as { failure: Failure }).failure.isEndpointWell);
    expect(failures).toEqual([isEndpointWell, isEndpointWell]);
  });

  test('an error that is written bare behind a finish breaks the answer', () => {
    const events = [said([{ text: 'Okay' }]), said([{ text: '' }], { finishReason: 'STOP' })].map((frame) => `data: ${JSON.stringify(frame)}\r\n\r\n`).join('');
    const whole = replay(create, [Buffer.from(`${events}{\n  "error": {\n    "code": 503,\n    "message": "The model is overloaded. Please try again later.",\n    "status": "UNAVAILABLE"\n  }\n}\n`)]);
    expect(whole.events).toMatchObject([{ type: 'chunk' }, { type: 'failed', failure: { class: 'PROVIDER_ERROR', status: 503 } }]);
    expect(brokenInvariants(whole)).toEqual([]);
  });

  test('words that end for a reason of tomorrow are not told as whole', () => {
    const ended = (finishReason: string): object => said([{ text: 'It is' }], { finishReason });
    expect(run(ended('A_REASON_OF_TOMORROW')).events).toMatchObject([{ type: 'chunk' }, { type: 'failed', failure: { class: 'PROVIDER_ERROR', isEndpointWell: true } }]);
    for (const word of ['STOP', 'stop']) expect(gather(run(ended(word)).events).get(0)).toMatchObject({ content: 'It is', reasons: ['stop'] });
  });

  describe('a model that comes to its end and has said nothing', () => {
    const ended = (usage: object, finishReason = 'STOP'): object => ({ candidates: [{ content: { role: 'model' }, finishReason, index: 0 }], usageMetadata: { promptTokenCount: 9, ...usage } });
    /** Whether a stream and a whole answer, which both end well, are known to hold nothing. */
    const both = (answer: object): readonly unknown[] => {
      const whole = readGenerateContentAnswer(Buffer.from(JSON.stringify(answer)), 's');
      const transducer = create();
      const events = [...transducer.push(Buffer.from(`data: ${JSON.stringify(answer)}\n\n`)), ...transducer.close()];
      expect([events.at(-1), whole.ok]).toEqual([{ type: 'done' }, true]);
      return [transducer.saidNothing?.(), whole.ok && whole.answer.saidNothing === true];
    };

    test.each([['no tokens are told', {}], ['none are counted', { candidatesTokenCount: 0 }], ['it only thought', { thoughtsTokenCount: 70, totalTokenCount: 79 }]])('may say more when it is asked again: %s', (_what, usage) => {
      expect(both(ended(usage))).toEqual([true, true]);
    });

    test('is told so too where the host keeps the connection open behind it', () => {
      const transducer = create();
      transducer.push(Buffer.from(`data: ${JSON.stringify(ended({}))}\n\n`));
      expect([transducer.finishOpen('stop'), transducer.saidNothing?.()]).toMatchObject([{ type: 'chunk', finish: true }, true]);
    });

    test('has answered where what it said was left out, or a limit ended it', () => {
      expect(both(ended({ candidatesTokenCount: 1 }))).toEqual([false, false]);
      expect(both(ended({}, 'MAX_TOKENS'))).toEqual([false, false]);
    });

    test('has answered with thoughts that it shows', () => {
      expect(both(said([{ text: 'Hm.', thought: true }], { finishReason: 'STOP' }))).toEqual([false, false]);
    });
  });

  test('words beside a block of the prompt are given, and filtered', () => {
    const { events } = run({ ...said([{ text: 'So' }]), promptFeedback: { blockReason: 'SAFETY' } });
    expect([gather(events).get(0), events.at(-1)]).toMatchObject([{ content: 'So', reasons: ['content_filter'] }, { type: 'done' }]);
  });

  test('a malformed call is a failure too where the host keeps the connection open behind it', () => {
    const transducer = create();
    transducer.push(Buffer.from(`data: ${JSON.stringify(said([{ text: 'So' }], { finishReason: 'MALFORMED_FUNCTION_CALL' }))}\n\n`));
    expect([transducer.summary().isFinished, transducer.finishOpen('stop')]).toMatchObject([true, { type: 'failed', failure: { class: 'PROVIDER_ERROR' } }]);
  });

  test('a host that says with each event that it is over is not done before its end, and its last figures are the usage', () => {
    const event = (text: string, output: number): string => `data: ${JSON.stringify({ ...said([{ text }], { finishReason: 'STOP' }), usageMetadata: { promptTokenCount: 5, candidatesTokenCount: output, totalTokenCount: 5 + output } })}\n\n`;
    const transducer = create();
    transducer.push(Buffer.from(event('a', 1)));
    for (const output of [2, 3]) {
      transducer.push(Buffer.from(event('b', output)));
      expect(transducer.summary()).toMatchObject({ isFinished: false, usage: { tokens: { inputUncached: 5, outputText: output } } });
    }
    expect(transducer.close().at(-1)).toEqual({ type: 'done' });
  });

  test('what is said behind a finish and then breaks off is a failure; a limit of ours that ends it is told as such', () => {
    const frames = [said([{ text: 'a' }], { finishReason: 'STOP' }), said([{ functionCall: { name: 'f', args: {} } }])];
    expect(run(...frames).events.at(-1)).toMatchObject({ type: 'failed', failure: { class: 'DISCONNECTED' } });
    const transducer = create();
    for (const frame of [frames[0], said([{ text: 'b' }])]) transducer.push(Buffer.from(`data: ${JSON.stringify(frame)}\n\n`));
    expect(transducer.finishOpen('length')).toMatchObject({ finish: true });
    expect(transducer.summary().finishReason).toBe('length');
  });

  test('a candidate that has finished keeps its finish where the answer breaks off before the other has', () => {
    const event = (index: number, finishReason?: string): Buffer => Buffer.from(`data: ${JSON.stringify({ candidates: [{ index, content: { parts: [{ text: 'a' }] }, finishReason }] })}\n\n`);
    const transducer = createGenerateContentTransducer('seed', new Map(), 2);
    const told = transducer.push(Buffer.concat([event(0, 'MAX_TOKENS'), event(1)])).map((one) => (one.type === 'chunk' && one.ended !== undefined ? (JSON.parse(Buffer.from(one.ended).toString()) as unknown) : undefined));
    expect(told).toEqual([undefined, [{ index: 0, delta: {}, logprobs: null, finish_reason: 'length' }]]);
    const ended = transducer.finishEnded?.() as { choices: Uint8Array; finish: boolean };
    expect([ended.finish, JSON.parse(Buffer.from(ended.choices).toString()), transducer.summary().isFinished]).toMatchObject([true, [{ index: 0, finish_reason: 'length' }], false]);
    const whole = createGenerateContentTransducer('seed', new Map(), 2);
    whole.push(Buffer.concat([event(0, 'STOP'), event(1, 'STOP')]));
    expect(whole.finishEnded?.()).toBeUndefined();
  });

  test('fewer candidates than were asked for do not make a stream finished', () => {
    const transducer = createGenerateContentTransducer('seed', new Map(), 2);
    const event = (index: number): Buffer => Buffer.from(`data: ${JSON.stringify({ candidates: [{ index, content: { parts: [{ text: 'a' }] }, finishReason: 'STOP' }] })}\n\n`);
    transducer.push(event(0));
    expect(transducer.summary().isFinished).toBe(false);
    transducer.push(event(1));
    expect(transducer.summary().isFinished).toBe(true);
  });

  test('policy that stops an answer midway finishes it as content_filter', () => {
    expect(gather(run(said([{ text: 'a' }]), said([], { finishReason: 'RECITATION' })).events).get(0)).toMatchObject({ content: 'a', reasons: ['content_filter'] });
  });

  test('figures on the way are no usage: a cut stream has none', () => {
    expect(run({ ...said([{ text: 'a' }]), usageMetadata: { promptTokenCount: 5, totalTokenCount: 5 } }).summary).toMatchObject({ usage: undefined, usageUnreadable: false, outputBytes: 1 });
    expect(run({ ...said([{ text: 'a' }], { finishReason: 'STOP' }), usageMetadata: { promptTokenCount: -5 } }).summary).toMatchObject({ usage: undefined, usageUnreadable: true });
  });

  test('no event of any JSON breaks it', () => {
    const oddity = fc.oneof(fc.jsonValue(), fc.constantFrom('STOP', 'SAFETY', 0, 1, -1, 200, {}, []));
    const part = fc.record({ text: oddity, thought: oddity, thoughtSignature: oddity, functionCall: fc.oneof(oddity, fc.record({ name: fc.string({ minLength: 1 }), args: oddity })), inlineData: oddity }, { requiredKeys: [] });
    const candidate = fc.oneof(oddity, fc.record({ index: oddity, finishReason: oddity, logprobsResult: oddity, content: fc.oneof(oddity, fc.record({ parts: fc.oneof(oddity, fc.array(part)) })) }, { requiredKeys: [] }));
    const frame = fc.oneof(oddity, fc.record({ candidates: fc.oneof(oddity, fc.array(candidate)), usageMetadata: oddity, promptFeedback: oddity, error: oddity }, { requiredKeys: [] }));
    fc.assert(fc.property(fc.array(frame), (frames) => expect(brokenInvariants(run(...frames))).toEqual([])));
  });
});

describe('whole answer', () => {
  const read = (value: unknown) => readGenerateContentAnswer(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)), 'seed');

  test('text, thoughts, calls and their signatures', () => {
    const result = read({
      candidates: [{ content: { parts: [{ text: 'Hm.', thought: true }, { text: 'Let me see.', thoughtSignature: 'T1' }, { functionCall: { name: 'f', args: { a: 1 } }, thoughtSignature: 'S1' }] }, finishReason: 'STOP', index: 0 }],
      usageMetadata: { promptTokenCount: 8, candidatesTokenCount: 3, thoughtsTokenCount: 2, totalTokenCount: 13 },
    });
    expect(result.ok && JSON.parse(String(result.answer.choices))).toEqual([
      {
        index: 0,
        message: {
          role: 'assistant',
          content: 'Let me see.',
          refusal: null,
          reasoning_content: 'Hm.',
          extra_content: { google: { thought_signature: 'T1' } },
          tool_calls: [{ id: 'call_seed0', type: 'function', function: { name: 'f', arguments: '{"a":1}' }, extra_content: { google: { thought_signature: 'S1' } } }],
        },
        logprobs: null,
        finish_reason: 'tool_calls',
      },
    ]);
    expect(result.ok && result.answer.usage?.tokens).toMatchObject({ inputUncached: 8, outputText: 3, outputReasoning: 2 });
  });

  test('thinking that used up the tokens is an answer without text', () => {
    const result = read({ candidates: [{ content: { role: 'model' }, finishReason: 'MAX_TOKENS' }], usageMetadata: { promptTokenCount: 8, thoughtsTokenCount: 16, totalTokenCount: 24 } });
    expect(result.ok && JSON.parse(String(result.answer.choices))).toMatchObject([{ message: { content: '' }, finish_reason: 'length' }]);
    expect(result.ok && result.answer.usage?.tokens).toMatchObject({ outputText: 0, outputReasoning: 16 });
  });

  test('numbers of calls keep every digit, and the layout of the answer stays outside', () => {
    const result = read('{ "candidates": [ null, { "content": { "parts": [ 7, { "functionCall": { "name": "f", "args": {\n  "id" : 12345678901234567890, "s": "a  \\" b", "n": 1.10 } } } ] }, "finishReason": "STOP" } ] }');
    expect(result.ok && JSON.parse(Buffer.from(result.answer.choices).toString())).toMatchObject([{ message: { tool_calls: [{ function: { arguments: '{"id":12345678901234567890,"s":"a  \\" b","n":1.10}' } }] } }]);
  });

  test.each([
    ['<html>502</html>', 'GARBAGE'],
    ['[]', 'GARBAGE'],
    [{}, 'EMPTY'],
    [{ candidates: [] }, 'EMPTY'],
    [{ candidates: [{ index: 0 }], usageMetadata: { promptTokenCount: 8 } }, 'EMPTY'],
    [{ promptFeedback: { blockReason: 'OTHER' } }, 'CONTENT_POLICY'],
    [{ candidates: [{ finishReason: 'PROHIBITED_CONTENT' }] }, 'CONTENT_POLICY'],
    [{ candidates: [{ finishReason: 'MALFORMED_FUNCTION_CALL' }] }, 'PROVIDER_ERROR'],
    [{ error: { code: 500, message: 'x', status: 'INTERNAL' } }, 'PROVIDER_ERROR'],
  ])('%j fails as %s', (body, expected) => {
    expect(read(body)).toMatchObject({ ok: false, failure: { class: expected } });
  });
});

describe('usage', () => {
  const price = asPrice(1_000_000n);
  const card = { id: 'c', inputUncached: price, cacheRead: price, cacheWrite: price, outputText: price, outputReasoning: price, audio: price, image: price, requestNanoUsd: asNanoUsd(0n) };
  const figure = fc.nat(1_000_000);

  test('buckets sum to what Google counts and the cost is never negative', () => {
    fc.assert(
      fc.property(figure, figure, figure, figure, figure, figure, (prompt, candidates, thoughts, cached, audio, image) => {
        const usage = readUsage({
          promptTokenCount: prompt, candidatesTokenCount: candidates, thoughtsTokenCount: thoughts, cachedContentTokenCount: cached, totalTokenCount: prompt + candidates + thoughts,
          promptTokensDetails: [{ modality: 'AUDIO', tokenCount: audio }, { modality: 'IMAGE', tokenCount: image }, { modality: 'TEXT', tokenCount: 1 }],
        });
        if (usage === undefined) throw new Error('no usage');
        expect(promptTokens(usage.tokens)).toBe(prompt);
        expect(completionTokens(usage.tokens)).toBe(candidates + thoughts);
        expect(costOf(usage.tokens, card) >= 0n).toBe(true);
        expect(Object.values(usage.tokens).every((count) => count >= 0)).toBe(true);
      }),
    );
  });

  test.each([
    ['thoughts beside candidates', { promptTokenCount: 10, candidatesTokenCount: 5, thoughtsTokenCount: 7, totalTokenCount: 22 }, { outputText: 5, outputReasoning: 7 }, false],
    ['thoughts within candidates, as the total says', { promptTokenCount: 10, candidatesTokenCount: 12, thoughtsTokenCount: 7, totalTokenCount: 22 }, { outputText: 5, outputReasoning: 7 }, false],
    ['results of tools read as prompt', { promptTokenCount: 10, toolUsePromptTokenCount: 4, candidatesTokenCount: 1, totalTokenCount: 15 }, { inputUncached: 14 }, false],
    ['cached sound counts once', { promptTokenCount: 10, cachedContentTokenCount: 6, candidatesTokenCount: 1, totalTokenCount: 11, promptTokensDetails: [{ modality: 'AUDIO', tokenCount: 8 }], cacheTokensDetails: [{ modality: 'AUDIO', tokenCount: 6 }] }, { inputUncached: 2, cacheRead: 6, audio: 2 }, false],
    ['an image that the model drew, at the price of text', { promptTokenCount: 10, candidatesTokenCount: 1_300, totalTokenCount: 1_310, candidatesTokensDetails: [{ modality: 'TEXT', tokenCount: 10 }, { modality: 'IMAGE', tokenCount: 1_290 }] }, { outputText: 1_300 }, true],
    ['text, told by its kind', { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15, candidatesTokensDetails: [{ modality: 'TEXT', tokenCount: 5 }] }, { outputText: 5 }, false],
    ['a total that contradicts its parts', { promptTokenCount: 10, candidatesTokenCount: 1, totalTokenCount: 500 }, { inputUncached: 10 }, true],
  ])('%s', (_what, raw, tokens, isSuspect) => {
    expect(readUsage(raw)).toMatchObject({ tokens, isSuspect });
  });

  test.each([[{ promptTokenCount: -1 }], [{ promptTokenCount: 1.5 }], [{ promptTokenCount: 2 ** 60 }], [{ candidatesTokenCount: 5 }], [null]])('refuses figures that are no counts: %j', (raw) => {
    expect(readUsage(raw)).toBeUndefined();
  });
});

describe('errors', () => {
  const classify = (status: number, error: unknown, headers = {}) => classifyGoogleRefusal({ status, headers, body: Buffer.from(typeof error === 'string' ? error : JSON.stringify(error)), nowMs: 0 });
  const info = (reason: string): object => ({ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain: 'googleapis.com' });

  test.each([
    [400, { error: { code: 400, message: 'API key not valid. Please pass a valid API key.', status: 'INVALID_ARGUMENT', details: [info('API_KEY_INVALID')] } }, 'CREDENTIAL', true],
    [400, { error: { code: 400, message: 'API key expired. Please renew the API key.', status: 'INVALID_ARGUMENT', details: [info('API_KEY_INVALID')] } }, 'CREDENTIAL', true],
    [400, { error: { code: 400, message: 'User location is not supported for the API use.', status: 'FAILED_PRECONDITION' } }, 'CREDENTIAL', true],
    [401, { error: { code: 401, message: 'Request had invalid authentication credentials.', status: 'UNAUTHENTICATED' } }, 'CREDENTIAL', true],
    [403, { error: { code: 403, message: 'Permission denied.', status: 'PERMISSION_DENIED', details: [info('SERVICE_DISABLED')] } }, 'CREDENTIAL', true],
    [403, { error: { code: 403, message: 'Your API key was reported as leaked. Please use another API key.', status: 'PERMISSION_DENIED' } }, 'CREDENTIAL', true],
    [403, { error: { code: 403, message: "Permission 'aiplatform.endpoints.predict' denied on resource '//aiplatform.googleapis.com/projects/p/locations/us-central1/publishers/google/models/gemini-x' (or it may not exist).", status: 'PERMISSION_DENIED', details: [info('IAM_PERMISSION_DENIED')] } }, 'NOT_FOUND', true],
    [403, { error: { code: 403, message: "Permission 'aiplatform.endpoints.predict' denied on resource '//aiplatform.googleapis.com/projects/p/locations/us-central1/endpoints/openapi' (or it may not exist).", status: 'PERMISSION_DENIED', details: [info('IAM_PERMISSION_DENIED')] } }, 'CREDENTIAL', true],
    [403, { error: { code: 403, message: 'Your project does not have access to the model gemini-x.', status: 'PERMISSION_DENIED' } }, 'NOT_FOUND', true],
    [403, '<html>from something in between</html>', 'PROVIDER_ERROR', true],
    [400, { error: { code: 400, message: 'API key not valid. Please pass a valid API key.', status: 'INVALID_ARGUMENT' } }, 'CREDENTIAL', true],
    [400, { error: { code: 400, message: "Invalid value at 'generation_config.thinking_config.thinking_level', \"billing account invalid_api_key\"", status: 'INVALID_ARGUMENT' } }, 'BAD_REQUEST', false],
    [400, { error: { code: 400, message: 'The input token count (1048600) exceeds the maximum number of tokens allowed (1048576).', status: 'INVALID_ARGUMENT' } }, 'CONTEXT_LENGTH', true],
    [400, { type: 'error', error: { type: 'invalid_request_error', message: 'input length and `max_tokens` exceed context limit: 190000 + 16000 > 200000, decrease input length or `max_tokens` and try again' } }, 'CONTEXT_LENGTH', true],
    [400, { error: { code: 400, message: 'The prompt could not be submitted: it violates our Responsible AI practices.', status: 'INVALID_ARGUMENT' } }, 'CONTENT_POLICY', false],
    [400, { error: { code: 400, message: 'Requests ending with a model turn are not supported.', status: 'INVALID_ARGUMENT' } }, 'BAD_REQUEST', true],
    [400, { error: { code: 400, message: 'Multiple candidates is not enabled for this model', status: 'INVALID_ARGUMENT' } }, 'BAD_REQUEST', true],
    [400, { error: { code: 400, message: 'The specified schema produces a constraint that has too many states for serving. Typical causes of this error are schemas with lots of text.', status: 'INVALID_ARGUMENT' } }, 'BAD_REQUEST', true],
    [400, { error: { code: 400, message: 'A schema in GenerationConfig in the request exceeds the maximum allowed nesting depth.', status: 'INVALID_ARGUMENT' } }, 'BAD_REQUEST', true],
    [400, { error: { code: 400, message: 'Request payload size exceeds the limit: 20971520 bytes.', status: 'INVALID_ARGUMENT' } }, 'CONTEXT_LENGTH', true],
    [400, { error: { code: 400, message: 'Invalid value at generation_config.top_p.', status: 'INVALID_ARGUMENT' } }, 'BAD_REQUEST', false],
    [404, { error: { code: 404, message: 'models/x is not found for API version v1beta.', status: 'NOT_FOUND' } }, 'NOT_FOUND', true],
    [429, { error: { code: 429, message: 'You exceeded your current quota, please check your plan and billing details.', status: 'RESOURCE_EXHAUSTED' } }, 'RATE_LIMITED', true],
    [429, { error: { code: 429, message: 'Your prepayment credits are depleted.', status: 'RESOURCE_EXHAUSTED' } }, 'CREDENTIAL', true],
    [429, { error: { code: 429, message: 'Your project has exceeded its monthly spending cap. Please go to AI Studio.', status: 'RESOURCE_EXHAUSTED' } }, 'CREDENTIAL', true],
    [400, { error: { code: 400, message: 'Project `1` is not allowed to use Publisher Model `projects/p/locations/l/publishers/anthropic/models/claude-x`', status: 'FAILED_PRECONDITION' } }, 'NOT_FOUND', true],
    [400, { error: { code: 400, message: 'Publisher Model `projects/p/locations/us-central1/publishers/anthropic/models/claude-x` is not servable in region us-central1.', status: 'FAILED_PRECONDITION' } }, 'NOT_FOUND', true],
    [500, { error: { code: 500, message: 'Internal', status: 'INTERNAL' } }, 'PROVIDER_ERROR', true],
    [503, [{ error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }], 'PROVIDER_ERROR', true],
    [499, { error: { code: 499, message: 'Cancelled', status: 'CANCELLED' } }, 'PROVIDER_ERROR', true],
    [502, '<html>Bad Gateway</html>', 'PROVIDER_ERROR', true],
    [400, '<html>from something in between</html>', 'PROVIDER_ERROR', true],
    [413, '<html>413 Request Entity Too Large</html>', 'CONTEXT_LENGTH', true],
    [302, '', 'PROVIDER_ERROR', true],
  ])('%d %j is %s', (status, error, expected, retryable) => {
    const told = classify(status, error);
    expect(told).toMatchObject({ class: expected, status, retryable });
    if (!['BAD_REQUEST', 'CONTEXT_LENGTH', 'CONTENT_POLICY'].includes(expected)) expect(told.publicMessage).toBe('');
  });

  test.each([
    ['34.5s', {}, 34_500],
    ['2s', { 'retry-after': '7' }, 7_000],
    ['99999s', {}, 600_000],
    ['soon', {}, 0],
  ])('RetryInfo %s with headers %j waits %d ms', (retryDelay, headers, ms) => {
    const error = { error: { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'm', details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay }] } };
    expect(classify(429, error, headers).retryAfterMs).toBe(ms);
  });
});
