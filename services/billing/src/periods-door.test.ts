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
