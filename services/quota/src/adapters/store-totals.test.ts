/** What every store does with the ledger's totals, with requests the ledger should have by now, and with workers' reports after a loss. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { DAY_MEMORY_MS, FORGET_INTERVAL_MS } from '@signalbox/ledger-core/account-state';
import { SILENT_MS } from '@signalbox/ledger-core/settlement';
import { stopTestStores } from '@signalbox/testkit/stores';
import type { QuotaStore } from '../domain/ports.js';
import { cap, command, fresh, openStore, STORE_KINDS, verdict, type OpenedStore } from '../testing/stores.js';

let skew = 0;

describe.each(STORE_KINDS)('the %s store and the ledger', (kind) => {
  let opened: OpenedStore;
  let store: QuotaStore;
  beforeAll(async () => {
    opened = await openStore(kind, () => skew);
    ({ store } = opened);
  });
  afterAll(() => opened.close());

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
    // Either delivered late, or from a restored ledger: only an answer of the ledger can tell.
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
    // The restored ledger has nothing for this key.
    expect((await store.show(account)).buckets.get('key_1|total')).toMatchObject({ seq: 3n, charge: 0n });
    // The restored ledger's totals continue from there.
    expect(await store.applyTotals(account, { seq: 4n, previousSeq: 3n, totals: total(41n), requestIds: [] }, '')).toBe(false);
    // Totals that arrived while the answer was on its way are newer than the answer.
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
    // A restored ledger has lost the 5, and booked both requests since.
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
    // It does not come back either once the ledger's totals include it: it would count twice.
    await store.applyTotals(account, { seq: 1n, totals: [{ scope: 'key_1', periodId: 'total', charge: 8n, tokens: 1n, byok: 0n }], requestIds: ['a'] }, '');
    await store.reregister(account, hold);
    expect((await store.show(account)).buckets.get('key_1|total')).toMatchObject({ charge: 8n, heldCharge: 0n, finishedCharge: 0n });
  });

  test('what is not held does not grow and is not written down, whether it was lost or is over', async () => {
    const account = fresh();
    const walls = [cap(100n)];
    // As after a loss, before its worker has reported it: the limits of its admission are lost, those of other requests are not.
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
    // An edge extends a hold and has no log.
    await store.heartbeat(account, 'held', 6n, 0n, '');
    await store.heartbeat(account, 'edge', 6n, 0n);
    await store.heartbeat(account, 'done', 0n, 0n, 'wrt_1');
    await store.finish(account, { requestId: 'done', charge: 3n, tokens: 2n, byok: false, keyId: 'key_1', periods, writer: 'wrt_2' });
    await store.reregister(account, { requestId: 'anew', keyId: 'key_1', amount: 1n, tokens: 0n, byok: false, periods, isStarted: true, writer: 'wrt_3' });
    const one = { keyId: 'key_1', byok: false, charge: 0n, tokens: 0n, periods: { day, week, month, plan }, isSilent: false };
    expect(await store.describeOpen(account, ['held', 'waiting', 'done', 'edge', 'anew', 'unknown'])).toEqual([
      { ...one, requestId: 'held', writer: 'wrt_1', byok: true },
      { ...one, requestId: 'done', writer: 'wrt_2', charge: 3n, tokens: 2n },
      { ...one, requestId: 'edge', writer: '' },
      { ...one, requestId: 'anew', writer: 'wrt_3' },
    ]);
    skew += SILENT_MS - 10_000;
    await store.heartbeat(account, 'held', 0n, 0n, 'wrt_1');
    skew += 10_000;
    expect((await store.describeOpen(account, ['held', 'done', 'edge', 'anew'])).map(({ isSilent }) => isSilent)).toEqual([false, true, true, true]);
  });

  test('remembers which writers were heard in its present life, and of no other', async () => {
    const epoch = await store.epoch();
    expect(epoch).toBe(store.latestEpoch());
    await store.hear(epoch, 'wrt_1');
    await store.hear(epoch, 'wrt_2');
    expect([...(await store.heard(epoch))].sort()).toEqual(['wrt_1', 'wrt_2']);
    expect([...(await store.heard('another'))]).toEqual([]);
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

afterAll(stopTestStores);
