import { expect, test } from '@jest/globals';
import { Fault } from '@signalbox/kernel/fault';
import { silentLog } from '@signalbox/runtime/log';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createBillingMetrics } from './metrics.js';
import { startRounds } from './rounds.js';

const NOVEMBER = Date.UTC(2026, 10, 1);
const MINUTE = 60_000;

/** When rounds closed periods, from a start 70.5 s before November, in ms from its beginning; the first `failures` in it are in vain. */
async function rounds(failures: number): Promise<readonly number[]> {
  const clock = createFakeClock(NOVEMBER - MINUTE - 10_500);
  const at: number[] = [];
  let left = failures;
  const begun = startRounds({
    books: { reconcile: () => Promise.resolve([]), deadWaiting: () => Promise.resolve(0) },
    keeper: {
      bill: () => Promise.resolve(undefined),
      closePeriods: (nowMs) => {
        at.push(nowMs - NOVEMBER);
        if (nowMs >= NOVEMBER && (left -= 1) >= 0) return Promise.reject(new Fault('accounts_unavailable', 'away'));
        return Promise.resolve({ closed: [], waiting: nowMs < NOVEMBER ? [] : [{ period: '2026-10', reason: 'not_over', writer: '' }] });
      },
    },
    clock, log: silentLog, metrics: createBillingMetrics(false), everyMs: 60 * MINUTE, periodSeconds: undefined, unreconciledOf: () => 0n,
  });
  begun.begin();
  await clock.advanceAsync(3 * MINUTE);
  await begun.stop();
  return at;
}

test('a round comes at the end of a period, when its terms are read, then each minute while it waits', async () => {
  expect(await rounds(0)).toEqual([-50_500, 0, MINUTE]);
});

test('while that round is in vain it is tried again each second', async () => {
  expect(await rounds(2)).toEqual([-50_500, 0, 1_000, 2_000, MINUTE + 2_000]);
});
