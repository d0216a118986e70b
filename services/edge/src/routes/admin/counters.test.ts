import { beforeEach, expect, test } from '@jest/globals';
import type { RpcClient } from '@signalbox/rpc/call';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { createCounters, type CountedAccount } from './counters.js';

interface Row {
  readonly kind: string;
  readonly amount: number;
  readonly appliesTo?: string;
}

let clock: FakeClock;
/** The account's rows; the sequence of a row is its position, from 1. */
let rows: Row[];
/** What the counters have settled, and at which sequence. */
let settled: { nanoUsd: number; seq: number };
/** Called after each look at the counters. */
let afterShow: () => void;
let looks: number;

const charge = (amount: number): Row => ({ kind: 'charge', amount });
const sumOf = (some: readonly Row[]): number => some.reduce((sum, { kind, appliesTo, amount }) => (kind === 'charge' || (kind === 'adjustment' && appliesTo === 'charge') ? sum + amount : sum), 0);
/** The counters hear of all rows up to `seq`. */
const hear = (seq: number): void => {
  settled = { nanoUsd: sumOf(rows.slice(0, seq)), seq };
};

beforeEach(() => {
  clock = createFakeClock();
  rows = [charge(10), { kind: 'attempt', amount: 3 }, charge(5)];
  hear(3);
  afterShow = () => undefined;
  looks = 0;
});

const answers: Readonly<Record<string, (message: { readonly after?: string; readonly limit?: number }) => object>> = {
  ListAccounts: () => ({ accounts: [{ id: 'acct_1' }], hasMore: false }),
  Show: () => {
    looks += 1;
    const shown = { ledgerSeq: String(settled.seq), reservedNanoUsd: '0', overdue: [], buckets: settled.seq === 0 ? [] : [{ scope: 'account', periodId: 'total', settledNanoUsd: String(settled.nanoUsd), finishedNanoUsd: '0' }] };
    afterShow();
    return shown;
  },
  Totals: () => ({ ledgerSeq: String(rows.length), totals: rows.length === 0 ? [] : [{ scope: 'account', periodId: 'total', chargeNanoUsd: String(sumOf(rows)) }] }),
  Ledger: ({ after = '0', limit = 0 }) => {
    const page = rows.map(({ kind, amount, appliesTo = '' }, index) => ({ seq: String(index + 1), kind, amountNanoUsd: String(amount), appliesTo })).slice(Number(after), Number(after) + limit);
    return { rows: page, ...(page.length === limit ? { next: page.at(-1)?.seq } : {}) };
  },
};

/** Compares, and advances the clock as far as needed. */
async function compare(): Promise<{ readonly account: CountedAccount | undefined; readonly tookMs: number }> {
  const client = { unary: (method: string, message: object) => Promise.resolve(answers[method]?.(message) ?? {}) } as unknown as RpcClient;
  let found: readonly CountedAccount[] | undefined;
  void createCounters({ accounts: client, billing: client, quota: client, clock }).compare().then((accounts) => (found = accounts));
  for (await clock.settle(); found === undefined && clock.pendingTimers() > 0; ) await clock.advanceAsync(100);
  return { account: found?.[0], tookMs: clock.monotonicMs() };
}

test('counters that are even with the ledger match at once, even if later bookings changed no total', async () => {
  rows.push({ kind: 'attempt', amount: 8 }, { kind: 'adjustment', amount: -3, appliesTo: 'cost' });
  expect(await compare()).toMatchObject({ account: { oursNanoUsd: 15n, theirsNanoUsd: 15n, differenceNanoUsd: 0n }, tookMs: 0 });
});

test('counters that hear of each charge a little later match, however fast the ledger grows', async () => {
  afterShow = () => {
    rows.push(charge(3), { kind: 'attempt', amount: 1 }, { kind: 'adjustment', amount: -1, appliesTo: 'charge' }, { kind: 'adjustment', amount: -1, appliesTo: 'cost' });
    hear(rows.length - 3);
  };
  const { account, tookMs } = await compare();
  expect(account).toMatchObject({ differenceNanoUsd: 0n });
  expect(account?.oursNanoUsd).toBe(account?.theirsNanoUsd);
  expect([looks, tookMs]).toEqual([3, 400]);
});

test.each([
  ['less', -1],
  ['more', 1],
])('counters that hold %s than the ledger had at their sequence differ at once', async (_what, off) => {
  settled.nanoUsd += off;
  expect(await compare()).toMatchObject({ account: { differenceNanoUsd: BigInt(-off) }, tookMs: 0 });
  // The same when the ledger grows meanwhile.
  rows.push(charge(100), charge(100));
  expect(await compare()).toMatchObject({ account: { oursNanoUsd: 15n, differenceNanoUsd: BigInt(-off) }, tookMs: 0 });
});

test('counters that never hear of a charge differ in the end', async () => {
  rows.push(charge(7));
  expect(await compare()).toMatchObject({ account: { oursNanoUsd: 22n, theirsNanoUsd: 15n, differenceNanoUsd: 7n }, tookMs: 30_000 });
});

test('counters that hear of it late are waited for', async () => {
  rows.push(charge(7));
  afterShow = () => {
    if (clock.monotonicMs() >= 29_000) hear(rows.length);
  };
  expect(await compare()).toMatchObject({ account: { differenceNanoUsd: 0n }, tookMs: 29_200 });
});

test('counters of a ledger that went back are waited for, and differ if they do not follow', async () => {
  rows.pop();
  expect(await compare()).toMatchObject({ account: { differenceNanoUsd: -5n }, tookMs: 30_000 });
  afterShow = () => hear(rows.length);
  expect((await compare()).account).toMatchObject({ differenceNanoUsd: 0n });
});

test('an account without bookings matches', async () => {
  rows = [];
  hear(0);
  expect(await compare()).toMatchObject({ account: { oursNanoUsd: 0n, theirsNanoUsd: 0n, differenceNanoUsd: 0n }, tookMs: 0 });
});

test.each([
  ['several pages', 4_500, 0],
  ['more pages than are read', 6_000, 30_000],
])('counters that are behind by %s of rows are reported as different', async (_what, count, tookMs) => {
  const behind = rows.length;
  for (let i = 0; i < count; i += 1) rows.push(charge(1));
  settled = { nanoUsd: sumOf(rows.slice(0, behind)) + 1, seq: behind };
  const found = await compare();
  expect([found.tookMs, found.account?.differenceNanoUsd]).toEqual([tookMs, count === 4_500 ? -1n : BigInt(count) - 1n]);
});
