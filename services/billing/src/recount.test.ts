/** Sums that differ from their rows are corrected; rows never are. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { UsageRecorded, UsageRecorded__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import { tierTerms } from '@signalbox/kernel/tiers';
import type { CallInfo } from '@signalbox/rpc/call';
import { silentLog } from '@signalbox/runtime/log';
import { Secret } from '@signalbox/runtime/secret';
import { openDatabase, type Database } from '@signalbox/sql/database';
import { migrate } from '@signalbox/sql/migrate';
import { createFakeClock } from '@signalbox/testkit/clock';
import { stopTestStores, testPostgresUrl } from '@signalbox/testkit/stores';
import { sql } from 'kysely';
import { migrations } from './adapters/migrations.js';
import { createPostgresBooks } from './adapters/postgres-books.js';
import { createPostgresLedger } from './adapters/postgres-ledger.js';
import { createBooksHandlers, unreconciledOf } from './books-door.js';
import { createConsumer } from './consumer.js';
import type { BooksStore } from './domain/books.js';
import { createBillingMetrics } from './metrics.js';

const codec = messageCodec<UsageRecorded, UsageRecorded__Output>('signalbox.events.v1.UsageRecorded');
const JANUARY = Date.UTC(2026, 0, 1);
const FEBRUARY = Date.UTC(2026, 1, 1);
const FEE = 40;
const clock = createFakeClock(JANUARY + 3_600_000);
let database: Database<unknown>;
let books: BooksStore;
let consume: ReturnType<typeof createConsumer>;
let nextSeq = 1;

/** Books one delivered attempt, in January or the month after. */
async function book(accountId: string, requestId: string, { attempt = 1, month = 1, output = 5, fee = 0, model = 'm/one', key = 'key_1' } = {}): Promise<void> {
  const seq = String(nextSeq);
  nextSeq += 1;
  const day = `2026-0${month}-01`;
  const usage: UsageRecorded = {
    writer: 'w', firstSeq: seq, lastSeq: seq,
    ended: [{
      requestId, attempt, accountId, keyId: key, retryOf: attempt === 1 ? [] : [1], periods: { day, week: '2026-W01', month: `2026-0${month}`, plan: '2025-12' }, source: 'PROVIDER', provider: 'p', model, byok: false,
      card: { id: fee === 0 ? 'card_1' : `card_1+plugins.${fee}`, inputUncached: '1000000', outputText: '2000000', ...(fee === 0 ? {} : { requestNanoUsd: String(fee) }) }, tokens: { inputUncached: 10, outputText: output },
      costNanoUsd: String(10 + 2 * output + fee), savingsNanoUsd: '7', totalMs: 900, ttftMs: 90, endedAtMs: String((month === 1 ? JANUARY : FEBRUARY) + nextSeq),
    }],
    outcomes: [{ requestId, attempt, accountId, outcome: 'DELIVERED', toldByEdge: true }],
  };
  expect(await consume([{ subject: 'usage.v1.0', payload: codec.encode(usage), deliveries: 1 }])).toEqual(['done']);
}

beforeAll(async () => {
  database = openDatabase<unknown>({ url: new Secret(await testPostgresUrl()), poolMax: 4, log: silentLog, statementTimeoutMs: 20_000, schema: 'billing', pipelined: true });
  await migrate(database.db, migrations, { schema: 'billing' });
  books = createPostgresBooks(database, { graceMs: 30_000 });
  consume = createConsumer({ store: createPostgresLedger(database), clock, log: silentLog, metrics: createBillingMetrics(false), announce: () => undefined });
  for (const account of ['x', 'y', 'z']) {
    await book(account, `${account} plain`);
    await book(account, `${account} fee`, { fee: FEE });
    await book(account, `${account} other`, { model: 'a model with blanks', key: 'key_2' });
    await book(account, `${account} corrected`);
    await book(account, `${account} corrected`, { attempt: 2, output: 9 });
    await books.adjustCost({ requestId: `${account} plain`, attempt: 1, costNanoUsd: 25n, reason: 'invoice' }, '2026-01', clock.nowMs());
  }
}, 60_000);
afterAll(async () => {
  await database.close();
  await stopTestStores();
}, 30_000);

const change = async (text: string): Promise<void> => {
  expect(Number((await sql.raw(text).execute(database.db)).numAffectedRows)).toBeGreaterThan(0);
};
const failing = async (accountId = ''): Promise<readonly string[]> => (await books.verify(accountId)).filter(({ violations }) => violations > 0n).map(({ invariant }) => invariant);
const TABLES = ['ledger_entries', 'account_heads', 'outcomes', 'writers', 'usage_days', 'attempt_days', 'totals'] as const;
/** All rows of these tables, without the time at which a sum was written. */
const rowsOf = async (tables: readonly string[]): Promise<unknown> =>
  Object.fromEntries(await Promise.all(tables.map(async (table) => [table, (await sql.raw(`select to_jsonb(t) - 'updated_at_ms' as row from ${table} t order by 1`).execute(database.db)).rows] as const)));
