import { expect, test } from '@jest/globals';
import type { TotalsCommand } from '@signalbox/ledger-core/settlement';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createMemoryStore } from '../adapters/memory-store.js';
import type { Admission } from './admission-request.js';
import type { QuotaStore } from './ports.js';
import { createQuota, ROUNDS_FOR_ALL } from './quota.js';

const ACCOUNT = 'acct_1';

/** A request for `amount`, under a cap of `limit` that never resets. */
function capped(requestId: string, amount: bigint, limit: bigint): Admission {
  return {
    includedTokens: undefined,
    byokTokens: undefined,
    walls: [],
    command: {
      requestId, keyId: 'key_1', counter: 'chat', amount, minAmount: 0n, tokens: 0n, minTokens: 0n, byok: false, requestsPerMinute: undefined, burstPerSecond: undefined, keyRequestsPerMinute: undefined,
      walls: [{ scope: 'account', period: 'total', meter: 'charge', limit }], anchorDay: 0, periodSeconds: undefined, needsTotals: true,
    },
  };
}

/** A quota with a fake ledger that has charged the requests in `charged`, one nano-dollar each, and counts how often it is asked. */
function beside(charged: readonly string[]) {
  const clock = createFakeClock();
  const ledger = { charged: new Set(charged), isAway: false, asked: [] as (readonly string[])[] };
  const total = (): TotalsCommand['totals'] => [{ scope: 'account', periodId: 'total', charge: BigInt(ledger.charged.size), tokens: 0n, byok: 0n }];
  const quota = createQuota(createMemoryStore({ clock }), (_, requestIds) => {
    ledger.asked.push(requestIds);
    if (ledger.isAway) return Promise.reject(new Error('away'));
    return Promise.resolve({ seq: BigInt(ledger.charged.size), totals: total(), requestIds: requestIds.filter((id) => ledger.charged.has(id)) });
  });
  const finish = (requestId: string) => quota.finish(ACCOUNT, { requestId, charge: 1n, tokens: 0n, byok: false, keyId: 'key_1', periods: undefined });
  const settled = async (): Promise<bigint> => {
    const bucket = (await quota.show(ACCOUNT)).buckets.get('account|total');
    return (bucket?.charge ?? 0n) + (bucket?.finishedCharge ?? 0n);
  };
  const announce = (previousSeq: bigint, requestIds: readonly string[]) => quota.applyTotals(ACCOUNT, { seq: BigInt(ledger.charged.size), previousSeq, totals: total(), requestIds });
  return { clock, ledger, quota, finish, settled, announce };
}

test('totals that were never heard are asked for as soon as the next ones come', async () => {
  const { ledger, finish, settled, announce } = beside([]);
  for (const id of ['a', 'b', 'c']) await finish(id);
  ledger.charged.add('a').add('b');
  // The announcements of a and b were lost; now c is announced.
  ledger.charged.add('c');
  await announce(2n, ['c']);
  expect(await settled()).toBe(3n);
  expect(ledger.asked).toEqual([['a', 'b']]);
  ledger.charged.add('d');
  await announce(3n, ['d']);
  expect(ledger.asked).toHaveLength(1);
});

test('a ledger that is away is asked again at the next totals', async () => {
  const { ledger, finish, settled, announce } = beside(['a', 'b']);
  await finish('a');
  ledger.isAway = true;
  await expect(announce(1n, ['b'])).rejects.toThrow(/^quota_unavailable/);
  expect(await settled()).toBe(3n);
  ledger.isAway = false;
  ledger.charged.add('c');
  await announce(2n, ['c']);
  expect(await settled()).toBe(3n);
});

test('without any more totals, what is open for too long is asked about, and only what the ledger has is settled', async () => {
  const { clock, ledger, quota, finish, settled } = beside(['a', 'b']);
  for (const id of ['a', 'b', 'open']) await finish(id);
  expect(await quota.reconcile(15_000)).toBe(0);
  expect(ledger.asked).toEqual([]);
  clock.advance(15_000);
  await finish('fresh');
  expect(await quota.reconcile(15_000)).toBe(2);
  expect(ledger.asked).toEqual([['a', 'b', 'open']]);
  // Two that the ledger has, and two that it does not have yet.
  expect(await settled()).toBe(4n);
});

