import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Database } from '@signalbox/sql/database';
import { stopTestStores } from '@signalbox/testkit/stores';
import { CompiledQuery, sql } from 'kysely';
import { filledDatabase, rowsRead, watched } from '../testing/many-rows.js';
import { CHAIN, FIRST, LAST, placesFrom, WITHIN } from './ledger-places.js';
import { createPostgresLedger } from './postgres-ledger.js';
import { createRequestReads } from './postgres-requests.js';

const REQUESTS = 20_000;
const HOUR_MS = 3_600_000;
const START_MS = Date.parse('2026-01-01');
/** A request a minute; of each hundred the last three are booked late, half a day, three days and a month. */
const AT_MS = `${START_MS} + i * 60000::bigint - case i % 100 when 97 then 43200000 when 98 then 259200000 when 99 then 2592000000 else 0 end`;
let database: Database<unknown>;

beforeAll(async () => {
  const columns = 'account_id, seq, kind, charge_hash, applies_to, at_ms, request_id, detail, amount_nano_usd, tokens, byok_tokens, attempt, source, provider, period, card_id, key_id, flags, hash';
  const rest = `'r' || i, '{"charged":[]}', 0, 0, 0, 1, '', 'p', '', '', '', '{}', 'h'`;
  // Nine of ten requests are one row of the table; of the others each row is one of its own.
  database = await filledDatabase([
    `insert into ledger_entries (${columns}) select 'big', 3 * i - 2, 'attempt', case when i % 10 > 0 then 'c' end, '', ${AT_MS}, ${rest} from generate_series(1, ${REQUESTS}) i`,
    `insert into ledger_entries (${columns}) select 'big', 3 * i - 1, 'charge', null, '', ${AT_MS}, ${rest} from generate_series(10, ${REQUESTS}, 10) i`,
    `insert into ledger_entries (${columns}) select 'big', 3 * i, 'adjustment', null, 'charge', ${AT_MS}, ${rest} from generate_series(10, ${REQUESTS}, 10) i`,
    `insert into usage_days (account_id, day, period, provider, key_id, model, requests, tokens, byok_tokens, prompt_tokens, completion_tokens, cost_nano_usd, charge_nano_usd, adjusted_nano_usd, savings_nano_usd)
      select 'acct_' || a, to_char(date '2026-01-01' + d, 'YYYY-MM-DD'), 'p', 'p', 'key', 'm', 1, 1, 0, 1, 1, 1, 3, 0, 0 from generate_series(0, 199) d, generate_series(1, 100) a`,
    'analyze ledger_entries',
    'analyze usage_days',
  ]);
}, 60_000);
afterAll(async () => {
  await database.close();
  await stopTestStores();
}, 30_000);

const hours = (count: number): bigint => BigInt(START_MS + count * HOUR_MS);

test.each([
  ['an hour in the middle', hours(150), hours(151)],
  ['two days in the middle', hours(100), hours(148)],
  ['from a time on', hours(300), 0n],
  ['up to a time', 0n, hours(20)],
  ['before the first row', 1n, 2n],
  ['behind the last row', hours(2_000), 0n],
  ['within a month that has rows only late', hours(-700), hours(-5)],
])('pages of a span of time have each row of it once, in the order of the chain, also those that were booked late: %s', async (_what, fromMs, toMs) => {
  const store = createPostgresLedger(database);
  const pagesOf = async (limit: number) => {
    const rows = [];
    for (let after = 0n; ; ) {
      const page = await store.ledger({ accountId: 'big', fromMs, toMs, after, limit });
      rows.push(...page.map(({ seq, kind }) => [seq, kind]));
      if (page.length < limit) return rows;
      after = page.at(-1)?.seq ?? 0n;
    }
  };
  const { rows } = await sql<{ seq: bigint; kind: string }>`select seq, kind from ledger_rows where account_id = 'big' and at_ms >= ${fromMs}::bigint and (${toMs}::bigint = 0 or at_ms < ${toMs}::bigint) order by seq`.execute(database.db);
  const right = rows.map(({ seq, kind }) => [seq, kind]);
  expect(await pagesOf(1_000)).toEqual(right);
  expect(await pagesOf(299)).toEqual(right);
}, 60_000);

