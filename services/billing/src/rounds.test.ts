import { expect, test } from '@jest/globals';
import { Fault } from '@signalbox/kernel/fault';
import { silentLog } from '@signalbox/runtime/log';
import { createFakeClock } from '@signalbox/testkit/clock';
import { unreconciledOf } from './books-door.js';
import type { ReconcileRow } from './domain/books.js';
import type { WriterMarkRow } from './domain/ports.js';
import { createBillingMetrics } from './metrics.js';
import { startRounds } from './rounds.js';

const NOVEMBER = Date.UTC(2026, 10, 1);
const MINUTE = 60_000;

/** No writers, and no time in which nobody could report. */
const QUIET = { writers: () => Promise.resolve([]), hearing: { until: (nowMs: number) => nowMs } };

type Answer = 'in vain' | 'waits' | 'closes' | 'nothing';
/** When rounds tried to close periods, in ms from the beginning of November by the ledger's clock, if billing starts 70.5 s before. `answers`: results from November on; the last one is repeated. */
const rounds = (...answers: readonly Answer[]): Promise<readonly number[]> => roundsAhead(0, answers);

/** How far the host's clock is ahead. */
async function roundsAhead(aheadMs: number, answers: readonly Answer[]): Promise<readonly number[]> {
  const clock = createFakeClock(NOVEMBER - MINUTE - 10_500 + aheadMs);
  const at: number[] = [];
  let asked = 0;
  const begun = startRounds({
    books: { reconcile: () => Promise.resolve([]), deadWaiting: () => Promise.resolve(0), lastReconciled: () => Promise.resolve([]) },
    ...QUIET,
    keeper: {
      bill: () => Promise.resolve(undefined),
      closePeriods: (nowMs) => {
        at.push(nowMs - NOVEMBER);
        const answer = nowMs < NOVEMBER ? 'nothing' : answers[Math.min(asked++, answers.length - 1)];
        if (answer === 'in vain') return Promise.reject(new Fault('accounts_unavailable', 'away'));
        return Promise.resolve({ closed: answer === 'closes' ? ['2026-10'] : [], waiting: answer === 'waits' ? [{ period: '2026-10', reason: 'not_over', writer: '' }] : [] });
      },
    },
    reread: () => Promise.resolve(), clock, ledgerNow: () => Promise.resolve(clock.nowMs() - aheadMs), log: silentLog, metrics: createBillingMetrics(false), everyMs: 60 * MINUTE, periodSeconds: undefined, unreconciledOf: () => 0n,
  });
  begun.begin();
  await clock.advanceAsync(3 * MINUTE);
  await begun.stop();
  return at;
}

test('a round runs at the end of a period, when its terms are read, then each minute while the period waits', async () => {
  expect(await rounds('waits')).toEqual([-50_500, 0, MINUTE]);
});

test.each([16 * MINUTE, -16 * MINUTE])('a host whose clock is %d ms off uses the clock of the ledger', async (aheadMs) => {
  expect(await roundsAhead(aheadMs, ['waits'])).toEqual([-50_500, 0, MINUTE]);
});

test('if that round fails it is repeated each second', async () => {
  expect(await rounds('in vain', 'in vain', 'waits')).toEqual([-50_500, 0, 1_000, 2_000, MINUTE + 2_000]);
});

test('after a close another round runs, for periods that are left after a long pause', async () => {
  expect(await rounds('closes', 'nothing')).toEqual([-50_500, 0, MINUTE]);
  expect(await rounds('nothing')).toEqual([-50_500, 0]);
});

test('periods are looked for with each comparison, for a ledger that was restored to a time before a close', async () => {
  const clock = createFakeClock(NOVEMBER);
  const at: number[] = [];
  const begun = startRounds({
    books: { reconcile: () => Promise.resolve([]), deadWaiting: () => Promise.resolve(0), lastReconciled: () => Promise.resolve([]) },
    ...QUIET,
    keeper: { bill: () => Promise.resolve(undefined), closePeriods: (nowMs) => (at.push(nowMs - NOVEMBER), Promise.resolve({ closed: [], waiting: [] })) },
    reread: () => Promise.resolve(), clock, ledgerNow: () => Promise.resolve(clock.nowMs()), log: silentLog, metrics: createBillingMetrics(false), everyMs: 60 * MINUTE, periodSeconds: undefined, unreconciledOf: () => 0n,
  });
  begun.begin();
  await clock.advanceAsync(125 * MINUTE);
  await begun.stop();
  expect(at).toEqual([20_000, 20_000 + 60 * MINUTE, 20_000 + 120 * MINUTE]);
});