test('more than one question holds is settled in one round', async () => {
  const ids = Array.from({ length: 2_500 }, (_, i) => `r${i}`);
  const { ledger, quota, finish, settled } = beside(ids);
  for (const id of ids) await finish(id);
  expect(await quota.reconcile(0)).toBe(2_500);
  expect(ledger.asked.map((each) => each.length)).toEqual([1_000, 1_000, 500]);
  expect(await settled()).toBe(2_500n);
});

test('announced totals that the store did not take are asked for in the next round, though nothing is open', async () => {
  const store = createMemoryStore({ clock: createFakeClock() });
  let isAway = true;
  const flaky: QuotaStore = { ...store, applyTotals: (...args) => (isAway ? Promise.reject(new Error('away')) : store.applyTotals(...args)) };
  const totals: TotalsCommand = { seq: 2n, totals: [{ scope: 'account', periodId: 'total', charge: 7n, tokens: 0n, byok: 0n }], requestIds: [] };
  const quota = createQuota(flaky, () => Promise.resolve(totals));
  await expect(quota.applyTotals(ACCOUNT, totals)).rejects.toThrow('away');
  isAway = false;
  await quota.reconcile(15_000);
  expect((await store.show(ACCOUNT)).buckets.get('account|total')?.charge).toBe(7n);
});

test('after a loss an account under a cap opens once each writer that may live was heard, with what it holds', async () => {
  const clock = createFakeClock();
  let life = 1;
  const accounts = new Map();
  const store = createMemoryStore({ clock, accounts, epoch: () => `life ${life}` });
  const writers = [{ writer: 'wrt_a', isLost: false }, { writer: 'wrt_gone', isLost: true }];
  const quota = createQuota(store, () => Promise.resolve({ seq: 1n, totals: [{ scope: 'account', periodId: 'total', charge: 40n, tokens: 0n, byok: 0n }], requestIds: [] }), undefined, { clock, askWriters: () => Promise.resolve(writers), bookLost: () => Promise.resolve() });
  const ask = (requestId: string, amount: bigint) => quota.admit(ACCOUNT, capped(requestId, amount, 100n));
  await expect(ask('r1', 10n)).rejects.toThrow(/^quota_unavailable/);
  await quota.reregister('wrt_a', 'life 1', [], [], true);
  expect(await ask('r1', 50n)).toMatchObject({ verdict: { decision: 'admitted' }, epoch: 'life 1' });

  life = 2;
  accounts.clear();
  await expect(ask('r2', 20n)).rejects.toThrow(/^quota_unavailable/);
  await expect(quota.reregister('wrt_a', 'life 1', [], [], true)).rejects.toThrow(/^quota_unavailable/);
  const periods = { day: 'd', week: 'w', month: 'm', plan: 'p', reservedAtMs: 1 };
  const hold = { accountId: ACCOUNT, command: { requestId: 'r1', keyId: 'key_1', amount: 50n, tokens: 0n, byok: false, periods, isStarted: true } };
  await quota.reregister('wrt_a', 'life 2', [hold], [], false);
  await expect(ask('r2', 20n)).rejects.toThrow(/^quota_unavailable/);
  await quota.reregister('wrt_a', 'life 2', [], [], true);
  expect(await ask('r2', 20n)).toMatchObject({ verdict: { decision: 'blocked', wall: { spend: 40n, reserved: 50n } } });
  expect(await ask('r3', 10n)).toMatchObject({ verdict: { decision: 'admitted' } });
  expect(await quota.confirm(ACCOUNT, 'r1')).toBe(true);
  expect(await quota.confirm(ACCOUNT, 'r0')).toBe(false);
});