const done = { usageDays: 0, attemptDays: 0, totals: 0, closedPeriods: [], brokenInvariants: [] };

test('correct books are not changed', async () => {
  const before = await rowsOf(TABLES);
  expect(await failing()).toEqual([]);
  expect(await books.recount('', false)).toEqual([]);
  expect(await rowsOf(TABLES)).toEqual(before);
});

test.each([
  ['a figure of a day', `update usage_days set charge_nano_usd = charge_nano_usd + 1, savings_nano_usd = savings_nano_usd - 3 where account_id = 'x' and model = 'm/one'`, ['I7'], { usageDays: 1 }],
  ['a day that is gone', `delete from usage_days where account_id = 'x' and key_id = 'key_2'`, ['I7'], { usageDays: 1 }],
  ['a day without rows', `insert into usage_days select 'x', '2026-01-09', period, provider, key_id, model, requests, tokens, byok_tokens, prompt_tokens, completion_tokens, cost_nano_usd, charge_nano_usd, adjusted_nano_usd, savings_nano_usd from usage_days where account_id = 'x' and key_id = 'key_2'`, ['I7'], { usageDays: 1 }],
  ['the key of a sum', `update usage_days set model = 'm/two' where account_id = 'x' and key_id = 'key_2'`, ['I7'], { usageDays: 2 }],
  ['a sum that providers are compared with', `update attempt_days set cost_nano_usd = cost_nano_usd + 7, attempts = 0 where account_id = 'x'`, ['I7'], { attemptDays: 1 }],
  ['all sums that providers are compared with', `delete from attempt_days where account_id = 'x'`, ['I7'], { attemptDays: 1 }],
  ['a provider without rows', `insert into attempt_days values ('x', '2026-01-01', 'q', 1, 2, 3, 0)`, ['I7'], { attemptDays: 1 }],
  ['totals that limits use', `update totals set charge_nano_usd = charge_nano_usd - 5 where account_id = 'x' and period_id like 'month:%'`, ['I9'], { totals: 3 }],
  ['totals without rows', `insert into totals values ('x', 'key_9', 'total', 1, 2, 3, 4)`, ['I9'], { totals: 1 }],
])('%s is corrected from the rows, once, and nothing else is changed', async (_what, text, named, written) => {
  const before = await rowsOf(TABLES);
  await change(text);
  expect(await failing()).toEqual(named);
  expect(await books.recount('', false)).toEqual([{ ...done, accountId: 'x', ...written }]);
  expect(await failing()).toEqual([]);
  // Durations of an existing sum and later cost corrections are kept, too.
  expect(await rowsOf(TABLES)).toEqual(before);
  expect(await books.recount('', false)).toEqual([]);
});

test('days that a version older than the fees booked in this schema are corrected without a backup', async () => {
  const before = await rowsOf(TABLES);
  for (const account of ['x', 'y']) {
    await change(`update usage_days set fees_nano_usd = 0 where account_id = '${account}' and fees_nano_usd > 0`);
    await change(`update attempt_days set cost_nano_usd = cost_nano_usd + ${FEE} where account_id = '${account}'`);
  }
  expect(await failing()).toEqual(['I7']);
  // Also for a single account.
  expect(await books.recount('y', false)).toEqual([{ ...done, accountId: 'y', usageDays: 1, attemptDays: 1 }]);
  expect(await failing('x')).toEqual(['I7']);
  expect(await books.recount('', false)).toEqual([{ ...done, accountId: 'x', usageDays: 1, attemptDays: 1 }]);
  expect(await rowsOf(TABLES)).toEqual(before);
});

test('nothing is written for an account whose rows do not verify; other accounts are corrected', async () => {
  const before = await rowsOf(TABLES);
  const hash = `case when request_id = 'x plain' then repeat('a', 64) else hash end`;
  await sql.raw('create table kept as select * from ledger_entries; alter table ledger_entries disable trigger user').execute(database.db);
  try {
    await change(`update ledger_entries set hash = ${hash}`);
    await change(`update usage_days set requests = requests + 1 where model = 'm/one'`);
    const damaged = (await sql.raw(`select * from usage_days where account_id = 'x' order by model`).execute(database.db)).rows;
    expect(await books.recount('', false)).toEqual([{ ...done, accountId: 'x', brokenInvariants: ['I9 chain'] }, { ...done, accountId: 'y', usageDays: 1 }, { ...done, accountId: 'z', usageDays: 1 }]);
    expect((await sql.raw(`select * from usage_days where account_id = 'x' order by model`).execute(database.db)).rows).toEqual(damaged);
  } finally {
    await sql.raw('delete from ledger_entries; insert into ledger_entries select * from kept; drop table kept; alter table ledger_entries enable trigger user').execute(database.db);
  }
  expect(await books.recount('', false)).toEqual([{ ...done, accountId: 'x', usageDays: 1 }]);
  expect(await rowsOf(TABLES)).toEqual(before);
});

