import { expect, test } from '@jest/globals';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createFakeClaims, LEASE_MS } from '../testing/claims.js';
import { createRepeats, type ClaimEnding, type Entry, type LedgerPort } from './repeats.js';

const ENDED: ClaimEnding = { kind: 'ended', costNanoUsd: 5n, answer: Buffer.from('kept') };

async function openedBy(clock: ReturnType<typeof createFakeClock>, claims: ReturnType<typeof createFakeClaims>, bookedOf: LedgerPort['bookedOf'] = () => Promise.resolve(undefined)) {
  const repeats = createRepeats({ claims, ledger: { bookedOf }, clock, onTakenOver: () => undefined });
  const opened = async (requestId: string): Promise<Entry & { readonly kind: 'open' }> => {
    const entry = await repeats.enter({ accountId: 'acct_1', keyDigest: Buffer.from(requestId), requestId }, Buffer.from('body'), true, () => true);
    if (entry.kind !== 'open') throw new Error('expected an open claim');
    return entry;
  };
  return { repeats, opened };
}

test('a stopping edge waits until the claims of its last answers have ended, so that kept answers are not lost', async () => {
  const clock = createFakeClock();
  const claims = createFakeClaims(clock);
  const { repeats, opened } = await openedBy(clock, claims);
  let letThrough: () => void = () => undefined;
  claims.endGate = new Promise((resolve) => (letThrough = resolve));
  const { claim } = await opened('r1');
  void claim.end(ENDED);
  let left: number | undefined;
  void repeats.settle(2_000).then((count) => (left = count));
  await clock.advanceAsync(1_500);
  expect(left).toBeUndefined();
  letThrough();
  await clock.advanceAsync(100);
  expect([left, [...claims.kept.values()][0]?.done?.answer?.toString()]).toEqual([0, 'kept']);
});

test('it waits no longer than its limit, and not for running requests', async () => {
  const clock = createFakeClock();
  const claims = createFakeClaims(clock);
  const { repeats, opened } = await openedBy(clock, claims);
  await opened('r1');
  expect(await repeats.settle(2_000)).toBe(0);
  claims.endGate = new Promise(() => undefined);
  void (await opened('r2')).claim.end(ENDED);
  const settled = repeats.settle(2_000);
  await clock.advanceAsync(2_100);
  expect(await settled).toBe(1);
});

test('a repeat of a request whose edge died is told the cost that is booked by then, since rounds are booked one by one', async () => {
  const clock = createFakeClock();
  const claims = createFakeClaims(clock);
  let costNanoUsd = 21_000n;
  const first = await openedBy(clock, claims, () => Promise.resolve({ costNanoUsd, isBilled: true }));
  const { claim } = await first.opened('r1');
  expect(await claim.keep()).toBeUndefined();
  claims.isAway = true;
  await clock.advanceAsync(LEASE_MS + 1_000);
  claims.isAway = false;
  const repeat = async (requestId: string): Promise<unknown> => {
    const entry = await first.repeats.enter({ accountId: 'acct_1', keyDigest: Buffer.from('r1'), requestId }, Buffer.from('body'), true, () => true);
    await clock.settle();
    return entry;
  };
  expect(await repeat('r2')).toEqual({ kind: 'done', requestId: 'r1', costNanoUsd: 21_000n, answer: undefined });
  costNanoUsd = 54_157n;
  expect(await repeat('r3')).toEqual({ kind: 'done', requestId: 'r1', costNanoUsd: 54_157n, answer: undefined });
});