test('after a loss nobody waits for a writer that has ended, and again once it is back', async () => {
  const clock = createFakeClock();
  let life = 1;
  const accounts = new Map();
  const store = createMemoryStore({ clock, accounts, epoch: () => `life ${life}` });
  let isEnded = true;
  const askWriters = () => Promise.resolve([{ writer: 'wrt_ended', isLost: false, isEnded }]);
  const quota = createQuota(store, () => Promise.resolve({ seq: 0n, totals: [], requestIds: [] }), undefined, { clock, askWriters, bookLost: () => Promise.resolve() });
  // It was alive until it ended.
  await quota.presentEpoch('wrt_ended');
  expect(await quota.admit(ACCOUNT, capped('r1', 10n, 100n))).toMatchObject({ verdict: { decision: 'admitted' } });
  [life, isEnded] = [2, false];
  accounts.clear();
  await expect(quota.admit(ACCOUNT, capped('r2', 10n, 100n))).rejects.toThrow(/^quota_unavailable/);
});

test('writers that accounts wait for after a loss are told of once they have been for ten seconds, and each minute from then on', async () => {
  const clock = createFakeClock();
  let life = 1;
  const accounts = new Map();
  const store = createMemoryStore({ clock, accounts, epoch: () => `life ${life}` });
  const told: (readonly string[])[] = [];
  const writers = [{ writer: 'wrt_b', isLost: false }, { writer: 'wrt_a', isLost: false }, { writer: 'wrt_gone', isLost: true }];
  const quota = createQuota(store, () => Promise.resolve({ seq: 0n, totals: [], requestIds: [] }), undefined, { clock, askWriters: () => Promise.resolve(writers), bookLost: () => Promise.resolve(), tellAwaited: (awaited) => void told.push(awaited) });
  const toldAfter = async (ms: number): Promise<number> => {
    clock.advance(ms);
    await expect(quota.admit(ACCOUNT, capped('r1', 10n, 100n))).rejects.toThrow(/^quota_unavailable/);
    return told.length;
  };
  expect([await toldAfter(0), await toldAfter(9_999), await toldAfter(1), await toldAfter(1), await toldAfter(59_998), await toldAfter(1)]).toEqual([0, 0, 1, 1, 1, 2]);
  expect(told).toEqual([['wrt_a', 'wrt_b'], ['wrt_a', 'wrt_b']]);
  await quota.reregister('wrt_b', 'life 1', [], [], true);
  expect(await toldAfter(60_000)).toBe(3);
  expect(told.at(-1)).toEqual(['wrt_a']);
  await quota.reregister('wrt_a', 'life 1', [], [], true);
  expect(await quota.admit(ACCOUNT, capped('r1', 10n, 100n))).toMatchObject({ verdict: { decision: 'admitted' } });
  // A living writer has some seconds to report in every epoch.
  life = 2;
  accounts.clear();
  expect([await toldAfter(60_000), await toldAfter(9_999), await toldAfter(1)]).toEqual([3, 3, 4]);
});

