import { afterAll, expect, test } from '@jest/globals';
import { admit, applyTotals, finish, heartbeat, newAccountState, overdue, release, show, sweep, type AdmitCommand, type Wall } from '@signalbox/ledger-core/admission';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { stopTestStores, testRedisUrl } from '@signalbox/testkit/stores';
import { createRedisStore } from './redis-store.js';

const stores: ReturnType<typeof createRedisStore>[] = [];

function seeded(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
}

test('scripts and the pure state machine agree after each of 2,000 random commands', async () => {
  let time = Date.parse('2026-11-21T14:00:00Z');
  const store = createRedisStore({ url: await testRedisUrl(), clock: systemClock, log: silentLog, metrics: { storeTook: () => undefined, storeFailed: () => undefined }, commandTimeoutMs: 5_000, fixedNowMs: () => time });
  stores.push(store);
  await store.start();
  let commands = 0;
  const seen = new Map<string, number>();
  const missed = new Map<boolean, number>();
  for (let seed = 1; seed <= 20; seed += 1) {
    const account = `acct_${Buffer.from(randomBytes(8)).toString('hex')}`;
    const state = newAccountState();
    const pick = seeded(seed);
    for (let step = 0; step < 100; step += 1, commands += 1) {
      time += [0, 0, 0, 0, 5, 40, 150, 900, 7_000, 45_000, 86_400_000][pick(11)] ?? 0;
      const requestId = `r${pick(60)}`;
      const keyId = `key_${pick(2)}`;
      const kind = pick(10);
      const nowMs = time;
      const amount = BigInt(pick(60));
      const tokens = BigInt(pick(20));
      if (kind < 5) {
        const walls: Wall[] = [];
        if (pick(2) === 0) walls.push({ scope: 'account', period: 'day', meter: 'charge', limit: BigInt(pick(300)) });
        if (pick(3) === 0) walls.push({ scope: 'key', period: 'week', meter: 'charge', limit: BigInt(pick(200)) });
        if (pick(3) === 0) walls.push({ scope: 'account', period: 'plan', meter: 'tokens', limit: BigInt(pick(150)) });
        const command: AdmitCommand = {
          requestId, keyId, counter: pick(6) === 0 ? 'control' : 'chat', amount, minAmount: BigInt(pick(30)), tokens, byok: pick(4) === 0, requestsPerMinute: pick(3) === 0 ? undefined : 1 + pick(3),
          burstPerSecond: pick(3) === 0 ? 1 : undefined, keyRequestsPerMinute: pick(4) === 0 ? 3 : undefined, walls, anchorDay: pick(29), periodSeconds: undefined, needsTotals: false,
        };
        const answer = await store.admit(account, command);
        const expected = admit(state, command, '', nowMs);
        seen.set(typeof expected === 'string' ? expected : expected.decision, (seen.get(typeof expected === 'string' ? expected : expected.decision) ?? 0) + 1);
        expect(answer).toEqual(expected);
      } else {
        if (kind === 5) {
          await store.release(account, requestId);
          release(state, requestId, nowMs);
        } else if (kind === 6) {
          expect(await store.heartbeat(account, requestId, amount * 2n, tokens)).toBe(heartbeat(state, requestId, amount * 2n, tokens, nowMs));
        } else if (kind === 7) {
          const command = { requestId, charge: amount, tokens, byok: pick(3) === 0, keyId, periods: state.holds.get(requestId)?.periods };
          await store.finish(account, command);
          finish(state, command, nowMs);
        } else if (kind === 8) {
          const totals = { seq: BigInt(pick(50)), totals: [{ scope: 'account', periodId: 'total', charge: amount, tokens, byok: 0n }], requestIds: [requestId], previousSeq: BigInt(pick(50)) };
          const complete = pick(3) === 0;
          const hasMissed = applyTotals(state, totals, nowMs, complete ? 'x' : undefined);
          missed.set(hasMissed, (missed.get(hasMissed) ?? 0) + 1);
          expect(await store.applyTotals(account, totals, complete)).toBe(hasMissed);
        } else {
          expect(await store.sweep(account)).toBe(sweep(state, nowMs).length);
        }
      }
      if (step % 10 === 9) expect([...(await store.overdue(account, 10_000, 1_000))].sort()).toEqual(overdue(state, 10_000, 1_000, nowMs).sort());
      const view = await store.show(account);
      const model = show(state, nowMs);
      expect([...view.buckets].sort()).toEqual([...model.buckets].sort());
      expect(view.remaining).toEqual(model.remaining);
    }
  }
  expect(commands).toBe(2_000);
  expect([...seen.keys()].sort()).toEqual(['admitted', 'rate', 'burst', 'wall', 'blocked', 'ended'].sort());
  expect([...missed.keys()].sort()).toEqual([false, true]);
}, 60_000);

afterAll(async () => {
  for (const store of stores) await store.stop();
  await stopTestStores();
});
