/** Every limit at its exact boundary (nano-dollar, token, request, millisecond), in each store. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomBytes } from '@signalbox/runtime/random';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog } from '@signalbox/runtime/log';
import { stopTestStores, testRedisUrl } from '@signalbox/testkit/stores';
import type { Wall } from '@signalbox/ledger-core/account-state';
import type { AdmitAnswer, AdmitCommand, AdmitVerdict } from '@signalbox/ledger-core/admission';
import { periodsAt, qualifiedPeriodId, type PeriodKind } from '@signalbox/ledger-core/periods';
import { createMemoryStore } from './memory-store.js';
import { createRedisStore } from './redis-store.js';
import type { QuotaStore } from '../domain/ports.js';

const DAY_MS = 86_400_000;
let nowMs = Date.UTC(2026, 10, 21, 14);
const at = (iso: string): void => void (nowMs = Date.parse(iso));
const fresh = (): string => `acct_${Buffer.from(randomBytes(8)).toString('hex')}`;
const wall = (limit: bigint, more: Partial<Wall> = {}): Wall => ({ scope: 'account', period: 'total', meter: 'charge', limit, ...more });
const command = (requestId: string, more: Partial<AdmitCommand> = {}): AdmitCommand => ({
  requestId, keyId: 'key_1', counter: 'chat', amount: 0n, minAmount: 0n, tokens: 0n, minTokens: 0n, byok: false, requestsPerMinute: undefined, burstPerSecond: undefined,
  keyRequestsPerMinute: undefined, walls: [], anchorDay: 0, periodSeconds: undefined, needsTotals: false, ...more,
});
const verdict = (answer: AdmitAnswer): AdmitVerdict => {
  if (typeof answer === 'string') throw new Error(`expected a verdict, not ${answer}`);
  return answer;
};

/** Each kind of limit, with a request that asks for `n` of what it counts. */
const WALLS: readonly (readonly [string, Partial<Wall>, (n: bigint) => Partial<AdmitCommand>])[] = [
  ...(['day', 'week', 'month', 'total'] as const).flatMap((period) => (['account', 'key'] as const).map((scope): (typeof WALLS)[number] => [`a cost cap of the ${scope} per ${period}`, { scope, period }, (amount) => ({ amount, tokens: 1n })])),
  ['a hard allotment, on the operator’s credential', { period: 'plan', meter: 'routed' }, (tokens) => ({ amount: 1n, tokens })],
  ['a hard allotment, on the account’s own', { period: 'plan', meter: 'routed' }, (tokens) => ({ tokens, byok: true })],
  ['an allotment of tokens on own credentials', { period: 'plan', meter: 'byok' }, (tokens) => ({ tokens, byok: true })],
];