test('what a lost writer told of is handed to the ledger with its charge as far as that is known, and holds no room any more', async () => {
  const clock = createFakeClock();
  const store = createMemoryStore({ clock });
  const writers = [{ writer: 'wrt_gone', isLost: false }, { writer: 'wrt_a', isLost: false }];
  const booked: string[] = [];
  const ledger = (requestIds: readonly string[]): TotalsCommand => ({ seq: 1n, totals: [], requestIds: requestIds.filter((id) => booked.some((line) => line.includes(` ${id} `))) });
  const quota = createQuota(store, (_, asked) => Promise.resolve(ledger(asked)), undefined, {
    clock,
    askWriters: () => Promise.resolve(writers),
    bookLost: (writer, accountId, requests) => {
      for (const { requestId, charge, tokens } of requests) booked.push(`${writer} ${accountId} ${requestId} ${charge} ${tokens}`);
      return Promise.resolve();
    },
  });
  const held = { keyId: 'key_1', counter: 'chat', amount: 50n, minAmount: 0n, tokens: 0n, minTokens: 0n, byok: false, requestsPerMinute: undefined, burstPerSecond: undefined, keyRequestsPerMinute: undefined, walls: [], anchorDay: 0, periodSeconds: undefined, needsTotals: false } as const;
  for (const [requestId, writer] of [['streaming', 'wrt_gone'], ['told', 'wrt_gone'], ['other', 'wrt_a']] as const) {
    await store.admit(ACCOUNT, { ...held, requestId });
    await quota.heartbeat(ACCOUNT, requestId, 0n, 0n, writer);
  }
  await quota.finish(ACCOUNT, { requestId: 'told', charge: 7n, tokens: 3n, byok: false, keyId: 'key_1', periods: undefined, writer: 'wrt_gone' });
  clock.advance(31_000);
  await quota.reconcile(15_000);
  expect(booked).toEqual([]);
  // Declared lost by its operator.
  writers[0] = { writer: 'wrt_gone', isLost: true };
  await quota.reconcile(15_000);
  expect(booked.sort()).toEqual([`wrt_gone ${ACCOUNT} streaming 0 0`, `wrt_gone ${ACCOUNT} told 7 3`]);
  expect((await quota.show(ACCOUNT)).buckets.get('account|total')).toMatchObject({ heldCharge: 50n, finishedCharge: 0n });
  await quota.reconcile(15_000);
  expect(booked).toHaveLength(2);
});

test('what a living writer told of and has in no log any more is handed to the ledger once nobody can have it, and not while more of its log is to come', async () => {
  const clock = createFakeClock();
  const store = createMemoryStore({ clock });
  const writers = [{ writer: 'wrt_a', isLost: false, isBooked: false }];
  const booked: string[] = [];
  const quota = createQuota(store, (_, asked) => Promise.resolve({ seq: 1n, totals: [], requestIds: asked.filter((id) => booked.includes(id)) }), undefined, {
    clock,
    askWriters: () => Promise.resolve(writers),
    bookLost: (_writer, _accountId, requests) => {
      booked.push(...requests.map(({ requestId }) => requestId));
      return Promise.resolve();
    },
  });
  for (const requestId of ['cut', 'live']) {
    await store.admit(ACCOUNT, { ...capped(requestId, 50n, 1_000n).command, needsTotals: false });
    await quota.heartbeat(ACCOUNT, requestId, 0n, 0n, 'wrt_a');
  }
  for (let minutes = 0; minutes < 46; minutes += 1) {
    clock.advance(60_000);
    await quota.heartbeat(ACCOUNT, 'live', 0n, 0n, 'wrt_a');
  }
  await quota.reconcile(15_000);
  expect(booked).toEqual([]);
  writers[0] = { writer: 'wrt_a', isLost: false, isBooked: true };
  await quota.reconcile(15_000);
  expect(booked).toEqual([]);
  clock.advance(60_000);
  await quota.heartbeat(ACCOUNT, 'live', 0n, 0n, 'wrt_a');
  await quota.reconcile(15_000);
  expect(booked).toEqual(['cut']);
  expect((await quota.show(ACCOUNT)).buckets.get('account|total')).toMatchObject({ heldCharge: 50n, finishedCharge: 0n });
});

test('a store whose clock is set ahead hands nothing over that its worker tells of again, nor does one that is set so twice', async () => {
  const clock = createFakeClock();
  const store = createMemoryStore({ clock });
  const booked: string[] = [];
  const quota = createQuota(store, (_, asked) => Promise.resolve({ seq: 1n, totals: [], requestIds: asked.filter((id) => booked.includes(id)) }), undefined, {
    clock,
    // The writer's newest record is from before this request began.
    askWriters: () => Promise.resolve([{ writer: 'wrt_a', isLost: false, isBooked: true }]),
    bookLost: (_writer, _accountId, requests) => {
      booked.push(...requests.map(({ requestId }) => requestId));
      return Promise.resolve();
    },
  });
  await store.admit(ACCOUNT, { ...capped('live', 50n, 1_000n).command, needsTotals: false });
  await quota.heartbeat(ACCOUNT, 'live', 0n, 0n, 'wrt_a');
  for (let jump = 0; jump < 2; jump += 1) {
    clock.jumpWall(3_600_000);
    await quota.reconcile(15_000);
    expect(booked).toEqual([]);
    for (let round = 0; round < 9; round += 1) {
      clock.advance(10_000);
      await quota.heartbeat(ACCOUNT, 'live', 0n, 0n, 'wrt_a');
      await quota.reconcile(15_000);
    }
  }
  expect(booked).toEqual([]);
  expect((await quota.show(ACCOUNT)).buckets.get('account|total')).toMatchObject({ heldCharge: 50n });
});

