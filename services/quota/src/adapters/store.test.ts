import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomBytes } from '@signalbox/runtime/random';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog } from '@signalbox/runtime/log';
import { ownRedis, stopTestStores, testRedisUrl } from '@signalbox/testkit/stores';
import { Redis } from 'ioredis';
import { parse } from 'yaml';
import { DAY_MEMORY_MS, FORGET_INTERVAL_MS, type Wall } from '@signalbox/ledger-core/account-state';
import type { AdmitAnswer, AdmitCommand, AdmitVerdict } from '@signalbox/ledger-core/admission';
import { createMemoryStore } from './memory-store.js';
import { createRedisStore } from './redis-store.js';
import type { QuotaStore } from '../domain/ports.js';

let skew = 0;
const noMetrics = { storeTook: () => undefined, storeFailed: () => undefined };
const fresh = (): string => `acct_${Buffer.from(randomBytes(8)).toString('hex')}`;
const cap = (limit: bigint, more: Partial<Wall> = {}): Wall => ({ scope: 'account', period: 'total', meter: 'charge', limit, ...more });
const command = (requestId: string, more: Partial<AdmitCommand> = {}): AdmitCommand => ({
  requestId, keyId: 'key_1', counter: 'chat', amount: 0n, minAmount: 0n, tokens: 0n, minTokens: 0n, byok: false, requestsPerMinute: undefined, burstPerSecond: undefined,
  keyRequestsPerMinute: undefined, walls: [], anchorDay: 0, periodSeconds: undefined, needsTotals: false, ...more,
});
const verdict = (answer: AdmitAnswer): AdmitVerdict => {
  if (typeof answer === 'string') throw new Error(`expected a verdict, not ${answer}`);
  return answer;
};

/** A Redis with the users of deploy/redis, their file made by the command that compose starts it with. */
async function deployedRedis(): ReturnType<typeof ownRedis> {
  const root = fileURLToPath(new URL('../../../..', import.meta.url));
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-acl-'));
  const { services } = parse(readFileSync(join(root, 'docker-compose.yml'), 'utf8')) as { readonly services: { readonly redis: { readonly command: readonly [string, string, string] } } };
  const [shell, flag, script] = services.redis.command;
  const [make = '', start = ''] = script.replaceAll('$$', '$').replaceAll('/etc/signalbox', join(root, 'deploy/redis')).replaceAll('/tmp/users.acl', join(folder, 'users.acl')).split(' && exec ');
  expect(start).toContain(`--aclfile ${join(folder, 'users.acl')}`);
  execFileSync(shell, [flag, make], { env: { PATH: process.env['PATH'], QUOTA_REDIS_PASSWORD: PASSWORD } });
  const server = await ownRedis({ aclFile: join(folder, 'users.acl') });
  rmSync(folder, { recursive: true });
  return { ...server, url: `redis://quota:${PASSWORD}@127.0.0.1:${server.port}` };
}
const PASSWORD = '0e1a2b';
let deployed: Awaited<ReturnType<typeof deployedRedis>>;
beforeAll(async () => {
  deployed = await deployedRedis();
});
afterAll(() => deployed.stop());
const redisStore = (url: string, fixed: { readonly fixedNowMs?: () => number } = {}): QuotaStore => createRedisStore({ url, clock: systemClock, randomBytes, log: silentLog, metrics: noMetrics, commandTimeoutMs: 5_000, ...fixed });