/** A database that notes how many rows its queries read. */
function counting(): { readonly db: Database<unknown>['db']; read(): number } {
  let read = 0;
  const executeQuery = async (query: CompiledQuery) => {
    read += await rowsRead(database.db, query.sql, query.parameters);
    return database.db.executeQuery(query);
  };
  return { db: { executeQuery } as unknown as Database<unknown>['db'], read: () => read };
}

test.each([
  ['first', 1n],
  ['one in the middle', 3n * 6_030n],
  ['last', 3n * 6_050n],
])('a page of an hour reads the hour and some rows of the chain, however many the account has: the %s', async (_what, after) => {
  const { db, read } = counting();
  const places = await placesFrom(db, { accountId: 'big', fromMs: hours(100), toMs: hours(101), after, most: 20 });
  expect(places.length).toBeGreaterThan(0);
  expect(read()).toBeLessThan(400);
});

test('years in which an account has a few rows a day are read with a few statements', async () => {
  await sql.raw(`insert into ledger_entries (account_id, seq, kind, charge_hash, applies_to, at_ms, request_id, detail, amount_nano_usd, tokens, byok_tokens, attempt, source, provider, period, card_id, key_id, flags, hash)
    select 'sparse', 2 * i, 'attempt', case when i % 3 > 0 then 'c' end, '', ${START_MS} + i * 28800000::bigint, 's' || i, '{}', 0, 0, 0, 1, '', 'p', '', '', '', '{}', 'h' from generate_series(1, 6000) i`).execute(database.db);
  let statements = 0;
  const executeQuery = (query: CompiledQuery) => {
    statements += 1;
    return database.db.executeQuery(query);
  };
  // The first page: the chain is looked at where the span has not begun yet.
  expect(await placesFrom({ executeQuery } as unknown as Database<unknown>['db'], { accountId: 'sparse', fromMs: BigInt(START_MS) + 3_000n * 28_800_000n, toMs: 0n, after: 0n, most: 3 })).toEqual([6_000n, 6_002n, 6_004n]);
  expect(statements).toBeLessThan(8);
});

test('no row is left out that is booked while a span is looked through: a page ends before it', async () => {
  const insert = async (seqs: string, atHours: number): Promise<void> =>
    void (await sql.raw(`insert into ledger_entries (account_id, seq, kind, applies_to, at_ms, request_id, detail, amount_nano_usd, tokens, byok_tokens, attempt, source, provider, period, card_id, key_id, flags, hash)
      select 'growing', i, 'attempt', '', ${hours(atHours)}, 'g' || i, '{}', 0, 0, 0, 1, '', 'p', '', '', '', '{}', 'h' from generate_series(${seqs}) i`).execute(database.db));
  await insert('1, 30', 0);
  await insert('31, 31', 100);
  await insert('32, 32', 150);
  let isBooked = false;
  const executeQuery = async (query: CompiledQuery) => {
    const answer = await database.db.executeQuery(query);
    if (query.sql === WITHIN && !isBooked) {
      isBooked = true;
      // One that is late, of the day that was just read, and one of the day that is read next.
      await insert('33, 33', 101);
      await insert('34, 34', 151);
    }
    return answer;
  };
  const asked = { accountId: 'growing', fromMs: hours(90), toMs: 0n, most: 5 };
  expect(await placesFrom({ executeQuery } as unknown as Database<unknown>['db'], { ...asked, after: 0n })).toEqual([31n, 32n]);
  expect(await placesFrom(database.db, { ...asked, after: 33n })).toEqual([33n, 34n]);
});

test('each statement is served by an index that begins with what it asks for', async () => {
  for (const [text, values] of [[CHAIN, ['big', '40000', 10]], [FIRST, ['big', String(hours(100)), String(hours(101))]], [LAST, ['big']], [WITHIN, ['big', String(hours(100)), String(hours(101)), '59000', 10, '60000']]] as const) {
    const { rows } = await database.db.executeQuery<{ 'QUERY PLAN': string }>(CompiledQuery.raw(`explain ${text}`, [...values]));
    expect(rows.map((row) => row['QUERY PLAN']).join('\n')).not.toMatch(/Seq Scan/);
  }
});