describe.each(['memory', 'redis'])('the %s store', (kind) => {
  let store: QuotaStore;
  beforeAll(async () => {
    const metrics = { storeTook: () => undefined, storeFailed: () => undefined };
    store = kind === 'memory' ? createMemoryStore({ clock: { nowMs: () => nowMs } }) : createRedisStore({ url: await testRedisUrl(), clock: systemClock, randomBytes, log: silentLog, metrics, commandTimeoutMs: 20_000, fixedNowMs: () => nowMs });
    await store.start();
  });
  afterAll(() => store.stop());

  const decide = async (account: string, id: string, more: Partial<AdmitCommand>): Promise<string> => verdict(await store.admit(account, command(id, more))).decision;
  /** Admits and finishes a request that uses the whole of its hold. */
  const spend = async (account: string, id: string, more: Partial<AdmitCommand>): Promise<void> => {
    await store.admit(account, command(id, more));
    await store.finish(account, { requestId: id, charge: more.byok === true ? 0n : (more.amount ?? 0n), tokens: more.tokens ?? 0n, byok: more.byok ?? false, keyId: more.keyId ?? 'key_1', periods: undefined });
  };

  describe.each(WALLS)('%s', (_name, kindOf, asking) => {
    test('lets through what is one below it or equal to it, and nothing more by one', async () => {
      const walls = [wall(100n, kindOf)];
      for (const [n, expected] of [[99n, 'admitted'], [100n, 'admitted'], [101n, 'wall']] as const) expect([n, await decide(fresh(), 'a', { ...asking(n), walls })]).toEqual([n, expected]);
      // Against what is spent, and against what is held.
      for (const [n, expected] of [[39n, 'admitted'], [40n, 'admitted'], [41n, 'wall']] as const) {
        const account = fresh();
        await spend(account, 'spent', asking(60n));
        expect([n, await decide(account, 'a', { ...asking(n), walls })]).toEqual([n, expected]);
      }
      for (const [n, expected] of [[39n, 'admitted'], [40n, 'admitted'], [41n, 'blocked']] as const) {
        const account = fresh();
        await store.admit(account, command('held', { ...asking(60n), walls }));
        expect([n, await decide(account, 'a', { ...asking(n), walls })]).toEqual([n, expected]);
      }
    });

    test('is of a request that can be cut shorter until the least that it needs is too much', async () => {
      const walls = [wall(100n, kindOf)];
      for (const [least, expected, held] of [[39n, 'admitted', 40n], [40n, 'admitted', 40n], [41n, 'wall', 0n]] as const) {
        const account = fresh();
        await spend(account, 'spent', asking(60n));
        const { amount = 0n, tokens = 0n, byok = false } = asking(70n);
        const isMoney = (kindOf.meter ?? 'charge') === 'charge';
        const found = verdict(await store.admit(account, command('a', { amount, tokens, byok, ...(isMoney ? { minAmount: least } : { minTokens: least }), walls })));
        expect([least, found.decision, isMoney ? found.held : found.heldTokens]).toEqual([least, expected, held]);
      }
    });

    test('admits exactly 37 of 200 that come at once, and as many again once those are charged half', async () => {
      const account = fresh();
      const walls = [wall(379n, kindOf)];
      const crowd = async (round: string, n: bigint): Promise<readonly string[]> =>
        (await Promise.all(Array.from({ length: 200 }, async (_, i) => [`${round}${i}`, await decide(account, `${round}${i}`, { ...asking(n), walls })] as const))).flatMap(([id, decision]) => (decision === 'admitted' ? [id] : []));
      const first = await crowd('a', 10n);
      expect(first).toHaveLength(37);
      const { byok = false } = asking(1n);
      const isMoney = (kindOf.meter ?? 'charge') === 'charge';
      await Promise.all(first.map((requestId) => store.finish(account, { requestId, charge: isMoney ? 5n : 0n, tokens: isMoney ? 0n : 5n, byok, keyId: 'key_1', periods: undefined })));
      // 379 - 185 = 194.
      expect(await crowd('b', 10n)).toHaveLength(19);
    });

    test('of 0 lets nothing through that costs anything, and all that costs nothing', async () => {
      const walls = [wall(0n, kindOf)];
      expect(await decide(fresh(), 'a', { ...asking(1n), walls })).toBe('wall');
      const { byok = false } = asking(0n);
      expect(await decide(fresh(), 'b', { byok, walls })).toBe('admitted');
    });

    test('that was lowered, raised or taken away holds for who comes then; who runs keeps to that of its admission', async () => {
      const account = fresh();
      const { byok = false } = asking(1n);
      const isMoney = (kindOf.meter ?? 'charge') === 'charge';
      const grow = (to: bigint): Promise<boolean> => store.heartbeat(account, 'running', isMoney ? to : 0n, isMoney ? 0n : to);
      await store.admit(account, command('running', { ...asking(50n), walls: [wall(100n, kindOf)] }));
      expect(await decide(account, 'lowered', { ...asking(1n), walls: [wall(50n, kindOf)] })).toBe('blocked');
      expect(await decide(account, 'lower', { ...asking(21n), walls: [wall(20n, kindOf)] })).toBe('wall');
      expect(await decide(account, 'raised', { ...asking(50n), walls: [wall(200n, kindOf)] })).toBe('admitted');
      expect(await decide(account, 'gone', { ...asking(1_000n), walls: [] })).toBe('admitted');
      expect(await grow(51n)).toBe(false);
      await store.release(account, 'gone');
      await store.release(account, 'raised');
      expect([await grow(100n), await grow(101n)]).toEqual([true, false]);
      await store.finish(account, { requestId: 'running', charge: isMoney ? 100n : 0n, tokens: isMoney ? 0n : 100n, byok, keyId: 'key_1', periods: undefined });
      expect(await decide(account, 'after', { ...asking(1n), walls: [wall(101n, kindOf)] })).toBe('admitted');
    });

    test('has room again as soon as the ledger takes a charge back, and not before', async () => {
      const account = fresh();
      const walls = [wall(100n, kindOf)];
      await spend(account, 'a', asking(100n));
      expect(await decide(account, 'b', { ...asking(1n), walls })).toBe('wall');
      const { period = 'total', scope = 'account', meter = 'charge' } = kindOf;
      const total = (n: bigint) => [{ scope: scope === 'account' ? scope : 'key_1', periodId: qualifiedPeriodId(period, periodsAt(nowMs, { anchorDay: 0 })), charge: meter === 'charge' ? n : 0n, tokens: meter === 'routed' ? n : 0n, byok: meter === 'byok' ? n : 0n }];
      await store.applyTotals(account, { seq: 2n, totals: total(100n), requestIds: ['a'] }, '');
      expect(await decide(account, 'c', { ...asking(1n), walls })).toBe('wall');
      await store.applyTotals(account, { seq: 3n, previousSeq: 2n, totals: total(40n), requestIds: ['a'] }, '');
      expect([await decide(account, 'd', { ...asking(61n), walls }), await decide(account, 'd', { ...asking(60n), walls })]).toEqual(['wall', 'admitted']);
    });
  });

  test.each([['requestsPerMinute', 60_000], ['keyRequestsPerMinute', 60_000], ['burstPerSecond', 1_000]] as const)('%s lets exactly 37 of 200 through at once, and none within the span after the last', async (name, spanMs) => {
    at('2026-11-21T14:00:00.000Z');
    const account = fresh();
    const crowd = async (round: string): Promise<readonly AdmitVerdict[]> => (await Promise.all(Array.from({ length: 200 }, (_, i) => store.admit(account, command(`${round}${i}`, { [name]: 37 }))))).map(verdict);
    const first = await crowd('a');
    expect(first.filter(({ decision }) => decision === 'admitted')).toHaveLength(37);
    const waits = new Set(first.filter(({ decision }) => decision !== 'admitted').map(({ retryAfterMs }) => retryAfterMs));
    expect(waits.size).toBe(1);
    const [waitMs = 0] = waits;
    expect(waitMs).toBeGreaterThanOrEqual(spanMs);
    nowMs += waitMs - 1;
    expect((await crowd('b')).filter(({ decision }) => decision === 'admitted')).toHaveLength(0);
    nowMs += 1;
    expect((await crowd('c')).filter(({ decision }) => decision === 'admitted')).toHaveLength(37);
  });

  test('never lets more than the limit through in any span, however requests come', async () => {
    at('2026-11-21T14:00:00.000Z');
    const account = fresh();
    const passed: number[] = [];
    let seed = 7;
    for (let i = 0; i < 1_500; i += 1) {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
      nowMs += [0, 1, 37, 99, 100, 101, 450, 999, 1_000, 4_321][seed % 10] ?? 0;
      if ((await decide(account, `r${i}`, { requestsPerMinute: 40, burstPerSecond: 3 })) === 'admitted') passed.push(nowMs);
    }
    expect(passed.length).toBeGreaterThan(200);
    for (const [spanMs, limit] of [[60_000, 40], [1_000, 3]] as const) for (const [index, ms] of passed.entries()) expect((passed[index + limit] ?? Infinity) - ms).toBeGreaterThanOrEqual(spanMs);
  });

  test('a hold that nobody dispatched ends after 30 s, to the millisecond, and money is asked about before more is admitted', async () => {
    const account = fresh();
    const asked = (id: string): Promise<AdmitAnswer> => store.admit(account, command(id, { amount: 5n, walls: [wall(10n)], needsTotals: true }));
    await store.applyTotals(account, { seq: 1n, totals: [], requestIds: [] }, await store.epoch());
    const begunMs = nowMs;
    expect(verdict(await asked('a')).decision).toBe('admitted');
    nowMs = begunMs + 29_999;
    expect(await store.sweep(account)).toEqual({ ended: 0, hasLeases: true });
    expect(verdict(await asked('b')).decision).toBe('admitted');
    nowMs = begunMs + 30_000;
    expect(await store.sweep(account)).toEqual({ ended: 1, hasLeases: true });
    expect((await store.show(account)).buckets.get('account|total')?.heldCharge).toBe(5n);
    // The request that had the hold may have been dispatched and charged without our knowing.
    expect(await asked('c')).toBe('unloaded');
  });

  describe('a period', () => {
    const turns: readonly (readonly [string, PeriodKind, number, string, string])[] = [
      ['midnight', 'day', 0, '2026-11-21T23:59:59.999Z', '2026-11-22T00:00:00.000Z'],
      ['the day clocks are set forward somewhere', 'day', 0, '2026-03-29T23:59:59.999Z', '2026-03-30T00:00:00.000Z'],
      ['a leap day', 'day', 0, '2028-02-28T23:59:59.999Z', '2028-02-29T00:00:00.000Z'],
      ['the end of a leap month', 'month', 0, '2028-02-29T23:59:59.999Z', '2028-03-01T00:00:00.000Z'],
      ['the end of a short month', 'month', 0, '2027-02-28T23:59:59.999Z', '2027-03-01T00:00:00.000Z'],
      ['the end of a century’s February without a leap day', 'month', 0, '2100-02-28T23:59:59.999Z', '2100-03-01T00:00:00.000Z'],
      ['new year', 'month', 0, '2026-12-31T23:59:59.999Z', '2027-01-01T00:00:00.000Z'],
      ['Monday', 'week', 0, '2026-11-22T23:59:59.999Z', '2026-11-23T00:00:00.000Z'],
      ['Monday of the first week of a year', 'week', 0, '2027-01-03T23:59:59.999Z', '2027-01-04T00:00:00.000Z'],
      ['Monday, in a year of 53 weeks', 'week', 0, '2026-12-27T23:59:59.999Z', '2026-12-28T00:00:00.000Z'],
      ['the anchor day', 'plan', 15, '2026-11-14T23:59:59.999Z', '2026-11-15T00:00:00.000Z'],
      ['the anchor day in January', 'plan', 28, '2027-01-27T23:59:59.999Z', '2027-01-28T00:00:00.000Z'],
      ['the anchor day in a leap February', 'plan', 28, '2028-02-27T23:59:59.999Z', '2028-02-28T00:00:00.000Z'],
    ];
    test.each(turns)('begins anew at %s, to the millisecond, and what was admitted before counts in the old one', async (_when, period, anchorDay, before, after) => {
      const account = fresh();
      const isPlan = period === 'plan';
      const asking = { walls: [wall(100n, { period, meter: isPlan ? 'routed' : 'charge' })], anchorDay, ...(isPlan ? { tokens: 100n } : { amount: 100n }) };
      at(before);
      const { periods } = verdict(await store.admit(account, command('a', asking)));
      await store.heartbeat(account, 'a', 0n, 0n);
      expect(await decide(account, 'b', asking)).toBe('blocked');
      at(after);
      expect(await decide(account, 'c', asking)).toBe('admitted');
      await store.finish(account, { requestId: 'a', charge: isPlan ? 0n : 100n, tokens: isPlan ? 100n : 0n, byok: false, keyId: 'key_1', periods });
      expect(await decide(account, 'd', asking)).toBe('blocked');
      at(before);
      expect(await decide(account, 'e', asking)).toBe('wall');
    });

    test('does not begin anew within a week that two years share', async () => {
      const account = fresh();
      const asking = { walls: [wall(100n, { period: 'week' })], amount: 100n };
      at('2026-12-31T23:59:59.999Z');
      await spend(account, 'a', asking);
      at('2027-01-01T00:00:00.000Z');
      expect(await decide(account, 'b', asking)).toBe('wall');
    });

    test('has the same name in every store, on each day of six years under every anchor', async () => {
      const account = fresh();
      const first = Date.UTC(2024, 0, 1);
      for (let day = 0; day < 6 * 365 + 2; day += 1) {
        nowMs = first + day * DAY_MS + (day % 2) * (DAY_MS - 1);
        const anchorDay = day % 29;
        const asked = command(`r${day}`, { counter: 'control', anchorDay });
        expect(verdict(await store.admit(account, asked)).periods).toEqual(periodsAt(nowMs, asked));
      }
    });
  });
});

afterAll(stopTestStores);