describe.each(['memory', 'redis', 'redis as deployed'])('the %s store', (kind) => {
  let store: QuotaStore;
  beforeAll(async () => {
    store = kind === 'memory' ? createMemoryStore({ clock: { nowMs: () => systemClock.nowMs() + skew } }) : redisStore(kind === 'redis' ? await testRedisUrl() : deployed.url, { fixedNowMs: () => systemClock.nowMs() + skew });
    await store.start();
  });
  afterAll(async () => {
    await store.stop();
  });

  test('never admits more than the limit in a minute, and a refusal does not count', async () => {
    const account = fresh();
    for (let i = 0; i < 5; i += 1) expect(verdict(await store.admit(account, command(`r${i}`, { requestsPerMinute: 5 })))).toMatchObject({ decision: 'admitted', rate: { limit: 5, remaining: 4 - i } });
    const refused = verdict(await store.admit(account, command('r5', { requestsPerMinute: 5 })));
    expect(refused.decision).toBe('rate');
    skew += refused.retryAfterMs;
    expect(verdict(await store.admit(account, command('r6', { requestsPerMinute: 5 }))).decision).toBe('admitted');
  });

  test('keeps bursts, keys and the control counter apart', async () => {
    const account = fresh();
    expect(verdict(await store.admit(account, command('a', { burstPerSecond: 1, requestsPerMinute: 1 }))).decision).toBe('admitted');
    expect(verdict(await store.admit(account, command('b', { burstPerSecond: 1 }))).decision).toBe('burst');
    expect(verdict(await store.admit(account, command('c', { counter: 'control', requestsPerMinute: 1 }))).decision).toBe('admitted');
    expect(verdict(await store.admit(account, command('c', { counter: 'control', requestsPerMinute: 1 }))).decision).toBe('admitted');
    expect(verdict(await store.admit(account, command('d', { counter: 'control', requestsPerMinute: 1 }))).decision).toBe('rate');
    expect(verdict(await store.admit(account, command('e', { keyId: 'key_2', keyRequestsPerMinute: 1 }))).decision).toBe('admitted');
    expect(verdict(await store.admit(account, command('f', { keyId: 'key_2', keyRequestsPerMinute: 1 }))).decision).toBe('rate');
  });

  test('a repeated admission answers the same and holds once', async () => {
    const account = fresh();
    const first = await store.admit(account, command('r', { amount: 70n, walls: [cap(100n)], requestsPerMinute: 1 }));
    expect(await store.admit(account, command('r', { amount: 70n, walls: [cap(100n)], requestsPerMinute: 1 }))).toMatchObject({ ...verdict(first), rate: { limit: 1, remaining: 0 } });
    expect((await store.show(account)).buckets.get('account|total')?.heldCharge).toBe(70n);
    expect((await store.show(account)).remaining).toBe(30n);
  });

  test('denies what passes the cap by one nano, fits a divisible hold and names live holds as such', async () => {
    const account = fresh();
    const walls = [cap(100n, { period: 'day' })];
    expect(verdict(await store.admit(account, command('a', { amount: 101n, walls })))).toMatchObject({ decision: 'wall', wall: { index: 0, spend: 0n } });
    expect(verdict(await store.admit(account, command('b', { amount: 150n, minAmount: 60n, walls })))).toMatchObject({ decision: 'admitted', held: 100n });
    expect(verdict(await store.admit(account, command('c', { amount: 1n, walls })))).toMatchObject({ decision: 'blocked', wall: { reserved: 100n } });
    await store.release(account, 'b');
    expect(verdict(await store.admit(account, command('c', { amount: 100n, walls }))).decision).toBe('admitted');
    expect(await store.admit(account, command('b', { amount: 1n }))).toBe('ended');
  });

  test('requests that are told at once are answered as one after the other would be: a cap, a rate and a repeated id to the last one', async () => {
    const account = fresh();
    const each = async (ids: readonly string[], more: Partial<AdmitCommand>): Promise<readonly string[]> => {
      const answers = await Promise.all(ids.map((id) => store.admit(account, command(id, more))));
      return answers.map((answer) => (typeof answer === 'string' ? answer : answer.decision));
    };
    const many = (letter: string, count: number): string[] => Array.from({ length: count }, (_, i) => `${letter}${i}`);
    expect(await each(many('a', 250), { amount: 10n, walls: [cap(1_235n)] })).toEqual(many('a', 250).map((_, i) => (i < 123 ? 'admitted' : 'blocked')));
    expect((await store.show(account)).buckets.get('account|total')?.heldCharge).toBe(1_230n);
    const freed = await Promise.all(many('a', 250).map((requestId, i) => store.finish(account, { requestId, charge: i < 123 ? 9n : 0n, tokens: 1n, byok: false, keyId: `key_${i % 3}`, periods: undefined })));
    expect(freed).toEqual(many('a', 250).map((_, i) => i < 123));
    expect((await store.show(account)).buckets.get('account|total')).toMatchObject({ heldCharge: 0n, finishedCharge: 1_107n, finishedTokens: 250n });
    expect(await each(['b', 'c', 'b', 'd', 'a0'], { requestsPerMinute: 2, keyId: 'key_2' })).toEqual(['admitted', 'admitted', 'admitted', 'rate', 'ended']);
  });

  test('what is told of an account at once is done in the order in which it is told', async () => {
    const account = fresh();
    const walls = [cap(100n)];
    const whole = (id: string): Promise<AdmitAnswer> => store.admit(account, command(id, { amount: 100n, walls }));
    const done = (requestId: string, charge: bigint): Promise<boolean> => store.finish(account, { requestId, charge, tokens: 0n, byok: false, keyId: 'key_1', periods: undefined });
    const [a, b, isReleased, c, isFreed, d, isGranted, e] = await Promise.all([whole('a'), whole('b'), store.release(account, 'a'), whole('c'), done('c', 1n), whole('d'), store.heartbeat(account, 'c', 1n, 0n), store.admit(account, command('e', { amount: 99n, walls }))]);
    expect([a, b, c, d, e].map((answer) => verdict(answer).decision)).toEqual(['admitted', 'blocked', 'admitted', 'wall', 'admitted']);
    expect([isReleased, isFreed, isGranted]).toEqual([true, true, false]);
  });

  test('holds become charges, then totals, without double counting in any order', async () => {
    const account = fresh();
    const walls = [cap(1_000n)];
    const { periods } = verdict(await store.admit(account, command('a', { amount: 400n, tokens: 9n, walls })));
    const done = { requestId: 'a', charge: 250n, tokens: 7n, byok: false, keyId: 'key_1', periods };
    const totals = { seq: 3n, totals: [{ scope: 'account', periodId: 'total', charge: 250n, tokens: 7n, byok: 0n }], requestIds: ['a'] };
    expect(await store.heartbeat(account, 'a', 0n, 0n)).toBe(true);
    await store.release(account, 'a');
    expect((await store.show(account)).buckets.get('account|total')).toMatchObject({ heldCharge: 400n });
    await store.finish(account, done);
    await store.finish(account, done);
    expect((await store.show(account)).buckets.get('account|total')).toMatchObject({ heldCharge: 0n, finishedCharge: 250n, finishedTokens: 7n });
    await store.applyTotals(account, totals, '');
    await store.applyTotals(account, { ...totals, seq: 2n, totals: [{ scope: 'account', periodId: 'total', charge: 1n, tokens: 1n, byok: 0n }] }, '');
    await store.finish(account, done);
    expect((await store.show(account)).buckets.get('account|total')).toMatchObject({ seq: 3n, charge: 250n, finishedCharge: 0n, heldCharge: 0n });
  });

  test('a hold grows only within the cap, and an undispatched lease ends after 30 s', async () => {
    const account = fresh();
    const walls = [cap(100n)];
    await store.admit(account, command('a', { amount: 40n, walls }));
    await store.admit(account, command('b', { amount: 40n, walls }));
    expect(await store.heartbeat(account, 'a', 61n, 0n)).toBe(false);
    expect(await store.heartbeat(account, 'a', 60n, 0n)).toBe(true);
    skew += 31_000;
    expect(await store.sweep(account)).toBe(1);
    expect((await store.show(account)).buckets.get('account|total')?.heldCharge).toBe(60n);
    expect(await store.admit(account, command('b', { amount: 40n, walls }))).toBe('ended');
  });

  describe('a clock that was ahead and went back by an hour', () => {
    const backByAnHour = (): void => {
      skew -= 3_600_000;
    };

    test('keeps nobody out by a rate of a time to come, and the rate holds from then on', async () => {
      const account = fresh();
      const limits = { requestsPerMinute: 2, burstPerSecond: 2, keyRequestsPerMinute: 2 };
      for (const id of ['a', 'b']) expect(verdict(await store.admit(account, command(id, limits))).decision).toBe('admitted');
      expect(verdict(await store.admit(account, command('c', { requestsPerMinute: 2 }))).decision).toBe('rate');
      backByAnHour();
      for (const id of ['d', 'e']) expect(verdict(await store.admit(account, command(id, limits))).decision).toBe('admitted');
      const refused = verdict(await store.admit(account, command('f', { requestsPerMinute: 2 })));
      expect(refused.decision).toBe('rate');
      expect(refused.retryAfterMs).toBeLessThanOrEqual(61_000);
    });

    test('lets a hold that nobody dispatched end within a lease', async () => {
      const account = fresh();
      const walls = [cap(100n)];
      await store.admit(account, command('a', { amount: 60n, walls }));
      backByAnHour();
      expect(verdict(await store.admit(account, command('b', { amount: 60n, walls }))).decision).toBe('blocked');
      skew += 31_000;
      expect(verdict(await store.admit(account, command('b', { amount: 60n, walls }))).decision).toBe('admitted');
      expect((await store.show(account)).buckets.get('account|total')?.heldCharge).toBe(60n);
    });

    test('has the ledger asked about what was under way and what had finished', async () => {
      const account = fresh();
      await store.admit(account, command('a', { amount: 5n }));
      await store.admit(account, command('b', { amount: 5n }));
      await store.heartbeat(account, 'a', 0n, 0n);
      await store.finish(account, { requestId: 'b', charge: 5n, tokens: 1n, byok: false, keyId: 'key_1', periods: undefined });
      backByAnHour();
      expect([...(await store.overdue(account, 10_000, 10))].sort()).toEqual(['a', 'b']);
      // Of what still runs its worker tells, and from then on it is known since when.
      await store.heartbeat(account, 'a', 0n, 0n);
      expect(await store.overdue(account, 10_000, 10)).toEqual(['b']);
    });
  });

  test('asks for totals before money is admitted, counting nothing', async () => {
    const account = fresh();
    const asked = command('a', { amount: 5n, walls: [cap(10n)], needsTotals: true, requestsPerMinute: 1 });
    expect(await store.admit(account, asked)).toBe('unloaded');
    await store.applyTotals(account, { seq: 9n, totals: [{ scope: 'account', periodId: 'total', charge: 6n, tokens: 0n, byok: 0n }], requestIds: [] }, await store.epoch());
    expect(verdict(await store.admit(account, asked)).decision).toBe('wall');
    expect(verdict(await store.admit(account, { ...asked, amount: 4n }))).toMatchObject({ decision: 'admitted', rate: { remaining: 0 } });
  });

  test('says of every totals message that one before it was missed, until it has complete totals', async () => {
    const account = fresh();
    const totals = (previousSeq: bigint, seq: bigint) => ({ seq, previousSeq, totals: [{ scope: 'account', periodId: 'total', charge: seq, tokens: 0n, byok: 0n }], requestIds: [] });
    expect(await store.applyTotals(account, totals(0n, 2n), '')).toBe(false);
    expect(await store.applyTotals(account, totals(2n, 5n), '')).toBe(false);
    // Told late, or by a ledger that went back: only an answer can say.
    expect(await store.applyTotals(account, totals(0n, 2n), '')).toBe(true);
    expect((await store.show(account)).buckets.get('account|total')?.charge).toBe(5n);
    expect(await store.applyTotals(account, totals(7n, 9n), '')).toBe(true);
    expect(await store.applyTotals(account, totals(9n, 11n), '')).toBe(true);
    expect((await store.show(account)).buckets.get('account|total')?.charge).toBe(11n);
    expect(await store.applyTotals(account, totals(0n, 11n), await store.epoch())).toBe(false);
    expect(await store.applyTotals(account, totals(11n, 14n), '')).toBe(false);
  });

  test('an answer below what was known before it was asked for takes its place: the ledger was restored from a backup', async () => {
    const account = fresh();
    const total = (charge: bigint) => [{ scope: 'account', periodId: 'total', charge, tokens: charge, byok: 0n }];
    await store.applyTotals(account, { seq: 5n, totals: [...total(50n), { scope: 'key_1', periodId: 'total', charge: 50n, tokens: 50n, byok: 0n }], requestIds: [] }, '');
    const knownSeq = await store.totalsSeq(account);
    expect([knownSeq, await store.totalsSeq(fresh())]).toEqual([5n, 0n]);
    expect(await store.applyTotals(account, { seq: 3n, totals: total(30n), requestIds: [], knownSeq }, '')).toBe(false);
    expect((await store.show(account)).buckets.get('account|total')).toMatchObject({ seq: 3n, charge: 30n, tokens: 30n });
    // Of this key the restored ledger has nothing.
    expect((await store.show(account)).buckets.get('key_1|total')).toMatchObject({ seq: 3n, charge: 0n });
    // Its own totals go on from there.
    expect(await store.applyTotals(account, { seq: 4n, previousSeq: 3n, totals: total(41n), requestIds: [] }, '')).toBe(false);
    // What came while the answer was on its way is newer than it.
    expect(await store.applyTotals(account, { seq: 2n, totals: total(20n), requestIds: [], knownSeq: 3n }, await store.epoch())).toBe(false);
    expect((await store.show(account)).buckets.get('account|total')).toMatchObject({ seq: 4n, charge: 41n });
  });

  test('totals below what is known end no request: the sums here do not have it, until the ledger was asked', async () => {
    const account = fresh();
    const total = (charge: bigint) => [{ scope: 'account', periodId: 'total', charge, tokens: 0n, byok: 0n }];
    const walls = [cap(100n)];
    await store.admit(account, command('charged', { amount: 40n, walls }));
    await store.admit(account, command('held', { amount: 30n, walls }));
    await store.finish(account, { requestId: 'charged', charge: 40n, tokens: 0n, byok: false, keyId: 'key_1', periods: undefined });
    await store.applyTotals(account, { seq: 9n, totals: total(5n), requestIds: [] }, '');
    // A ledger that was restored has forgotten the 5, and booked both since.
    expect(await store.applyTotals(account, { seq: 4n, totals: total(70n), requestIds: ['charged', 'held'] }, '')).toBe(true);
    expect((await store.show(account)).buckets.get('account|total')).toMatchObject({ charge: 5n, finishedCharge: 40n, heldCharge: 30n });
    expect(verdict(await store.admit(account, command('more', { amount: 26n, walls }))).decision).toBe('blocked');
    expect(await store.applyTotals(account, { seq: 4n, totals: total(70n), requestIds: ['charged', 'held'], knownSeq: 9n }, '')).toBe(false);
    expect((await store.show(account)).buckets.get('account|total')).toMatchObject({ charge: 70n, finishedCharge: 0n, heldCharge: 0n });
  });

  test('names what the ledger should have by now: finished long ago, or dispatched and no longer kept alive', async () => {
    const account = fresh();
    const others = fresh();
    await store.admit(account, command('waiting', { amount: 1n }));
    for (const id of ['live', 'left', 'done']) {
      await store.admit(account, command(id, { amount: 1n }));
      await store.heartbeat(account, id, 0n, 0n);
    }
    const done = { requestId: 'done', charge: 1n, tokens: 0n, byok: false, keyId: 'key_1', periods: undefined };
    await store.finish(account, done);
    expect(await store.overdue(account, 15_000, 10)).toEqual([]);
    skew += 20_000;
    await store.heartbeat(account, 'live', 0n, 0n);
    await store.finish(account, done);
    expect(await store.overdue(account, 15_000, 10)).toEqual(['done']);
    skew += 11_000;
    expect([...(await store.overdue(account, 15_000, 10))].sort()).toEqual(['done', 'left']);
    expect(await store.overdue(account, 15_000, 1)).toHaveLength(1);
    expect(await store.openAccounts()).toContain(account);
    expect(await store.openAccounts()).not.toContain(others);
    await store.sweep(account);
    await store.applyTotals(account, { seq: 1n, totals: [], requestIds: ['done', 'left', 'live'] }, '');
    expect(await store.overdue(account, 0, 10)).toEqual([]);
    expect(await store.openAccounts()).not.toContain(account);
  });

  test('a hold that only its worker knows is written down anew, once, and does not grow', async () => {
    const account = fresh();
    const periods = { day: '2026-11-21', week: '2026-W47', month: '2026-11', plan: '2026-11', reservedAtMs: 1 };
    const hold = { requestId: 'a', keyId: 'key_1', amount: 70n, tokens: 5n, byok: false, periods, isStarted: true };
    await store.reregister(account, hold);
    await store.reregister(account, hold);
    expect((await store.show(account)).buckets.get('account|day:2026-11-21')).toMatchObject({ heldCharge: 70n, heldTokens: 5n });
    expect(verdict(await store.admit(account, command('b', { amount: 31n, walls: [cap(100n)] })))).toMatchObject({ decision: 'blocked', wall: { reserved: 70n } });
    expect(await store.heartbeat(account, 'a', 71n, 5n)).toBe(false);
    await store.finish(account, { requestId: 'a', charge: 8n, tokens: 1n, byok: false, keyId: 'key_1', periods });
    await store.reregister(account, hold);
    expect((await store.show(account)).buckets.get('key_1|total')).toMatchObject({ heldCharge: 0n, finishedCharge: 8n });
    // Nor does it come back once the ledger's totals have it: it would count twice.
    await store.applyTotals(account, { seq: 1n, totals: [{ scope: 'key_1', periodId: 'total', charge: 8n, tokens: 1n, byok: 0n }], requestIds: ['a'] }, '');
    await store.reregister(account, hold);
    expect((await store.show(account)).buckets.get('key_1|total')).toMatchObject({ charge: 8n, heldCharge: 0n, finishedCharge: 0n });
  });

  test('what is not held does not grow and is not written down, whether it was lost or is over', async () => {
    const account = fresh();
    const walls = [cap(100n)];
    // As after a loss, before its worker has told of it: limits of its admission are forgotten, those of others are not.
    expect(await store.heartbeat(account, 'lost', 60n, 5n)).toBe(false);
    expect(await store.heartbeat(account, 'lost', 0n, 0n)).toBe(true);
    expect((await store.show(account)).buckets.get('account|total')?.heldCharge ?? 0n).toBe(0n);
    await store.admit(account, command('released', { amount: 10n, walls }));
    await store.release(account, 'released');
    expect(await store.heartbeat(account, 'released', 11n, 0n)).toBe(false);
    await store.admit(account, command('done', { amount: 10n, walls }));
    await store.finish(account, { requestId: 'done', charge: 8n, tokens: 0n, byok: false, keyId: 'key_1', periods: undefined });
    expect(await store.heartbeat(account, 'done', 11n, 0n)).toBe(false);
    expect((await store.show(account)).buckets.get('account|total')).toMatchObject({ heldCharge: 0n, finishedCharge: 8n });
    expect(verdict(await store.admit(account, command('whole', { amount: 92n, walls }))).decision).toBe('admitted');
  });

  test('tells of dispatched and finished requests whose log they stand in, and what is known of their charge', async () => {
    const account = fresh();
    const { periods } = verdict(await store.admit(account, command('held', { amount: 5n, byok: true })));
    const { day, week, month, plan } = periods;
    for (const id of ['waiting', 'done', 'edge']) await store.admit(account, command(id, { amount: 5n }));
    await store.heartbeat(account, 'held', 0n, 0n, 'wrt_1');
    // An edge asks for room and has no log.
    await store.heartbeat(account, 'held', 6n, 0n, '');
    await store.heartbeat(account, 'edge', 6n, 0n);
    await store.heartbeat(account, 'done', 0n, 0n, 'wrt_1');
    await store.finish(account, { requestId: 'done', charge: 3n, tokens: 2n, byok: false, keyId: 'key_1', periods, writer: 'wrt_2' });
    await store.reregister(account, { requestId: 'anew', keyId: 'key_1', amount: 1n, tokens: 0n, byok: false, periods, isStarted: true, writer: 'wrt_3' });
    const one = { keyId: 'key_1', byok: false, charge: 0n, tokens: 0n, periods: { day, week, month, plan } };
    expect(await store.describeOpen(account, ['held', 'waiting', 'done', 'edge', 'anew', 'unknown'])).toEqual([
      { ...one, requestId: 'held', writer: 'wrt_1', byok: true },
      { ...one, requestId: 'done', writer: 'wrt_2', charge: 3n, tokens: 2n },
      { ...one, requestId: 'edge', writer: '' },
      { ...one, requestId: 'anew', writer: 'wrt_3' },
    ]);
  });

  test('remembers which writers were heard in its present life, and of no other', async () => {
    const epoch = await store.epoch();
    expect(epoch).toBe(store.latestEpoch());
    await store.hear(epoch, 'wrt_1');
    await store.hear(epoch, 'wrt_2');
    expect([...(await store.heard(epoch))].sort()).toEqual(['wrt_1', 'wrt_2']);
    expect([...(await store.heard('another'))]).toEqual([]);
  });

  test('a hard allotment is one wall for both kinds of tokens, from the hold to the ledger', async () => {
    const account = fresh();
    const walls = [cap(20n, { period: 'plan', meter: 'routed' })];
    const ask = async (requestId: string, byok: boolean, tokens: bigint) => verdict(await store.admit(account, command(requestId, { amount: 0n, tokens, byok, walls })));
    expect(await ask('a', true, 10n)).toMatchObject({ decision: 'admitted', planTokens: 10n, room: { tokens: 20n } });
    expect(await ask('b', false, 10n)).toMatchObject({ decision: 'admitted', planTokens: 20n });
    for (const byok of [true, false]) expect(await ask(`c${String(byok)}`, byok, 1n)).toMatchObject({ decision: 'blocked', wall: { spend: 0n, reserved: 20n } });
    await store.finish(account, { requestId: 'a', charge: 0n, tokens: 10n, byok: true, keyId: 'key_1', periods: undefined });
    expect(await store.heartbeat(account, 'b', 0n, 11n)).toBe(false);
    await store.finish(account, { requestId: 'b', charge: 0n, tokens: 9n, byok: false, keyId: 'key_1', periods: undefined });
    for (const byok of [true, false]) expect(await ask(`d${String(byok)}`, byok, 2n)).toMatchObject({ decision: 'wall', wall: { spend: 19n, reserved: 0n } });
    expect(await ask('e', true, 1n)).toMatchObject({ decision: 'admitted', planTokens: 20n });
  });

  test('BYOK tokens have a wall of their own', async () => {
    const account = fresh();
    const walls = [cap(10n, { period: 'plan', meter: 'byok' })];
    expect(verdict(await store.admit(account, command('a', { tokens: 10n, byok: true, walls })))).toMatchObject({ decision: 'admitted', planTokens: 10n });
    expect(verdict(await store.admit(account, command('b', { tokens: 1n, byok: true, walls }))).decision).toBe('blocked');
    await store.finish(account, { requestId: 'a', charge: 0n, tokens: 10n, byok: true, keyId: 'key_1', periods: undefined });
    expect(verdict(await store.admit(account, command('b', { tokens: 1n, byok: true, walls }))).decision).toBe('wall');
  });

  test('forgets days long gone, and looks for them at most once an hour', async () => {
    const account = fresh();
    const { periods } = verdict(await store.admit(account, command('a')));
    await store.release(account, 'a');
    const has = async (): Promise<boolean> => (await store.show(account)).buckets.has(`account|day:${periods.day}`);
    await store.sweep(account);
    expect(await has()).toBe(true);
    skew += DAY_MEMORY_MS;
    await store.sweep(account);
    expect(await has()).toBe(true);
    skew += 86_400_000;
    await store.sweep(account);
    expect(await has()).toBe(false);
    const { buckets } = await store.show(account);
    expect(['total', `week:${periods.week}`, `month:${periods.month}`, `plan:${periods.plan}`].filter((id) => !buckets.has(`account|${id}`))).toEqual([]);
    await store.applyTotals(account, { seq: 1n, totals: [{ scope: 'account', periodId: `day:${periods.day}`, charge: 1n, tokens: 1n, byok: 0n }], requestIds: [] }, '');
    await store.sweep(account);
    expect(await has()).toBe(true);
    skew += FORGET_INTERVAL_MS;
    await store.sweep(account);
    expect(await has()).toBe(false);
  });
});

