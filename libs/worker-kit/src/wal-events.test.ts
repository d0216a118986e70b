import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { AttemptEnd, AttemptStart } from './journal.js';
import { completeEvent, encodedEnd, encodedHead, encodedStart, endedCodec, orphanEvent, startedEvent } from './wal-events.js';

const text = fc.string({ maxLength: 40 });
const count = fc.nat();
const nano = fc.bigInt({ min: 0n, max: 2n ** 60n });
const card = fc.record({ id: text, inputUncached: nano.map(String), cacheRead: nano.map(String), cacheWrite: nano.map(String), outputText: nano.map(String), outputReasoning: nano.map(String), audio: nano.map(String), image: nano.map(String), requestNanoUsd: nano.map(String) });
const periods = fc.record({ day: text, week: text, month: text, plan: text, reservedAtMs: count.map(String) });
const start = fc.record({
  requestId: text, attempt: fc.integer({ min: 1, max: 3 }), retryOf: fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 3 }), accountId: text, keyId: text, model: text, provider: text, endpointId: text,
  card: fc.option(card), referenceCard: fc.option(card), periods, byok: fc.boolean(), routedFrom: text, decisionId: text, startedAtMs: count, promptTokens: count, traceparent: text,
}) as unknown as fc.Arbitrary<AttemptStart>;
const tokens = fc.record({ inputUncached: count, cacheRead: count, cacheWrite: count, outputText: count, outputReasoning: count, audio: count, image: count });
const end = fc.record({
  tokens, costNanoUsd: nano, savingsNanoUsd: nano, toldNanoUsd: fc.option(nano, { nil: undefined }), source: fc.constantFrom('PROVIDER', 'ESTIMATED'), flags: fc.array(text, { maxLength: 3 }), status: fc.nat({ max: 599 }), failure: fc.constantFrom('FAILURE_CLASS_UNSPECIFIED', 'DISCONNECTED'),
  ttftMs: count, totalMs: count, finishReason: text, callsOnly: fc.boolean(), undelivered: fc.boolean(), clientLeft: fc.boolean(), endedAtMs: count, cards: fc.option(fc.record({ card, referenceCard: fc.option(card) }), { nil: undefined }),
}) as unknown as fc.Arbitrary<AttemptEnd>;

describe('records that share the bytes of the fields that never change', () => {
  test('decode to the event, at its start and at each kind of end', () => {
    fc.assert(
      fc.property(start, end, fc.nat(), fc.boolean(), (begun, ended, seq, isOrphan) => {
        const event = startedEvent(begun);
        const head = encodedHead(event);
        event.seq = String(seq);
        expect(endedCodec.decode(encodedStart(event, head))).toEqual(endedCodec.decode(endedCodec.encode(event)));
        if (isOrphan) orphanEvent(event, 5);
        else completeEvent(event, ended);
        event.seq = String(seq + 1);
        const whole = endedCodec.decode(endedCodec.encode(event));
        // An event with other cards at its end shares nothing.
        if (isOrphan || ended.cards === undefined) expect(endedCodec.decode(encodedEnd(event, head))).toEqual(whole);
        else expect(whole).toMatchObject(ended.cards);
        expect(endedCodec.decode(encodedEnd(event, undefined))).toEqual(whole);
      }),
    );
  });

  test('do not change the event', () => {
    fc.assert(
      fc.property(start, (begun) => {
        const event = startedEvent(begun);
        const before = structuredClone(event);
        encodedHead(event);
        expect(event).toEqual(before);
      }),
    );
  });
});
