import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Database } from '@signalbox/sql/database';
import { stopTestStores } from '@signalbox/testkit/stores';
import { sql } from 'kysely';
import { filledDatabase, rowsRead, watched } from '../testing/many-rows.js';
import { differingAccounts } from './account-differences.js';
import { ACCOUNTS, NEXT_ACCOUNTS } from './account-sums.js';
import { createPostgresBooks, OPEN_PERIODS } from './postgres-books.js';
import { TOTALS } from './postgres-ledger.js';
import { COSTS_APART } from './postgres-verify.js';

const ACCOUNT_COUNT = 20;
/** Days and keys of each account: 30 and 20, in two months. */
const SUMS_EACH = 600;
let database: Database<unknown>;

beforeAll(async () => {
  database = await filledDatabase([
    `insert into account_heads (account_id, hash) select 'acct_' || a, 'h' from generate_series(1, ${ACCOUNT_COUNT}) a`,
    `insert into usage_days (account_id, day, period, provider, key_id, model, requests, tokens, byok_tokens, prompt_tokens, completion_tokens, cost_nano_usd, charge_nano_usd, adjusted_nano_usd, savings_nano_usd)
      select 'acct_' || a, 'day' || d, '2026-0' || (1 + d % 2), 'p', 'key' || k, 'm', 1, 1, 0, 1, 1, 1, 3, -1, 0 from generate_series(1, 30) d, generate_series(1, 20) k, generate_series(1, ${ACCOUNT_COUNT}) a`,
    `insert into totals (account_id, scope, period_id, charge_nano_usd, tokens, byok_tokens, updated_at_ms) select 'acct_' || a, scope, period, ${2 * SUMS_EACH}, 1, 0, 0 from generate_series(1, ${ACCOUNT_COUNT}) a,
      (select 'account' as scope, unnest('{month:2026-01,month:2026-02,plan:2026-01,week:2026-W01,total}'::text[]) as period union all select 'account', 'day:' || d from generate_series(1, 30) d
        union all select 'key:' || k, unnest(array['total', 'month:2026-01', 'month:2026-02', 'day:' || d]) from generate_series(1, 20) k, generate_series(1, 30) d) t on conflict do nothing`,
    'analyze usage_days',
    'analyze totals',
    'analyze account_heads',
  ]);
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

test.each([
  ['the accounts', ACCOUNTS, ACCOUNT_COUNT],
  ['the next accounts', NEXT_ACCOUNTS.replaceAll('$1', `''`), ACCOUNT_COUNT],
  ['the periods that are not closed', OPEN_PERIODS, 2],
])('a few rows of each account are read to find %s, however many it has', async (_what, statement, found) => {
  expect((await sql.raw(statement).execute(database.db)).rows).toHaveLength(found);
  expect(await rowsRead(database.db, statement)).toBeLessThanOrEqual(6 * ACCOUNT_COUNT);
});

test('the totals of an account are read by its key, however large its part of the table is', async () => {
  await sql`insert into totals (account_id, scope, period_id, charge_nano_usd, tokens, byok_tokens, updated_at_ms) select 'acct_1', 'key:' || k, 'week:' || k, 1, 1, 0, 0 from generate_series(1, 10000) k`.execute(database.db);
  await sql`analyze totals`.execute(database.db);
  const read = await rowsRead(database.db, TOTALS.replace('$1', "'acct_1'").replace('$2', '-1').replace('$3', '-1'));
  const own = (await sql<{ count: bigint }>`select count(*) as count from totals where account_id = 'acct_1'`.execute(database.db)).rows[0]?.count;
  expect(read).toBeLessThanOrEqual(Number(own) + ACCOUNT_COUNT);
});

test('costs of all accounts are compared with what providers say a week at a time, each day once, also of a clock that is ahead', async () => {
  const nowMs = Date.parse('2026-03-01T12:00:00Z');
  const daysOf = (count: number): string => `(select to_char(date '2026-03-01' - d, 'YYYY-MM-DD') as day from generate_series(0, ${count - 1}) d union all select '2026-03-09')`;
  await sql.raw(`insert into attempt_days (account_id, day, provider, attempts, tokens, cost_nano_usd, estimated_nano_usd)
    select 'acct_' || a, day, 'p' || p, 1, 1, 10 * p, 0 from ${daysOf(60)} d, generate_series(1, 2) p, generate_series(1, ${ACCOUNT_COUNT}) a`).execute(database.db);
  await sql.raw(`insert into provider_usage (provider, day, cost_nano_usd, tokens, told_at_ms) select 'p1', day, case day when '2026-02-20' then 7 else ${10 * ACCOUNT_COUNT} end, 0, 0 from ${daysOf(60)} d`).execute(database.db);
  const { db, answers } = watched(database.db);
  const books = createPostgresBooks({ db, transactPrepared: database.transactPrepared }, { graceMs: 0 });
  const told = (await books.reconcile(nowMs)).filter(({ kind }) => kind === 'provider');
  const right = await sql<{ day: string; provider: string }>`select day, provider from attempt_days where day >= '2026-01-25' group by 1, 2 order by 1, 2`.execute(database.db);
  expect(told.map(({ day, subject }) => ({ day, provider: subject }))).toEqual(right.rows);
  expect(told).toHaveLength(2 * 37);
  expect(told.filter(({ status }) => status === 'differs')).toEqual([{ kind: 'provider', subject: 'p1', day: '2026-02-20', oursNanoUsd: BigInt(10 * ACCOUNT_COUNT), theirsNanoUsd: 7n, status: 'differs', gaps: 0n }]);
  expect(told.filter(({ status }) => status === 'unreported')).toHaveLength(37);
  expect(answers.filter((rows) => rows > 1).every((rows) => rows <= 2 * 7)).toBe(true);
  answers.length = 0;
  const checks = await books.verify('');
  expect(checks.find(({ invariant }) => invariant === 'I1')).toMatchObject({ violations: 1n, examples: ['p1 2026-02-20'] });
  const ofAccounts = (await sql.raw(ACCOUNTS).execute(database.db)).rows.length;
  // Their list, the writers and the days once, two statements for each account outside of its transaction, and nine parts of 61 days.
  expect(answers).toHaveLength(3 + 2 * ofAccounts + 9);
  // Where a provider reports one day a month, seven of them are no more to read.
  await sql`analyze attempt_days`.execute(database.db);
  expect(await rowsRead(database.db, COSTS_APART, [['2026-01-05', '2026-03-01']])).toBeLessThanOrEqual(2 * 2 * ACCOUNT_COUNT + 2 * 61);
}, 60_000);
