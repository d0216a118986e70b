import { expect, test } from '@jest/globals';
import type { CheckedAttempt, CheckedOutcome } from '@signalbox/billing/proof';
import { asNanoUsd } from '@signalbox/kernel/money';
import { SimLedger } from './ledger.js';
import { Random } from './random.js';
import { Scheduler } from './scheduler.js';

const periods = { day: '2026-11-21', week: '2026-W47', month: '2026-11', plan: '2026-11' };
const attempt = (requestId: string): CheckedAttempt => ({
  requestId, accountId: 'a', keyId: 'k', fact: { attempt: 1, retryOf: [], costNanoUsd: asNanoUsd(20n), tokens: 7, byok: false }, source: 'provider', provider: 'p', flags: [], cardId: 'c', periods, endedAtMs: 5n,
  usage: { model: 'm', promptTokens: 5, completionTokens: 2, savingsNanoUsd: 0n, totalMs: 0, ttftMs: 0 }, detail: JSON.stringify(periods),
});
const delivered = (requestId: string): CheckedOutcome => ({ requestId, accountId: 'a', fact: { attempt: 1, outcome: 'DELIVERED', toldByEdge: true } });

function newLedger() {
  const ledger = new SimLedger(new Scheduler(() => undefined), new Random(1), undefined);
  let seq = 0n;
  const commit = (attempts: CheckedAttempt[], outcomes: CheckedOutcome[]): void => {
    seq += 1n;
    ledger.commitNow([{ writer: 'w', range: { first: seq, last: seq }, attempts, outcomes }], [], 9);
  };
  return { ledger, commit };
}

test.each([
  ['the charge alone', (commit: ReturnType<typeof newLedger>['commit'], backUp: () => void) => (commit([attempt('r')], []), backUp(), commit([], [delivered('r')]))],
  ['attempt and charge', (commit: ReturnType<typeof newLedger>['commit'], backUp: () => void) => (backUp(), commit([attempt('r')], [delivered('r')]))],
  ['an attempt that was not charged yet', (commit: ReturnType<typeof newLedger>['commit'], backUp: () => void) => (backUp(), commit([attempt('r')], []))],
])('a restore that loses %s excuses as much as the ledger tells less, and no more', (_what, story) => {
  const { ledger, commit } = newLedger();
  commit([attempt('kept'), attempt('open')], [delivered('kept')]);
  story(commit, () => ledger.takeBackup());
  expect(ledger.restore()).toEqual(new Map([['a', { charge: 20n, tokens: 7n }]]));
  expect(ledger.restore()).toEqual(new Map([['a', { charge: 0n, tokens: 0n }]]));
});
