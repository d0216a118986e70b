import { expect, test } from '@jest/globals';
import { NO_TOKENS } from '@signalbox/kernel/tokens';
import fc from 'fast-check';
import { attemptDetail } from './attempt-detail.js';
import { JsonTexts } from './json-text.js';
import type { AttemptMessage } from './messages.js';

const prices = { inputUncached: '150000000', cacheRead: '0', cacheWrite: '0', outputText: '600000000', outputReasoning: '0', audio: '0', image: '0', requestNanoUsd: '7' };
const message: AttemptMessage = {
  requestId: 'r', attempt: 2, retryOf: [1], accountId: 'a', keyId: 'k', model: 'm', provider: 'p', endpointId: 'e', card: { id: 'card', ...prices }, costNanoUsd: '3', savingsNanoUsd: '-4', source: 'PROVIDER', flags: [], byok: true, tokens: null,
  periods: { day: '2026-11-21', week: '2026-W47', month: '2026-11', plan: '2026-10' }, status: 200, failure: 'TIMEOUT', ttftMs: 3, totalMs: 9, finishReason: 'stop', routedFrom: 'x', decisionId: 'd', startedAtMs: '5', endedAtMs: '6', deliveredUnknown: true,
};
const nothing: AttemptMessage = { ...message, model: '', endpointId: '', card: null, savingsNanoUsd: '0', byok: false, periods: null, status: 0, failure: 'FAILURE_CLASS_UNSPECIFIED', ttftMs: 0, totalMs: 0, finishReason: '', routedFrom: '', decisionId: '', startedAtMs: '0', deliveredUnknown: false };

const detailOf = (of: AttemptMessage, retryOf: readonly number[] = [], restsOnCalls = false): string => String(attemptDetail(of, retryOf, restsOnCalls, new JsonTexts()));

test('contains what has no column, in a fixed order, and leaves out empty values', () => {
  expect(detailOf({ ...message, tokens: { ...NO_TOKENS, inputUncached: 10, outputText: 5 } }, [1])).toBe(
    '{"model":"m","endpoint":"e","routed_from":"x","decision":"d","tokens":{"inputUncached":10,"outputText":5},"savings":"-4","byok":true,"status":200,"failure":"TIMEOUT","ttft_ms":3,"total_ms":9,"finish_reason":"stop","started_at_ms":"5",'
    + '"delivered_unknown":true,"retry_of":[1],"day":"2026-11-21","week":"2026-W47","plan":"2026-10","card":{"inputUncached":"150000000","outputText":"600000000","requestNanoUsd":"7"}}',
  );
  expect(detailOf(nothing)).toBe('{"tokens":{}}');
  expect(detailOf(nothing, [], true)).toBe('{"tokens":{},"rests_on_calls":true}');
});

test('encodes any text as JSON, repeatedly; only NUL is replaced', () => {
  const text = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom('"\\\b\n', '\0', 'ü\ud800', 'y'.repeat(5_000), 'é'.repeat(10_000)));
  fc.assert(fc.property(text, text, text, (model, endpointId, finishReason) => {
    const told = { model, endpoint: endpointId, tokens: {}, finish_reason: finishReason };
    const expected = JSON.stringify(told, (_name, value: unknown) => (value === '' ? undefined : typeof value === 'string' ? value.replaceAll('\0', '\uFFFD') : value));
    const texts = new JsonTexts();
    // The next text may have to move those before it.
    const [first, second] = [attemptDetail(nothing, [], false, texts), attemptDetail({ ...nothing, model, endpointId, finishReason }, [], false, texts)];
    expect([String(first), String(second)]).toEqual(['{"tokens":{}}', expected]);
    const bytes = Buffer.alloc(second.bytes + 2, '-');
    second.copyTo(bytes, 1);
    expect(bytes.toString()).toBe(`-${expected}-`);
  }), { numRuns: 300 });
});
