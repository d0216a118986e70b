import { expect, test } from '@jest/globals';
import { asNanoUsd } from '@signalbox/kernel/money';
import type { AttemptFact, OutcomeFact } from '@signalbox/ledger-core/fold';
import { book } from '../domain/booking.js';
import { RowPacker } from './packed-rows.js';

const periods = { day: '2026-11-21', week: '2026-W47', month: '2026-11', plan: '2026-11' };
const fact = (more: Partial<AttemptFact> = {}): AttemptFact => ({ attempt: 1, retryOf: [], costNanoUsd: asNanoUsd(20n), tokens: 3, byok: false, ...more });
const delivered: OutcomeFact = { attempt: 1, outcome: 'DELIVERED', toldByEdge: true };

/** Kinds of the table's rows, and whether each also contains a charge. */
function packed(attempts: readonly AttemptFact[], outcomes: readonly OutcomeFact[], flags: readonly string[] = []) {
  const common = { requestId: 'r1', accountId: 'acct_1' };
  const { rows } = book({
    attempts: attempts.map((each) => ({ ...common, keyId: 'key_1', fact: each, source: 'provider', provider: 'sim', flags, cardId: 'card', periods, endedAtMs: 5n, usage: { model: 'm', promptTokens: 2, completionTokens: 1, savingsNanoUsd: 4n, totalMs: 9, ttftMs: 3 }, detail: '{}' })),
    outcomes: outcomes.map((each) => ({ ...common, fact: each })),
    requests: new Map(),
    heads: new Map(),
    nowMs: 9,
  });
  const written: (readonly [string, boolean])[] = [];
  const packer = new RowPacker((row, chargeHash) => written.push([row.kind, chargeHash !== null]));
  for (const row of rows) packer.add(row);
  packer.end();
  return written;
}

test.each<readonly [string, AttemptFact[], OutcomeFact[], (readonly [string, boolean])[]]>([
  ['delivered', [fact()], [delivered], [['attempt', true]]],
  ['delivered by a retry', [fact(), fact({ attempt: 2, retryOf: [1] })], [{ ...delivered, attempt: 2 }], [['attempt', false], ['attempt', true]]],
  ['delivered as the worker concludes', [fact()], [{ ...delivered, toldByEdge: false }], [['attempt', false], ['charge', false]]],
  ['discarded', [fact()], [{ ...delivered, outcome: 'DISCARDED' }], [['attempt', false], ['charge', false]]],
  ['paid by the own key', [fact({ byok: true })], [delivered], [['attempt', false], ['charge', false]]],
  ['two rounds', [fact(), fact({ attempt: 2 })], [delivered, { ...delivered, attempt: 2 }], [['attempt', false], ['attempt', false], ['charge', false]]],
  ['not told yet', [fact()], [], [['attempt', false]]],
])('%s: an attempt and its charge share a row only if the charge repeats the attempt', (_, attempts, outcomes, expected) => {
  expect(packed(attempts, outcomes)).toEqual(expected);
});

test('flags belong to the attempt and do not prevent packing', () => {
  expect(packed([fact()], [delivered], ['suspect'])).toEqual([['attempt', true]]);
});
