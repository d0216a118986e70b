/** What every store answers to requests: rates, caps and holds, exact to the last unit. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { stopTestStores } from '@signalbox/testkit/stores';
import type { AdmitAnswer, AdmitCommand } from '@signalbox/ledger-core/admission';
import type { QuotaStore } from '../domain/ports.js';
import { cap, command, fresh, openStore, STORE_KINDS, verdict, type OpenedStore } from '../testing/stores.js';

let skew = 0;

describe.each(STORE_KINDS)('the %s store', (kind) => {
  let opened: OpenedStore;
  let store: QuotaStore;
  beforeAll(async () => {
    opened = await openStore(kind, () => skew);
    ({ store } = opened);
  });
  afterAll(() => opened.close());

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

  test('what requests drew leaves their advance with the first word of each, in whatever way it comes, and the advance ends with the last of it', async () => {
    const account = fresh();
    const walls = [cap(1_000n)];
    expect(verdict(await store.admit(account, command('adv', { amount: 100n, tokens: 10n, walls }))).held).toBe(100n);
    const draw = (amount: bigint, tokens: bigint): { readonly advanceId: string; readonly amount: bigint; readonly tokens: bigint } => ({ advanceId: 'adv', amount, tokens });
    const charged = (requestId: string, amount: bigint, tokens: bigint): Parameters<QuotaStore['finish']>[1] => ({ requestId, charge: 1n, tokens: 1n, byok: false, keyId: 'key_1', periods: undefined, draw: draw(amount, tokens) });
    // Reported twice, and concurrently with others.
    await Promise.all([store.finish(account, charged('a', 10n, 1n)), store.finish(account, charged('b', 20n, 1n)), store.finish(account, charged('a', 10n, 1n))]);
    expect((await store.show(account)).buckets.get('account|total')).toMatchObject({ heldCharge: 70n, heldTokens: 8n, finishedCharge: 2n });
    expect(await store.confirm(account, 'c', draw(5n, 1n))).toBe(true);
    expect(await store.heartbeat(account, 'd', 900n, 1n, 'w', draw(10n, 1n))).toBe(true);
    expect(await store.heartbeat(account, 'd', 1_000n, 1n, 'w', draw(10n, 1n))).toBe(false);
    expect((await store.show(account)).buckets.get('account|total')?.heldCharge).toBe(960n);
    await store.finish(account, charged('d', 10n, 1n));
    await store.release(account, 'c', draw(5n, 1n));
    await store.release(account, 'rest', draw(55n, 6n));
    expect((await store.show(account)).buckets.get('account|total')).toMatchObject({ heldCharge: 0n, heldTokens: 0n, finishedCharge: 3n });
    expect(await store.isHeld(account, 'adv')).toBe(false);
    expect(await store.admit(account, command('adv'))).toBe('ended');
  });

  test('an advance is not granted while a request waits for live holds, and nobody waits for what an advance was refused', async () => {
    const account = fresh();
    const walls = [cap(100n)];
    const advance = (requestId: string, amount: bigint): Promise<AdmitAnswer> => store.admit(account, command(requestId, { amount, walls, isAdvance: true }));
    expect(verdict(await store.admit(account, command('live', { amount: 90n, walls }))).decision).toBe('admitted');
    expect(verdict(await advance('adv_1', 20n)).decision).toBe('blocked');
    expect(verdict(await advance('adv_2', 5n)).decision).toBe('admitted');
    expect(verdict(await store.admit(account, command('waits', { amount: 50n, walls }))).decision).toBe('blocked');
    expect(verdict(await advance('adv_3', 1n))).toMatchObject({ decision: 'blocked', wall: undefined, held: 0n });
    // Waiting requests are told.
    expect(await store.release(account, 'rest', { advanceId: 'adv_2', amount: 5n, tokens: 0n })).toBe(true);
    expect(verdict(await store.admit(account, command('ordinary', { amount: 1n, walls }))).decision).toBe('admitted');
    skew += 2_600;
    expect(verdict(await advance('adv_4', 1n)).decision).toBe('admitted');
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
    expect((await store.sweep(account)).ended).toBe(1);
    expect((await store.show(account)).buckets.get('account|total')?.heldCharge).toBe(60n);
    expect(await store.admit(account, command('b', { amount: 40n, walls }))).toBe('ended');
  });

  test('a hold that its worker is about to use is kept for another lease, and one that ended is not there again', async () => {
    const account = fresh();
    const walls = [cap(100n)];
    await store.admit(account, command('a', { amount: 60n, walls }));
    skew += 29_000;
    expect(await store.confirm(account, 'a')).toBe(true);
    skew += 29_000;
    expect(verdict(await store.admit(account, command('b', { amount: 60n, walls }))).decision).toBe('blocked');
    // Not dispatched yet, so the hold ends with its lease.
    skew += 2_000;
    expect(verdict(await store.admit(account, command('c', { amount: 60n, walls }))).decision).toBe('admitted');
    expect(await store.confirm(account, 'a')).toBe(false);
    expect(await store.confirm(account, 'unknown')).toBe(false);
    expect((await store.show(account)).buckets.get('account|total')?.heldCharge).toBe(60n);
    // A hold in use stays in use.
    await store.heartbeat(account, 'c', 0n, 0n);
    expect(await store.confirm(account, 'c')).toBe(true);
    skew += 31_000;
    expect((await store.sweep(account)).ended).toBe(0);
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
      // The worker reports what still runs, which sets the time since the last report again.
      await store.heartbeat(account, 'a', 0n, 0n);
      expect(await store.overdue(account, 10_000, 10)).toEqual(['b']);
    });
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
    expect(verdict(await store.admit(account, command('a', { tokens: 10n, byok: true, walls })))).toMatchObject({ decision: 'admitted', planTokens: 10n, planByokTokens: 10n });
    expect(verdict(await store.admit(account, command('o', { tokens: 7n })))).toMatchObject({ decision: 'admitted', planTokens: 17n, planByokTokens: 0n });
    expect(verdict(await store.admit(account, command('b', { tokens: 1n, byok: true, walls }))).decision).toBe('blocked');
    await store.finish(account, { requestId: 'a', charge: 0n, tokens: 10n, byok: true, keyId: 'key_1', periods: undefined });
    expect(verdict(await store.admit(account, command('b', { tokens: 1n, byok: true, walls })))).toMatchObject({ decision: 'wall', planTokens: 17n, planByokTokens: 10n });
  });
});

afterAll(stopTestStores);