test('the RPC reports the corrections by account and table, and the books are reconciled again', async () => {
  const told: bigint[] = [];
  const { Recount } = createBooksHandlers({ books, keeper: { bill: () => Promise.resolve(undefined), closePeriods: () => Promise.resolve({ closed: [], waiting: [] }) }, clock, ledgerNow: () => Promise.resolve(clock.nowMs()), periodSeconds: undefined, onReconciled: (nano) => told.push(nano) });
  await change(`update usage_days set charge_nano_usd = charge_nano_usd + 9 where account_id = 'z' and key_id = 'key_2'`);
  expect(unreconciledOf(await books.reconcile(clock.nowMs()))).toBe(9n);
  clock.advance(1);
  const none = { attemptDays: '0', totals: '0', closedPeriods: [], brokenInvariants: [] };
  expect(await Recount?.({ accountId: '', withClosed: false }, {} as CallInfo)).toEqual({ accounts: [{ accountId: 'z', usageDays: '1', ...none }] });
  expect(await Recount?.({ accountId: 'z', withClosed: true }, {} as CallInfo)).toEqual({ accounts: [] });
  expect(told).toEqual([0n]);
});

test('a reconciliation that finds nothing counts as the latest, too', async () => {
  await change(`update usage_days set charge_nano_usd = charge_nano_usd + 9 where account_id = 'y' and key_id = 'key_2'`);
  expect(await books.reconcile(JANUARY + 100 * 86_400_000)).toMatchObject([{ kind: 'account', subject: 'y', status: 'differs' }]);
  expect(await books.lastReconciled()).toMatchObject([{ kind: 'account', subject: 'y', status: 'differs' }]);
  await books.recount('y', false);
  expect(await books.reconcile(JANUARY + 100 * 86_400_000 + 1)).toEqual([]);
  expect(await books.lastReconciled()).toEqual([]);
});

test('it waits for a running booking of the account, and counts what that booked', async () => {
  await change(`update usage_days set requests = requests + 1 where account_id = 'x' and model = 'm/one'`);
  let recounted: Promise<unknown> | undefined;
  await database.db.transaction().execute(async (booking) => {
    const { rows: [own] } = await sql<{ pid: number }>`select pg_backend_pid() as pid from account_heads where account_id = 'x' for update`.execute(booking);
    recounted = books.recount('x', false);
    // Until it waits for this transaction; if it never does, the test times out.
    for (let waits = false; !waits; ) waits = (await sql<{ waits: boolean }>`select exists (select from pg_stat_activity where ${own?.pid ?? 0}::integer = any(pg_blocking_pids(pid))) as waits`.execute(database.db)).rows[0]?.waits === true;
    await sql`update usage_days set requests = requests + 1 where account_id = 'x' and model = 'm/one'`.execute(booking);
  });
  expect(await recounted).toEqual([{ ...done, accountId: 'x', usageDays: 1 }]);
  expect(await failing()).toEqual([]);
});

test('sums of a closed period, which its bill is made from, are corrected only if explicitly asked for', async () => {
  await book('x', 'later', { month: 2 });
  const terms = new Map([['x', { ...tierTerms('A', 'team'), tier: 'team', variant: 'A' as const, hardCap: false }]]);
  await sql`update writers set reported_at_ms = ${FEBRUARY + 3_600_000}::bigint`.execute(database.db);
  expect(await books.close({ id: '2026-01', startMs: JANUARY, endMs: FEBRUARY }, terms, FEBRUARY + 3_600_000)).toBe('closed');
  const before = await rowsOf(TABLES);
  const billed = async (): Promise<unknown> => (await books.periodSums('x', '2026-01')).sums;
  const bill = await billed();
  await change(`update usage_days set charge_nano_usd = charge_nano_usd + 1000 where account_id = 'x'`);
  const damaged = await billed();
  expect(damaged).not.toEqual(bill);
  expect(await books.recount('', false)).toEqual([{ ...done, accountId: 'x', usageDays: 1, closedPeriods: ['2026-01'] }]);
  expect(await billed()).toEqual(damaged);
  expect(await failing()).toEqual(['I7']);
  expect(await books.recount('', true)).toEqual([{ ...done, accountId: 'x', usageDays: 2 }]);
  expect(await billed()).toEqual(bill);
  expect(await failing()).toEqual([]);
  expect(await rowsOf(TABLES)).toEqual(before);
});
