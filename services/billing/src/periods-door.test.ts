import { expect, test } from '@jest/globals';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createBooksHandlers, type BooksDoorOptions } from './books-door.js';

const clock = createFakeClock(Date.UTC(2026, 10, 28));
const books = { periods: () => Promise.resolve(['2026-08', '2026-10'].map((period) => ({ period, closedAtMs: 1, chargeNanoUsd: 0n, modelSpendNanoUsd: 0n }))) };
const { Periods } = createBooksHandlers({ books, clock, periodSeconds: undefined } as unknown as BooksDoorOptions);
const behind = async (after: string): Promise<object> => {
  const { periods = [], afterUnknown = false } = (await Periods?.({ accountId: 'a', after, limit: 0 } as never, {} as never)) as { readonly periods?: readonly { readonly period: string }[]; readonly afterUnknown?: boolean };
  return { periods: periods.map(({ period }) => period), afterUnknown };
};

test.each([
  ['', ['2026-11', '2026-10', '2026-08']],
  ['2026-11', ['2026-10', '2026-08']],
  // The account had nothing in this period, but the cursor is valid.
  ['2026-09', ['2026-08']],
  ['2026-08', []],
])('statements after %j', async (after, periods) => {
  expect(await behind(after)).toEqual({ periods, afterUnknown: false });
});

test.each(['zzz', '2026-13', 'month:2026-10', 'key_1'])('%j is not a valid cursor, which is different from an empty list', async (after) => {
  expect(await behind(after)).toEqual({ periods: [], afterUnknown: true });
});

test.each([['ahead of', 60_000], ['behind', -60_000]])('a correction of a closed period goes to the period that is open by the ledger’s clock, where this host’s is %s it', async (_what, apartMs) => {
  const nowMs = Date.UTC(2026, 1, 1) - (apartMs > 0 ? 30_000 : -30_000);
  const made: unknown[] = [];
  const books = { adjustCost: (...given: unknown[]) => (made.push(given.slice(1)), Promise.resolve({ seq: 1n, amountNanoUsd: 1n })) };
  const { AdjustCost: adjust } = createBooksHandlers({ books, clock: createFakeClock(nowMs + apartMs), ledgerNow: () => Promise.resolve(nowMs) } as unknown as BooksDoorOptions);
  await adjust?.({ requestId: 'r', attempt: 1, costNanoUsd: '1', reason: 'invoice' } as never, {} as never);
  expect(made).toEqual([[apartMs > 0 ? '2026-01' : '2026-02', nowMs]]);
});
