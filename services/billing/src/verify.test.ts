import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { BusMessage } from '@signalbox/bus/bus';
import type { UsageRecorded, UsageRecorded__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import { tierTerms } from '@signalbox/kernel/tiers';
import { silentLog } from '@signalbox/runtime/log';
import { Secret } from '@signalbox/runtime/secret';
import { openDatabase, type Database } from '@signalbox/sql/database';
import { migrate } from '@signalbox/sql/migrate';
import { createFakeClock } from '@signalbox/testkit/clock';
import { stopTestStores, testPostgresUrl } from '@signalbox/testkit/stores';
import { CompiledQuery, sql } from 'kysely';
import { migrations } from './adapters/migrations.js';
import { createPostgresBooks } from './adapters/postgres-books.js';
import { createPostgresLedger } from './adapters/postgres-ledger.js';
import { CHAIN_PAGE } from './adapters/postgres-verify.js';
import { createConsumer } from './consumer.js';
import type { BooksStore } from './domain/books.js';
import { createBillingMetrics } from './metrics.js';

const codec = messageCodec<UsageRecorded, UsageRecorded__Output>('signalbox.events.v1.UsageRecorded');
const JANUARY = Date.UTC(2026, 0, 1);
const FEBRUARY = Date.UTC(2026, 1, 1);
const clock = createFakeClock(JANUARY + 3_600_000);
let database: Database<unknown>;
let books: BooksStore;
let consume: (messages: readonly BusMessage[]) => Promise<readonly string[]>;
let nextSeq = 1;

interface Told {
  readonly attempt?: number;
  readonly retryOf?: number[];
  readonly key?: string;
  readonly model?: string;
  readonly byok?: boolean;
  readonly output?: number;
  readonly outcome?: 'DELIVERED' | 'DISCARDED';
  readonly toldByEdge?: boolean;
}
const card = { id: 'card_1', inputUncached: '1000000', outputText: '2000000' };
const periods = { day: '2026-01-01', week: '2026-W01', month: '2026-01', plan: '2025-12' };

/** Books one attempt of the account `x` and its outcome. */
async function book(requestId: string, { attempt = 1, retryOf = [], key = 'key_1', model = 'm/one', byok = false, output = 5, outcome, toldByEdge = true }: Told): Promise<void> {
  const usage: UsageRecorded = {
    writer: 'w', firstSeq: String(nextSeq), lastSeq: String(nextSeq),
    ended: [{ requestId, attempt, accountId: 'x', keyId: key, retryOf, card, periods, tokens: { inputUncached: 10, outputText: output }, costNanoUsd: String(10 + 2 * output), savingsNanoUsd: '7', source: 'PROVIDER', provider: 'p', model, endedAtMs: String(JANUARY + nextSeq), byok }],
    outcomes: outcome === undefined ? [] : [{ requestId, attempt, accountId: 'x', outcome, toldByEdge }],
  };
  nextSeq += 1;
  expect(await consume([{ subject: 'usage.v1.0', payload: codec.encode(usage), deliveries: 1 }])).toEqual(['done']);
}

beforeAll(async () => {
  database = openDatabase<unknown>({ url: new Secret(await testPostgresUrl()), poolMax: 4, log: silentLog, statementTimeoutMs: 20_000, schema: 'billing', pipelined: true });
  await migrate(database.db, migrations, { schema: 'billing' });
  const store = createPostgresLedger(database);
  books = createPostgresBooks(database, { graceMs: 30_000 });
  consume = createConsumer({ store, clock, log: silentLog, metrics: createBillingMetrics(false), announce: () => undefined });
  await book('plain', { outcome: 'DELIVERED' });
  await book('other-key', { key: 'key_2', model: 'm/two', outcome: 'DELIVERED' });
  await book('own', { byok: true, outcome: 'DELIVERED' });
  await book('retried', {});
  await book('retried', { attempt: 2, retryOf: [1], outcome: 'DELIVERED' });
  await book('corrected', { outcome: 'DELIVERED', toldByEdge: false });
  await book('corrected', { attempt: 2, retryOf: [1], output: 7, outcome: 'DELIVERED' });
  await book('running', {});
  await books.adjustCost({ requestId: 'plain', attempt: 1, costNanoUsd: 25n, reason: 'invoice' }, '2026-01', clock.nowMs());
  await books.writeTerms('2026-01', new Map([['x', { ...tierTerms('A', 'team'), tier: 'team', variant: 'A', hardCap: false }]]));
  // The newest row: no later row would show that it is missing.
  await book('last', { outcome: 'DISCARDED' });
}, 60_000);
afterAll(async () => {
  await database.close();
  await stopTestStores();
}, 30_000);

test('a page of a chain has the rows of the view, and is found by its sequences however many rows the account has', async () => {
  const [{ seq: head } = { seq: 0n }] = (await sql<{ seq: bigint }>`select max(seq) as seq from ledger_rows where account_id = 'x'`.execute(database.db)).rows;
  for (let from = 0n; from <= head; from += 1n) {
    for (let to = from; to <= head; to += 1n) {
      const page = await database.db.executeQuery<{ seq: bigint }>(CompiledQuery.raw(CHAIN_PAGE, ['x', from, to]));
      const { rows } = await sql<object>`select * from ledger_rows where account_id = 'x' and seq > ${from} and seq <= ${to} order by seq`.execute(database.db);
      expect(rows).toMatchObject(page.rows);
      expect(page.rows).toHaveLength(rows.length);
    }
  }
  await database.db.transaction().execute(async (transaction) => {
    await sql`set local enable_seqscan = off`.execute(transaction);
    const plan = await transaction.executeQuery<{ 'QUERY PLAN': string }>(CompiledQuery.raw(`explain (costs off) ${CHAIN_PAGE.replace('$1', "'x'").replaceAll('$2', '2').replaceAll('$3', '4')}`));
    expect(plan.rows.map((line) => line['QUERY PLAN']).join('\n')).toMatch(/Index Cond: \(\(account_id = 'x'::text\) AND \(seq >= '2'::bigint\) AND \(seq <= '4'::bigint\)\)/);
  });
});

const TABLES = ['ledger_entries', 'account_heads', 'totals', 'usage_days', 'attempt_days', 'closed_terms', 'writers', 'outcomes'];
const all = (statement: (table: string) => string): Promise<unknown> => sql.raw(TABLES.map(statement).join(';')).execute(database.db);

/** The checks that fail after these statements, which bypass the triggers; they are rolled back. */
async function failing(accountId: string, ...changes: readonly string[]): Promise<readonly string[]> {
  await all((table) => `create table kept_${table} as select * from ${table}; alter table ${table} disable trigger user`);
  try {
    for (const change of changes) expect(Number((await sql.raw(change).execute(database.db)).numAffectedRows)).toBeGreaterThan(0);
    return (await books.verify(accountId)).filter(({ violations }) => violations > 0n).map(({ invariant }) => invariant);
  } finally {
    await all((table) => `delete from ${table}; insert into ${table} select * from kept_${table}; drop table kept_${table}; alter table ${table} enable trigger user`);
  }
}

test('unchanged books verify', async () => {
  expect(await failing('x')).toEqual([]);
  expect(await failing('')).toEqual([]);
});

test('all accounts in parts are verified like all at once, each once, and a part is never empty', async () => {
  const ids = ['part-a', 'part-b', 'part-c', 'part-d'];
  await sql`insert into account_heads (account_id, seq, hash) select id, 1, 'wrong' from unnest(${ids}::text[]) n(id)`.execute(database.db);
  try {
    const whole = await books.verify('');
    const parts = [];
    for (let after: string | undefined = ''; after !== undefined; ) {
      const part: Awaited<ReturnType<typeof books.verifyFrom>> = await books.verifyFrom(after, () => true);
      parts.push(part);
      after = part.next === '' ? undefined : part.next;
    }
    expect(parts.map(({ next }) => next)).toEqual([...ids, '']);
    expect(parts.map(({ accounts }) => accounts)).toEqual(Array.from({ length: ids.length + 1 }, () => 1));
    const chain = (checks: typeof whole) => checks.find(({ invariant }) => invariant === 'I9 chain')?.examples ?? [];
    expect(parts.flatMap(({ checks }) => chain(checks))).toEqual(ids.map((id) => `${id} head`));
    expect(chain(whole)).toEqual(ids.map((id) => `${id} head`));
    expect((await books.verifyFrom('part-b', () => false)).accounts).toBe(3);
  } finally {
    await sql`delete from account_heads where account_id = any(${ids}::text[])`.execute(database.db);
  }
});

describe('a change that bypasses the triggers is found in', () => {
  const month = `scope = 'account' and period_id = 'month:2026-01'`;

  test.each(['amount_nano_usd', 'tokens', 'byok_tokens', 'attempt', 'at_ms'])('each number of a row: %s', async (column) => {
    for (const id of ['plain', 'own', 'corrected']) expect(await failing('x', `update ledger_entries set ${column} = ${column} + 100 where seq = (select min(seq) from ledger_entries where request_id = '${id}')`)).toContain('I9 chain');
  });

  test.each([['source', `'estimated'`], ['provider', `'q'`], ['period', `'2026-02'`], ['card_id', `'card_2'`], ['applies_to', `'cost'`], ['flags', `'{late}'`], ['account_id', `'y'`]])('each text of a row: %s', async (column, value) => {
    expect(await failing('x', `update ledger_entries set ${column} = ${value} where request_id = 'plain' and kind = 'attempt'`)).toContain('I9 chain');
  });

  test.each([
    ['the API key', 'plain', `key_id = 'key_2'`, ['I7', 'I9']],
    ['the model', 'plain', `detail = replace(detail, 'm/one', 'm/two')`, ['I7']],
    ['tokens by their kind', 'plain', `detail = replace(detail, '"outputText":5', '"outputText":4')`, ['I7']],
    ['what was saved', 'plain', `detail = replace(detail, '"savings":"7"', '"savings":"9"')`, ['I7']],
    ['the day of a cap', 'plain', `detail = replace(detail, '2026-01-01', '2026-01-02')`, ['I9']],
    ['the plan of an allotment', 'plain', `detail = replace(detail, '2025-12', '2026-01')`, ['I9']],
    ['who pays', 'own', `detail = replace(detail, '"byok":true', '"byok":false')`, ['I3', 'I7']],
    ['who pays, the other way', 'plain', `detail = replace(detail, '"tokens"', '"byok":true,"tokens"')`, ['I3', 'I7']],
    ['what an attempt superseded', 'corrected', `detail = replace(detail, '"retry_of":[1],', '')`, ['I3']],
  ])('what no hash covers: %s', async (_what, id, change, expected) => {
    expect(await failing('x', `update ledger_entries set ${change} where kind = 'attempt' and request_id = '${id}'`)).toEqual(expected);
  });

  test.each([
    ['the newest row is gone', [`delete from ledger_entries where request_id = 'last' and kind = 'charge'`], ['I7', 'I9 chain']],
    ['the newest request is gone', [`delete from ledger_entries where request_id = 'last'`], ['I7', 'I9 chain']],
    ['a charge is gone from its row', [`update ledger_entries set charge_hash = null where request_id = 'plain'`], ['I7', 'I9', 'I9 chain']],
    ['an adjustment is gone', [`delete from ledger_entries where request_id = 'corrected' and kind = 'adjustment'`], ['I3', 'I7', 'I9', 'I9 chain']],
    ['all rows are gone', [`delete from ledger_entries`], ['I7', 'I9', 'I9 chain']],
    ['the head names an older row', [`update account_heads set seq = seq - 1`], ['I9 chain']],
    ['the head names a row that does not exist', [`update account_heads set seq = seq + 1`], ['I9 chain']],
    ['the head has another hash', [`update account_heads set hash = repeat('a', 64)`], ['I9 chain']],
    ['the head is gone', [`delete from account_heads`], ['I9 chain']],
  ])('the chain: %s', async (_what, changes, expected) => {
    expect(await failing('x', ...changes)).toEqual(expected);
    expect(await failing('', ...changes)).toEqual(expected);
  });

  test.each(['requests', 'tokens', 'byok_tokens', 'prompt_tokens', 'completion_tokens', 'cost_nano_usd', 'charge_nano_usd', 'adjusted_nano_usd', 'savings_nano_usd'])('sums for reports and bills: %s', async (column) => {
    expect(await failing('x', `update usage_days set ${column} = ${column} + 1 where key_id = 'key_2'`)).toEqual(['I7']);
    // The sum over all rows is unchanged.
    expect(await failing('x', `update usage_days set ${column} = ${column} + case key_id when 'key_2' then 1 else -1 end`)).toEqual(['I7']);
  });

  test.each([['model', `'m/three'`], ['provider', `'q'`], ['key_id', `'key_3'`], ['day', `'2026-01-05'`], ['period', `'2026-02'`]])('the key of a sum: %s', async (column, value) => {
    expect(await failing('x', `update usage_days set ${column} = ${value} where key_id = 'key_2'`)).toEqual(['I7']);
  });

  test.each(['attempts', 'tokens', 'cost_nano_usd', 'estimated_nano_usd'])('sums that providers are compared with: %s', async (column) => {
    expect(await failing('x', `update attempt_days set ${column} = ${column} + 1`)).toEqual(['I7']);
  });

  test.each(['charge_nano_usd', 'tokens', 'byok_tokens'])('totals that limits use: %s', async (column) => {
    for (const where of [month, `scope = 'account' and period_id = 'total'`, `scope = 'account' and period_id like 'day:%'`, `scope = 'account' and period_id like 'week:%'`, `scope = 'account' and period_id like 'plan:%'`, `scope = 'key_2' and period_id = 'total'`, `scope = 'key_1' and period_id like 'day:%'`]) {
      expect([where, await failing('x', `update totals set ${column} = ${column} - 1 where ${where}`)]).toEqual([where, ['I9']]);
    }
  });

  test('totals that are missing, or have no rows', async () => {
    expect(await failing('x', `delete from totals where ${month}`)).toEqual(['I9']);
    expect(await failing('x', `update totals set scope = 'key_3' where scope = 'key_2' and period_id = 'total'`)).toEqual(['I9']);
  });

  test.each(['subscriptionNanoUsd', 'includedTokens', 'overageNanoUsdPerMillion', 'trialCreditNanoUsd', 'hardCap', 'overshootTokens', 'tier'])('the terms of a bill: %s', async (field) => {
    expect(await failing('x', `update closed_terms set terms = jsonb_set(terms, '{${field}}', ${field === 'hardCap' ? `'true'` : `'"1"'`})`)).toEqual(['I9 terms']);
  });

  test.each(['plain', 'last'])('a request that is charged twice, if the index that forbids it is lost: %s', async (id) => {
    await sql`drop index ledger_one_charge_a_request`.execute(database.db);
    try {
      const again = `insert into ledger_entries select (jsonb_populate_record(null::ledger_entries, to_jsonb(r) || '{"seq": 99}')).* from ledger_rows r where request_id = '${id}' and kind = 'charge'`;
      expect(await failing('x', again)).toContain('I2');
      expect(await failing('', again)).toContain('I2');
    } finally {
      await sql`create unique index ledger_one_charge_a_request on ledger_entries (request_id) where kind = 'charge' or charge_hash is not null`.execute(database.db);
    }
  });

  test('terms that were moved to another period', async () => {
    expect(await failing('x', `update closed_terms set period = '2026-02'`)).toEqual(['I9 terms']);
  });

  test('watermarks: a writer that is behind, has a gap, or is further than it ever reported', async () => {
    for (const change of ['ledger_seq = ledger_seq - 1', `beyond = '{50,51}'`, 'ledger_seq = last_seq + 1']) expect(await failing('', `update writers set ${change}`)).toEqual(['I6']);
  });

  test('an outcome that contradicts a charge', async () => {
    expect(await failing('x', `insert into outcomes (request_id, attempt, outcome, told_by_edge, account_id) values ('plain', 1, 'SUPERSEDED', true, 'x')`)).toEqual(['I3']);
  });
});

test('every request is checked, even if its rows are on several pages', async () => {
  const ids = Array.from({ length: 2_300 }, (_, i) => `many-${i}`);
  const first = nextSeq;
  nextSeq += ids.length + 1;
  const ended = ids.map((requestId) => ({ requestId, attempt: 1, accountId: 'y', keyId: 'key_1', retryOf: [], card, periods, tokens: { inputUncached: 10, outputText: 5 }, costNanoUsd: '20', source: 'PROVIDER' as const, provider: 'p', model: 'm/one', endedAtMs: String(FEBRUARY) }));
  const outcomes = ids.map((requestId) => ({ requestId, attempt: 1, accountId: 'y', outcome: 'DELIVERED' as const, toldByEdge: true }));
  await consume([{ subject: 'usage.v1.0', payload: codec.encode({ writer: 'w', firstSeq: String(first), lastSeq: String(first + ids.length - 1), ended, outcomes }), deliveries: 1 }]);
  const [one] = ended;
  if (one === undefined) throw new Error('expected an attempt');
  await consume([{ subject: 'usage.v1.0', payload: codec.encode({ writer: 'w', firstSeq: String(first + ids.length), lastSeq: String(first + ids.length), ended: [{ ...one, attempt: 2, retryOf: [1] }], outcomes: [] }), deliveries: 1 }]);
  expect(await failing('y')).toEqual([]);
  for (const id of ['many-0', 'many-999', 'many-1000', 'many-2299']) expect(await failing('y', `update ledger_entries set key_id = 'key_9' where request_id = '${id}' and kind = 'attempt'`)).toEqual(['I7', 'I9']);
});