test('a ledger that answers slowly is asked once, however many wait and ask again', async () => {
  let tell: () => void = () => undefined;
  let asked = 0;
  const quota = createQuota(createMemoryStore({ clock: createFakeClock() }), () => {
    asked += 1;
    return new Promise((resolve) => (tell = () => resolve({ seq: 1n, totals: [], requestIds: [] })));
  });
  const ask = (requestId: string) =>
    quota.admit(ACCOUNT, {
      includedTokens: undefined,
      byokTokens: undefined,
      walls: [],
      command: {
        requestId, keyId: 'key_1', counter: 'chat', amount: 1n, minAmount: 0n, tokens: 0n, minTokens: 0n, byok: false, requestsPerMinute: undefined, burstPerSecond: undefined, keyRequestsPerMinute: undefined,
        walls: [{ scope: 'account', period: 'total', meter: 'charge', limit: 100n }], anchorDay: 0, periodSeconds: undefined, needsTotals: true,
      },
    });
  const first = ask('r1');
  const again = [ask('r1'), ask('r2')];
  await new Promise((resolve) => setImmediate(resolve));
  expect(asked).toBe(1);
  await quota.release(ACCOUNT, 'r2');
  tell();
  expect((await first).verdict.decision).toBe('admitted');
  expect((await again[0])?.verdict.decision).toBe('admitted');
  // A request whose caller gave up in the meantime holds nothing.
  await expect(again[1]).rejects.toThrow(/^bad_message/);
  expect((await quota.show(ACCOUNT)).buckets.get('account|total')?.heldCharge).toBe(1n);
});

test('a refusal at a wall heals by itself where the announcement of a lower sum was lost', async () => {
  const ledger = { seq: 1n, charge: 10n, asked: 0 };
  const quota = createQuota(createMemoryStore({ clock: createFakeClock() }), () => {
    ledger.asked += 1;
    return Promise.resolve({ seq: ledger.seq, totals: [{ scope: 'account', periodId: 'total', charge: ledger.charge, tokens: 0n, byok: 0n }], requestIds: [] });
  });
  const decide = async (requestId: string): Promise<string> => (await quota.admit(ACCOUNT, capped(requestId, 1n, 10n))).verdict.decision;
  expect(await decide('r1')).toBe('wall');
  expect(ledger.asked).toBe(1);
  // The announcement of the adjustment is lost.
  Object.assign(ledger, { seq: 2n, charge: 5n });
  expect(await decide('r2')).toBe('wall');
  await quota.reconcile(15_000);
  expect(await decide('r3')).toBe('admitted');
  // Accounts that were not refused are not asked about.
  const { asked } = ledger;
  await quota.reconcile(15_000);
  expect(ledger.asked).toBe(asked);
});

test('a writer that quota heard of is waited for, though a ledger that was restored does not know it, until it was silent for a quarter of an hour', async () => {
  const clock = createFakeClock();
  const store = createMemoryStore({ clock });
  const quota = createQuota(store, () => Promise.resolve({ seq: 0n, totals: [], requestIds: [] }), undefined, { clock, askWriters: () => Promise.resolve([]), bookLost: () => Promise.resolve() });
  await quota.presentEpoch('wrt_a');
  clock.advance(900_000);
  await expect(quota.admit(ACCOUNT, capped('r1', 1n, 10n))).rejects.toThrow(/^quota_unavailable/);
  clock.advance(1);
  expect(await quota.admit(ACCOUNT, capped('r1', 1n, 10n))).toMatchObject({ verdict: { decision: 'admitted' } });
});