test('sums of all accounts are read a week at a time, by the day, and no more weeks than were asked for; the pages are those of one statement', async () => {
  const { db, answers } = watched(database.db);
  const reads = createRequestReads({ db });
  const query = { accountId: '', fromDay: '', toDay: '', groupBy: 'account', model: '', provider: '', keyId: '', after: '', limit: 1_000, dearestFirst: false } as const;
  const few = await reads.usage({ ...query, fromDay: '2026-03-01', toDay: '2026-03-02' });
  expect(few.rows.map(({ requests }) => requests)).toEqual(Array.from({ length: 100 }, () => 2n));
  expect(answers).toHaveLength(4);
  answers.length = 0;
  const all = await reads.usage(query);
  expect(answers).toHaveLength(2 + 2 * Math.ceil(200 / 7));
  const { rows: names } = await sql<{ name: string }>`select distinct account_id as name from usage_days order by 1`.execute(database.db);
  expect(all.rows.map(({ group, requests, chargeNanoUsd }) => [group, requests, chargeNanoUsd])).toEqual(names.map(({ name }) => [name, 200n, 600n]));
  const first = await reads.usage({ ...query, limit: 60 });
  const rest = await reads.usage({ ...query, limit: 60, after: first.rows.at(-1)?.group ?? '' });
  expect([first.hasMore, rest.hasMore]).toEqual([true, false]);
  expect([...first.rows, ...rest.rows]).toEqual(all.rows);
  const days = await reads.usage({ ...query, groupBy: 'day', limit: 3 });
  expect(days.rows.map(({ group, requests }) => [group, requests])).toEqual([['2026-07-19', 100n], ['2026-07-18', 100n], ['2026-07-17', 100n]]);
  expect((await reads.usage({ ...query, fromDay: '2027-01-01' })).rows).toEqual([]);
  const { rows } = await sql<{ 'QUERY PLAN': string }>`explain select account_id, sum(requests) from usage_days where day >= '2026-03-01' and day <= '2026-03-07' group by 1`.execute(database.db);
  expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toMatch(/usage_days_day/);
});

test('days of clocks that were wrong are added up too, and no statement is for a week without rows', async () => {
  const odd = ['1970-01-01', '9999-12-31', '+010000-01'];
  for (const day of odd) {
    await sql`insert into usage_days (account_id, day, period, provider, key_id, model, requests, tokens, byok_tokens, prompt_tokens, completion_tokens, cost_nano_usd, charge_nano_usd, adjusted_nano_usd, savings_nano_usd)
      values ('acct_odd', ${day}, 'p', 'p', 'key', 'm', 1, 1, 0, 1, 1, 1, 3, 0, 0)`.execute(database.db);
  }
  const { db, answers } = watched(database.db);
  const { rows } = await createRequestReads({ db }).usage({ accountId: '', fromDay: '', toDay: '', groupBy: 'account', model: '', provider: '', keyId: '', after: '', limit: 1_000, dearestFirst: true });
  expect(rows.map(({ group, requests }) => [group, requests]).at(-1)).toEqual(['acct_odd', 3n]);
  expect(rows).toHaveLength(101);
  expect(answers).toHaveLength(2 + 2 * Math.ceil((200 + odd.length) / 7));
});

test('no further statement is begun once nobody waits for the answer', async () => {
  let left = new AbortController();
  const { db, answers } = watched(database.db, () => answers.length === 4 && left.abort(new Error('left')));
  const reads = createRequestReads({ db });
  const query = { fromDay: '', toDay: '', model: '', provider: '', keyId: '', after: '', limit: 100 };
  await expect(reads.usage({ ...query, accountId: '', groupBy: 'account', dearestFirst: true, signal: left.signal })).rejects.toThrow('left');
  expect(answers.splice(0)).toHaveLength(4);
  left = new AbortController();
  const places = { accountId: 'big', fromMs: hours(100), toMs: 0n, after: 0n, most: 10 };
  await expect(placesFrom(db, { ...places, signal: left.signal })).rejects.toThrow('left');
  expect(answers.splice(0)).toHaveLength(4);
  left = new AbortController();
  // Each of its 200 days is looked through, none of which has such a row.
  const span = { fromMs: 0, toMs: 0, status: '' } as const;
  await expect(reads.requests({ ...query, ...span, accountId: 'acct_1', model: 'm', signal: left.signal })).rejects.toThrow('left');
  expect(answers).toHaveLength(4);
});