describe('the user that quota has at Redis', () => {
  let redis: Redis;
  beforeAll(async () => {
    redis = new Redis(deployed.url, { lazyConnect: true });
    await redis.connect();
  });
  afterAll(() => redis.disconnect());

  test('lets the store read the time of Redis, and send a script that was forgotten', async () => {
    const store = redisStore(deployed.url);
    await store.start();
    expect(verdict(await store.admit(fresh(), command('a', { requestsPerMinute: 1 }))).decision).toBe('admitted');
    expect(await redis.eval("return redis.call('HSET', KEYS[1], 'a', 1)", 1, 'q:{acct_eval}')).toBe(1);
    await store.stop();
  });

  test.each([['FLUSHALL'], ['FLUSHDB'], ['SCRIPT', 'FLUSH'], ['CONFIG', 'GET', '*'], ['CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru'], ['KEYS', '*'], ['ACL', 'LIST'], ['DEL', 'epoch'], ['SHUTDOWN'], ['MONITOR'], ['REPLICAOF', 'localhost', '1'], ['PUBLISH', 'x', 'y'], ['SET', 'other', '1'], ['HGETALL', 'other']])('is refused %s', async (name, ...args) => {
    await expect(redis.call(name, ...args)).rejects.toThrow(/^NOPERM/);
  });

  test('is refused other keys and commands inside a script too', async () => {
    await expect(redis.eval("return redis.call('SET', 'other', 1)", 0)).rejects.toThrow(/user executing the script can't access/);
    await expect(redis.eval("return redis.call('FLUSHALL')", 0)).rejects.toThrow(/user executing the script can't run this command/);
  });

  test('is the only one: nobody comes without a name, or by another password', async () => {
    const socket = connect(deployed.port, '127.0.0.1');
    for (const [said, expected] of [['GET epoch', '-NOAUTH'], [`AUTH ${PASSWORD}`, '-WRONGPASS'], ['AUTH quota wrong', '-WRONGPASS'], ['AUTH default x', '-WRONGPASS'], [`AUTH quota ${PASSWORD}`, '+OK']] as const) {
      socket.write(`${said}\r\n`);
      const [answer] = (await once(socket, 'data')) as [Buffer];
      expect({ said, answer: answer.toString() }).toEqual({ said, answer: expect.stringMatching(new RegExp(`^\\${expected}`)) as unknown });
    }
    socket.destroy();
  });
});

afterAll(stopTestStores);
