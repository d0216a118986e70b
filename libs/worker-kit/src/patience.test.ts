import { expect, test } from '@jest/globals';
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import { createFakeClock } from '@signalbox/testkit/clock';
import { Patience, type Overdue } from './patience.js';

type Step = readonly [afterMs: number, what: 'head' | 'bytes' | 'event' | 'output'];

/** When it gave up, and waiting for what. */
async function endOf(limits: { readonly firstByteTimeoutMs: number; readonly idleTimeoutMs: number }, steps: readonly Step[]): Promise<readonly [number, Overdue]> {
  const clock = createFakeClock();
  let overdue: Overdue | undefined;
  let atMs = 0;
  const request = { stream: true, wholeTimeoutMs: 0, fields: [] as DispatchRequest__Output['fields'], ...limits } as DispatchRequest__Output;
  const patience = new Patience(clock, request, (what) => {
    overdue ??= what;
    atMs = clock.monotonicMs();
    patience.stop();
  }, (callback) => callback());
  patience.start();
  patience.sent();
  for (const [afterMs, what] of steps) {
    clock.advance(afterMs);
    if (what === 'head') patience.headCame();
    else patience.dataCame();
    if (what === 'event' || what === 'output') patience.gotOn(what === 'output');
  }
  await clock.advanceAsync(3_600_000);
  if (overdue === undefined) throw new Error('it waits for ever');
  return [atMs, overdue];
}

const THINKING = { firstByteTimeoutMs: 300_000, idleTimeoutMs: 60_000 };
const PLAIN = { firstByteTimeoutMs: 10_000, idleTimeoutMs: 30_000 };

test.each<[string, typeof THINKING, readonly Step[], number, Overdue]>([
  ['says nothing', THINKING, [], 300_000, 'first-byte'],
  ['holds its head back as well', THINKING, [[100_000, 'head']], 300_000, 'first-byte'],
  ['says that it answers, and thinks then', THINKING, [[0, 'head'], [1_000, 'event']], 301_000, 'next-byte'],
  ['stops in the middle', THINKING, [[0, 'head'], [200_000, 'output']], 260_000, 'next-byte'],
  ['says that it answers and no more', PLAIN, [[0, 'head'], [1_000, 'event']], 31_000, 'next-byte'],
  ['is never done thinking, and says so', THINKING, [[0, 'head'], ...Array.from({ length: 20 }, (): Step => [50_000, 'bytes'])], 600_000, 'event'],
  ['is slow to load, and says so', PLAIN, [[0, 'head'], ...Array.from({ length: 20 }, (): Step => [9_000, 'bytes'])], 120_000, 'event'],
])('a host that %s', async (_what, limits, steps, atMs, overdue) => {
  expect(await endOf(limits, steps)).toEqual([atMs, overdue]);
});