test('what finished and counts for something is overdue until the ledger has settled it', async () => {
  const { clock, quota, finish, announce, ledger } = beside([]);
  const told = async (ageMs: number) => (await quota.overdue(ACCOUNT, ageMs)).map(({ requestId, charge, isSilent }) => [requestId, charge, isSilent]);
  await finish('a');
  await quota.finish(ACCOUNT, { requestId: 'costs-nothing', charge: 0n, tokens: 0n, byok: false, keyId: 'key_1', periods: undefined });
  await quota.admit(ACCOUNT, capped('held', 5n, 100n));
  await quota.heartbeat(ACCOUNT, 'held', 0n, 0n, 'w');
  expect(await told(60_000)).toEqual([]);
  clock.advance(60_000);
  await finish('b');
  expect(await told(60_000)).toEqual([['a', 1n, false]]);
  clock.advance(2_700_000);
  expect(await told(60_000)).toEqual([['a', 1n, true], ['b', 1n, true]]);
  ledger.charged.add('a');
  await announce(0n, ['a']);
  expect(await told(60_000)).toEqual([['b', 1n, true]]);
});

test('who asks for what is overdue finds all that the ledger has settled, even where something is held and it was never asked', async () => {
  const { ledger, quota, settled } = beside(['a', 'b']);
  const { command } = capped('held', 5n, 100n);
  await quota.admit(ACCOUNT, { ...capped('held', 5n, 100n), command: { ...command, walls: [], needsTotals: false } });
  expect(await settled()).toBe(0n);
  await quota.overdue(ACCOUNT, 60_000);
  expect(await settled()).toBe(2n);
  await quota.overdue(ACCOUNT, 60_000);
  expect(ledger.asked).toHaveLength(1);
});

test('a sweep looks at the accounts with leases, whose end it does not miss, and at each of the others once in its turn', async () => {
  const clock = createFakeClock();
  const memory = createMemoryStore({ clock });
  const swept: string[] = [];
  let isAway = false;
  const store: QuotaStore = {
    ...memory,
    sweep: (accountId) => {
      swept.push(accountId);
      return isAway ? Promise.reject(new Error('away')) : memory.sweep(accountId);
    },
  };
  const quota = createQuota(store, () => Promise.resolve({ seq: 1n, totals: [], requestIds: [] }));
  const accounts = Array.from({ length: 2 * ROUNDS_FOR_ALL }, (_, index) => `acct_${index}`);
  for (const accountId of accounts) {
    await quota.admit(accountId, capped(accountId, 1n, 10n));
    await quota.heartbeat(accountId, accountId, 0n, 0n, 'writer');
  }
  expect(await quota.sweep()).toBe(0);
  expect(new Set(swept)).toEqual(new Set(accounts));
  clock.advance(31_000);
  // What was dispatched has no lease any more.
  expect(await quota.sweep()).toBe(0);
  const [idle = '', open = ''] = accounts;
  await quota.admit(open, capped('open', 1n, 10n));
  swept.length = 0;
  expect(await quota.sweep()).toBe(0);
  expect(swept.filter((accountId) => accountId === open)).toEqual([open]);
  expect(swept.length).toBeLessThanOrEqual(3);
  clock.advance(30_000);
  isAway = true;
  await expect(quota.sweep()).rejects.toThrow('away');
  isAway = false;
  expect(await quota.sweep()).toBe(1);
  swept.length = 0;
  for (let round = 0; round <= ROUNDS_FOR_ALL; round += 1) await quota.sweep();
  expect(new Set(swept)).toEqual(new Set(accounts));
  expect(swept.filter((accountId) => accountId === idle).length).toBeLessThanOrEqual(2);
});
