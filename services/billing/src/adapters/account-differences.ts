/** Compares what accounts were charged, as in the sums for reports, with the totals that quota uses. */
import type { Database } from '@signalbox/sql/database';
import type { Prepared } from '@signalbox/sql/prepared';
import { ACCOUNTS } from './account-sums.js';
import { textArray } from './arrays.js';

/** 256 MB of the table, which grows by a row a day for each key in use: a slow disk gives them within the time-out of a statement. */
const BLOCKS_AT_ONCE = 32_768;
const ACCOUNTS_AT_ONCE = 1_000;

const ONE_INSTANT: Prepared = { name: 'billing_compare_instant', text: 'set transaction isolation level repeatable read' };
const BLOCKS: Prepared = { name: 'billing_compare_blocks', text: `select pg_relation_size('usage_days') / current_setting('block_size')::bigint as blocks` };
/** In the order of the disk: in that of the accounts, nearly each row would be another block to look for. */
const USAGE: Prepared = {
  name: 'billing_compare_usage',
  text: 'select account_id, sum(charge_nano_usd + adjusted_nano_usd)::bigint as amount from usage_days where ctid >= $1::tid and ctid < $2::tid group by account_id',
};
const EVERY: Prepared = { name: 'billing_compare_accounts', text: ACCOUNTS };
const TOTALS: Prepared = { name: 'billing_compare_totals', text: `select account_id, charge_nano_usd as amount from totals where account_id = any($1::text[]) and scope = 'account' and period_id = 'total'` };

interface Amount {
  readonly account_id: string;
  readonly amount: bigint;
}

export interface DifferingAccount {
  readonly accountId: string;
  readonly usageNanoUsd: bigint;
  readonly totalNanoUsd: bigint;
}

/** The first `most` accounts, by id, whose two sums differ at one instant. No statement reads more than `blocksAtOnce` blocks of the sums. */
export function differingAccounts({ transactPrepared }: Pick<Database<unknown>, 'transactPrepared'>, { most, blocksAtOnce = BLOCKS_AT_ONCE }: { readonly most: number; readonly blocksAtOnce?: number }): Promise<readonly DifferingAccount[]> {
  return transactPrepared(async (run) => {
    await run(ONE_INSTANT, []);
    const [size] = await run<{ blocks: bigint }>(BLOCKS, []);
    const usage = new Map<string, bigint>();
    for (let from = 0; from < Number(size?.blocks ?? 0n); from += blocksAtOnce) {
      for (const { account_id, amount } of await run<Amount>(USAGE, [`(${from},0)`, `(${from + blocksAtOnce},0)`])) usage.set(account_id, (usage.get(account_id) ?? 0n) + amount);
    }
    const accounts = (await run<{ account_id: string }>(EVERY, [])).map(({ account_id }) => account_id);
    const found: DifferingAccount[] = [];
    for (let i = 0; i < accounts.length && found.length < most; i += ACCOUNTS_AT_ONCE) {
      const part = accounts.slice(i, i + ACCOUNTS_AT_ONCE);
      const totals = new Map((await run<Amount>(TOTALS, [textArray(part)])).map(({ account_id, amount }) => [account_id, amount]));
      for (const accountId of part) {
        const [usageNanoUsd, totalNanoUsd] = [usage.get(accountId) ?? 0n, totals.get(accountId) ?? 0n];
        if (usageNanoUsd !== totalNanoUsd) found.push({ accountId, usageNanoUsd, totalNanoUsd });
      }
    }
    return found.slice(0, most);
  });
}
