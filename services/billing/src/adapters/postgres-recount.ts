/** Corrects sums from the rows they sum up, account by account. */
import { assert } from '@signalbox/kernel/assert';
import type { Database } from '@signalbox/sql/database';
import type { Prepared, RunPrepared } from '@signalbox/sql/prepared';
import { sql } from 'kysely';
import type { BooksStore, RecountedAccount } from '../domain/books.js';
import { mendsOf, type Mend } from '../domain/recount.js';
import { ACCOUNTS, countedSums, keptSums } from './account-sums.js';
import { textArray, textsOf } from './arrays.js';
import { attemptColumns, totalColumns, usageColumns } from './postgres-commit.js';
import { LOCK_HEADS, MEND, SHARE_PERIODS } from './statements.js';

const CLOSED: Prepared = { name: 'billing_closed_periods', text: 'select period from closed_periods' };
/** Number of key columns of each table, without the account. */
const KEY = { usage: 5, attempts: 2, totals: 2 } as const;
/** Invariants of `verify` about sums. The others are about rows, except that about the terms of bills. */
const SUMS: ReadonlySet<string> = new Set(['I7', 'I9']);

/** Key columns of sums that no row belongs to. `order`: index in the key of each column of the table. */
const keyColumns = (accountId: string, gone: readonly Mend[], order: readonly number[]): Buffer[] => [textsOf(gone, () => accountId), ...order.map((place) => textsOf(gone, ({ key }) => key[place] ?? ''))];

export function createRecounter({ db, transactPrepared }: Pick<Database<unknown>, 'db' | 'transactPrepared'>, { verify }: Pick<BooksStore, 'verify'>): Pick<BooksStore, 'recount'> {
  /** Holds the lock of the account's head, like booking, so that nobody else writes the account's rows or sums meanwhile. */
  const write = (accountId: string, withClosed: boolean): Promise<RecountedAccount> =>
    transactPrepared(async (run) => {
      await run(SHARE_PERIODS, []);
      await run(LOCK_HEADS, [textArray([accountId])]);
      const closed = withClosed ? new Set<string>() : new Set((await run<{ period: string }>(CLOSED, [])).map(({ period }) => period));
      const counted = await countedSums(run, accountId, () => undefined);
      const mends = async (): Promise<{ readonly usage: readonly Mend[]; readonly attempts: readonly Mend[]; readonly totals: readonly Mend[] }> => {
        const kept = await keptSums(run, accountId);
        return { usage: mendsOf(kept.usage, counted.usage(), KEY.usage), attempts: mendsOf(kept.attempts, counted.attempts(), KEY.attempts), totals: mendsOf(kept.totals, counted.totals(), KEY.totals) };
      };
      const { usage, attempts, totals } = await mends();
      const isClosed = ({ key: [period = ''] }: Mend): boolean => closed.has(period);
      const open = usage.filter((mend) => !isClosed(mend));
      await mendUsage(run, accountId, open, counted);
      await mendAttempts(run, accountId, attempts);
      await mendTotals(run, accountId, totals);
      const left = await mends();
      assert(left.usage.every(isClosed) && left.attempts.length + left.totals.length === 0, 'Corrected sums equal those of the rows.');
      return { accountId, usageDays: open.length, attemptDays: attempts.length, totals: totals.length, closedPeriods: [...new Set(left.usage.map(({ key: [period = ''] }) => period))].sort(), brokenInvariants: [] };
    });

  return {
    recount: async (accountId, withClosed) => {
      const accounts = accountId === '' ? (await sql.raw<{ account_id: string }>(ACCOUNTS).execute(db)).rows.map((row) => row.account_id) : [accountId];
      const found: RecountedAccount[] = [];
      for (const each of accounts) {
        // Check without a lock first: an account whose sums are right need not be locked, and rows that break an invariant cannot be summed up.
        const broken = (await verify(each)).filter(({ violations }) => violations > 0n).map(({ invariant }) => invariant);
        if (!broken.some((invariant) => SUMS.has(invariant))) continue;
        const brokenInvariants = broken.filter((invariant) => !SUMS.has(invariant) && invariant !== 'I9 terms');
        found.push(brokenInvariants.length === 0 ? await write(each, withClosed) : { accountId: each, usageDays: 0, attemptDays: 0, totals: 0, closedPeriods: [], brokenInvariants });
      }
      return found;
    },
  };
}

async function mendUsage(run: RunPrepared, accountId: string, mends: readonly Mend[], counted: { usageDeltas(): readonly { readonly period: string; readonly day: string; readonly provider: string; readonly keyId: string; readonly model: string; readonly total: readonly number[]; readonly firstToken: readonly number[] }[] }): Promise<void> {
  if (mends.length === 0) return;
  const whole = new Map(counted.usageDeltas().map((sum) => [[sum.period, sum.day, sum.provider, sum.keyId, sum.model].join(' '), sum]));
  await run(MEND.usage.drop, keyColumns(accountId, mends.filter(({ isCounted }) => !isCounted), [0, 1, 4, 2, 3]));
  await run(MEND.usage.add, usageColumns(mends.filter(({ isCounted }) => isCounted).map(({ key, missing, isKept }) => {
    const [period = '', day = '', provider = '', keyId = '', model = ''] = key;
    const [requests = 0n, tokens = 0n, byokTokens = 0n, promptTokens = 0n, completionTokens = 0n, costNanoUsd = 0n, chargeNanoUsd = 0n, adjustedNanoUsd = 0n, savingsNanoUsd = 0n, feesNanoUsd = 0n] = missing;
    // Durations are not verified. An existing sum keeps them; for a missing one they are counted again.
    const times = isKept ? undefined : whole.get(key.join(' '));
    return {
      accountId, period, day, provider, keyId, model, requests: Number(requests), tokens: Number(tokens), byokTokens: Number(byokTokens), promptTokens: Number(promptTokens), completionTokens: Number(completionTokens),
      costNanoUsd, chargeNanoUsd, adjustedNanoUsd, savingsNanoUsd, feesNanoUsd, total: [...(times?.total ?? [])], firstToken: [...(times?.firstToken ?? [])],
    };
  })));
}

async function mendAttempts(run: RunPrepared, accountId: string, mends: readonly Mend[]): Promise<void> {
  if (mends.length === 0) return;
  await run(MEND.attempts.drop, keyColumns(accountId, mends.filter(({ isCounted }) => !isCounted), [0, 1]));
  await run(MEND.attempts.add, attemptColumns(mends.filter(({ isCounted }) => isCounted).map(({ key: [day = '', provider = ''], missing: [attempts = 0n, tokens = 0n, costNanoUsd = 0n, estimatedNanoUsd = 0n] }) =>
    ({ accountId, day, provider, attempts: Number(attempts), tokens, costNanoUsd, estimatedNanoUsd }))));
}

async function mendTotals(run: RunPrepared, accountId: string, mends: readonly Mend[]): Promise<void> {
  if (mends.length === 0) return;
  await run(MEND.totals.drop, keyColumns(accountId, mends.filter(({ isCounted }) => !isCounted), [0, 1]));
  await run(MEND.totals.add, totalColumns(mends.filter(({ isCounted }) => isCounted).map(({ key: [scope = '', periodId = ''], missing: [chargeNanoUsd = 0n, tokens = 0n, byokTokens = 0n] }) => ({ accountId, scope, periodId, chargeNanoUsd, tokens, byokTokens }))));
}
