import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { silentLog } from '@signalbox/runtime/log';
import { Secret } from '@signalbox/runtime/secret';
import { openDatabase, type Database } from '@signalbox/sql/database';
import { migrate } from '@signalbox/sql/migrate';
import { stopTestStores, testPostgresUrl } from '@signalbox/testkit/stores';
import { sql } from 'kysely';
import { differingAccounts } from './account-differences.js';
import { ACCOUNTS } from './account-sums.js';
import { migrations } from './migrations.js';
import { OPEN_PERIODS } from './postgres-books.js';
import { TOTALS } from './postgres-ledger.js';

const ACCOUNT_COUNT = 20;
/** Days and keys of each account: 30 and 20, in two months. */
const SUMS_EACH = 600;
let database: Database<unknown>;

beforeAll(async () => {
  database = openDatabase<unknown>({ url: new Secret(await testPostgresUrl()), poolMax: 2, log: silentLog, statementTimeoutMs: 20_000, schema: 'billing', pipelined: true });
  await migrate(database.db, migrations, { schema: 'billing' });
  const fill = [
    `insert into account_heads (account_id, hash) select 'acct_' || a, 'h' from generate_series(1, ${ACCOUNT_COUNT}) a`,
    `insert into usage_days (account_id, day, period, provider, key_id, model, requests, tokens, byok_tokens, prompt_tokens, completion_tokens, cost_nano_usd, charge_nano_usd, adjusted_nano_usd, savings_nano_usd)
      select 'acct_' || a, 'day' || d, '2026-0' || (1 + d % 2), 'p', 'key' || k, 'm', 1, 1, 0, 1, 1, 1, 3, -1, 0 from generate_series(1, 30) d, generate_series(1, 20) k, generate_series(1, ${ACCOUNT_COUNT}) a`,
    `insert into totals (account_id, scope, period_id, charge_nano_usd, tokens, byok_tokens, updated_at_ms) select 'acct_' || a, scope, period, ${2 * SUMS_EACH}, 1, 0, 0 from generate_series(1, ${ACCOUNT_COUNT}) a,
      (select 'account' as scope, unnest('{month:2026-01,month:2026-02,plan:2026-01,week:2026-W01,total}'::text[]) as period union all select 'account', 'day:' || d from generate_series(1, 30) d
        union all select 'key:' || k, unnest(array['total', 'month:2026-01', 'month:2026-02', 'day:' || d]) from generate_series(1, 20) k, generate_series(1, 30) d) t on conflict do nothing`,
    'analyze usage_days',
    'analyze totals',
    'analyze account_heads',
  ];
  for (const statement of fill) await sql.raw(statement).execute(database.db);
}, 60_000);
afterAll(async () => {
  await database.close();
  await stopTestStores();
}, 30_000);

test.each([1, 7, 32_768])('accounts whose two sums differ are found, %d blocks at once, and those that have only one of them', async (blocksAtOnce) => {
  expect(await differingAccounts(database, { most: 10, blocksAtOnce })).toEqual([]);
  const [size] = (await sql<{ blocks: bigint }>`select pg_relation_size('usage_days') / 8192 as blocks`.execute(database.db)).rows;
  expect(size?.blocks).toBeGreaterThan(100n);
  const changes = [
    `update usage_days set adjusted_nano_usd = adjusted_nano_usd + 7 where account_id = 'acct_3' and day = 'day30' and key_id = 'key9'`,
    `delete from usage_days where account_id = 'acct_5'`,
    `delete from totals where account_id = 'acct_7' and scope = 'account' and period_id = 'total'`,
    `delete from account_heads where account_id in ('acct_3', 'acct_5', 'acct_7')`,
  ];
  await sql.raw(['usage_days', 'totals', 'account_heads'].map((table) => `create table kept_${table} as select * from ${table}`).join(';')).execute(database.db);
  try {
    for (const change of changes) await sql.raw(change).execute(database.db);
    const sum = BigInt(2 * SUMS_EACH);
    const differing = [
      { accountId: 'acct_3', usageNanoUsd: sum + 7n, totalNanoUsd: sum },
      { accountId: 'acct_5', usageNanoUsd: 0n, totalNanoUsd: sum },
      { accountId: 'acct_7', usageNanoUsd: sum, totalNanoUsd: 0n },
    ];
    expect(await differingAccounts(database, { most: 10, blocksAtOnce })).toEqual(differing);
    expect(await differingAccounts(database, { most: 2, blocksAtOnce })).toEqual(differing.slice(0, 2));
  } finally {
    await sql.raw(['usage_days', 'totals', 'account_heads'].map((table) => `delete from ${table}; insert into ${table} select * from kept_${table}; drop table kept_${table}`).join(';')).execute(database.db);
  }
});

interface PlanNode {
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

/** Rows that the nodes of a plan read from tables. */
function rowsRead(node: PlanNode): number {
  const own = node['Relation Name'] === undefined ? 0 : node['Actual Loops'] * (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0));
  return (node.Plans ?? []).reduce((sum, each) => sum + rowsRead(each), own);
}

test.each([
  ['the accounts', ACCOUNTS, ACCOUNT_COUNT],
  ['the periods that are not closed', OPEN_PERIODS, 2],
])('a few rows of each account are read to find %s, however many it has', async (_what, statement, found) => {
  expect((await sql.raw(statement).execute(database.db)).rows).toHaveLength(found);
  const { rows } = await sql.raw<{ 'QUERY PLAN': readonly { readonly Plan: PlanNode }[] }>(`explain (analyze, format json) ${statement}`).execute(database.db);
  const plan = rows[0]?.['QUERY PLAN'][0]?.Plan;
  if (plan === undefined) throw new Error('no plan');
  expect(rowsRead(plan)).toBeLessThanOrEqual(6 * ACCOUNT_COUNT);
});

test('the totals of an account are read by its key, however large its part of the table is', async () => {
  await sql`insert into totals (account_id, scope, period_id, charge_nano_usd, tokens, byok_tokens, updated_at_ms) select 'acct_1', 'key:' || k, 'week:' || k, 1, 1, 0, 0 from generate_series(1, 10000) k`.execute(database.db);
  await sql`analyze totals`.execute(database.db);
  const { rows } = await sql.raw<{ 'QUERY PLAN': readonly { readonly Plan: PlanNode }[] }>(`explain (analyze, format json) ${TOTALS.replace('$1', "'acct_1'").replace('$2', '-1').replace('$3', '-1')}`).execute(database.db);
  const plan = rows[0]?.['QUERY PLAN'][0]?.Plan;
  const own = (await sql<{ count: bigint }>`select count(*) as count from totals where account_id = 'acct_1'`.execute(database.db)).rows[0]?.count;
  if (plan === undefined) throw new Error('no plan');
  expect(rowsRead(plan)).toBeLessThanOrEqual(Number(own) + ACCOUNT_COUNT);
});