test('each round first retries unread messages and then counts the waiting ones', async () => {
  const clock = createFakeClock(NOVEMBER);
  const did: string[] = [];
  const begun = startRounds({
    books: { reconcile: () => Promise.resolve([]), deadWaiting: () => (did.push('count'), Promise.resolve(0)), lastReconciled: () => Promise.resolve([]) },
    ...QUIET,
    keeper: { bill: () => Promise.resolve(undefined), closePeriods: () => Promise.resolve({ closed: [], waiting: [] }) },
    reread: () => (did.push('reread'), Promise.resolve()),
    clock, ledgerNow: () => Promise.resolve(clock.nowMs()), log: silentLog, metrics: createBillingMetrics(false), everyMs: 60 * MINUTE, periodSeconds: undefined, unreconciledOf: () => 0n,
  });
  begun.begin();
  await clock.advanceAsync(20_000 + MINUTE);
  await begun.stop();
  expect(did).toEqual(['reread', 'count', 'reread', 'count']);
});

/** The value of a gauge after each minute of rounds; `each` sets what they find. */
async function gaugeOf(name: string, minutes: number, found: (minute: number) => { readonly rows?: readonly ReconcileRow[]; readonly last?: readonly ReconcileRow[]; readonly writers?: readonly WriterMarkRow[] }): Promise<readonly number[]> {
  const clock = createFakeClock(NOVEMBER);
  const metrics = createBillingMetrics(false);
  let minute = 0;
  const begun = startRounds({
    books: { reconcile: () => Promise.resolve(found(minute).rows ?? []), lastReconciled: () => Promise.resolve(found(minute).last ?? []), deadWaiting: () => Promise.resolve(0) },
    writers: () => Promise.resolve(found(minute).writers ?? []), hearing: { until: (nowMs) => nowMs - 1_000 },
    keeper: { bill: () => Promise.resolve(undefined), closePeriods: () => Promise.resolve({ closed: [], waiting: [] }) },
    reread: () => Promise.resolve(), clock, ledgerNow: () => Promise.resolve(clock.nowMs()), log: silentLog, metrics, everyMs: 60 * MINUTE, periodSeconds: undefined, unreconciledOf,
  });
  begun.begin();
  const values: number[] = [];
  await clock.advanceAsync(20_000);
  for (; minute < minutes; minute += 1, await clock.advanceAsync(MINUTE)) {
    const text = await metrics.metrics.registry.metrics();
    values.push(Number(new RegExp(`^${name}\\{[^}]*\\} (\\S+)$`, 'm').exec(text)?.[1]));
  }
  await begun.stop();
  return values;
}

const differs: ReconcileRow = { kind: 'account', subject: 'x', day: '', oursNanoUsd: 5n, theirsNanoUsd: 2n, status: 'differs', gaps: 0n };

test('a newer reconciliation of another replica is shown within a minute, instead of this one’s own', async () => {
  expect(await gaugeOf('signalbox_billing_unreconciled_nano_usd', 4, (minute) => ({ rows: [differs], last: minute < 2 ? [differs] : [] }))).toEqual([3, 3, 0, 0]);
  expect(await gaugeOf('signalbox_billing_unreconciled_nano_usd', 4, (minute) => ({ rows: [], last: minute < 2 ? [] : [differs] }))).toEqual([0, 0, 3, 3]);
});

test.each<[string, Partial<WriterMarkRow>, readonly number[]]>([
  ['is behind', {}, [0, 0, 1, 1]],
  ['is booked to its end', { ledgerSeq: 9n }, [0, 0, 0, 0]],
  ['was declared lost', { isDeclaredLost: true }, [0, 0, 0, 0]],
  ['then reports again', { seenAtMs: NOVEMBER + 4 * MINUTE }, [0, 0, 0, 0]],
])('a writer that has been silent for two minutes and %s', async (_what, change, told) => {
  const writer = { writer: 'w', provider: 'p', lastSeq: 9n, ledgerSeq: 7n, gaps: 0n, seenAtMs: NOVEMBER, isDeclaredLost: false, isEnded: false, ...change };
  expect(await gaugeOf('signalbox_billing_writers_silent', 4, () => ({ writers: [writer] }))).toEqual(told);
});
