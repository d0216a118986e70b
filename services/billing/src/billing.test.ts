import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { BusMessage } from '@signalbox/bus/bus';
import type { TotalsPublished, TotalsPublished__Output, UsageRecorded, UsageRecorded__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import { brokenLink } from '@signalbox/ledger-core/hash-chain';
import { silentLog } from '@signalbox/runtime/log';
import { Secret } from '@signalbox/runtime/secret';
import { openDatabase, type Database } from '@signalbox/sql/database';
import { migrate } from '@signalbox/sql/migrate';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { stopTestStores, testPostgresUrl } from '@signalbox/testkit/stores';
import { sql } from 'kysely';
import { createDatabaseTime } from './adapters/database-time.js';
import { migrations } from './adapters/migrations.js';
import { createPostgresBooks } from './adapters/postgres-books.js';
import { createPostgresLedger } from './adapters/postgres-ledger.js';
import { createConsumer } from './consumer.js';
import type { LedgerStore } from './domain/ports.js';
import { ANNOUNCED_WAIT_MS, ROUND_WAIT_MS } from './domain/request.js';
import { createBillingMetrics } from './metrics.js';
import { Hearing } from './domain/hearing.js';
import { createHandlers } from './server.js';

const codec = messageCodec<UsageRecorded, UsageRecorded__Output>('signalbox.events.v1.UsageRecorded');
const totalsCodec = messageCodec<TotalsPublished, TotalsPublished__Output>('signalbox.events.v1.TotalsPublished');
let database: Database<unknown>;
let store: LedgerStore;
let consume: (messages: readonly BusMessage[]) => Promise<readonly string[]>;
const announced: string[] = [];
const published: TotalsPublished__Output[] = [];

beforeAll(async () => {
  database = openDatabase<unknown>({ url: new Secret(await testPostgresUrl()), poolMax: 4, log: silentLog, statementTimeoutMs: 5_000, schema: 'billing', pipelined: true });
  await migrate(database.db, migrations, { schema: 'billing' });
  store = createPostgresLedger(database);
  consume = createConsumer({ store, clock: createFakeClock(), log: silentLog, metrics: createBillingMetrics(false), announce: (subject, payload) => {
    announced.push(subject);
    published.push(totalsCodec.decode(payload));
  } });
}, 60_000);
afterAll(async () => {
  await database.close();
  await stopTestStores();
}, 30_000);

const card = { id: 'card_1', inputUncached: '1000000', outputText: '2000000' };
const periods = { day: '2026-01-01', week: '2026-W01', month: '2026-01', plan: '2026-01' };
const ended = (requestId: string, attempt: number, accountId: string, cost: string, retryOf: number[] = []) => ({
  requestId, attempt, accountId, keyId: 'key_1', retryOf, card, periods, tokens: { inputUncached: 10, outputText: 5 }, costNanoUsd: cost, source: 'PROVIDER' as const, provider: 'sim', endedAtMs: '5',
});
const told = (requestId: string, attempt: number, accountId: string, outcome: 'DELIVERED' | 'SUPERSEDED' | 'DISCARDED') => ({ requestId, attempt, accountId, outcome, toldByEdge: true });
/** An outcome that the worker concluded without hearing from edge. */
const concluded = (requestId: string, attempt: number, accountId: string) => ({ ...told(requestId, attempt, accountId, 'DELIVERED'), toldByEdge: false });
const message = (usage: UsageRecorded): BusMessage => ({ subject: 'usage.v1.0', payload: codec.encode(usage), deliveries: 1 });
const ledgerOf = (accountId: string) => store.ledger({ accountId, fromMs: 0n, toMs: 0n, after: 0n, limit: 100 });

test('books one attempt row and one charge row, however often and in whatever order batches come', async () => {
  const first = message({ writer: 'w1', firstSeq: '1', lastSeq: '2', ended: [ended('r1', 1, 'a1', '20')] });
  const second = message({ writer: 'w1', firstSeq: '3', lastSeq: '3', outcomes: [told('r1', 1, 'a1', 'DELIVERED')] });
  expect(await consume([second])).toEqual(['done']);
  expect((await store.watermarks()).find(({ writer }) => writer === 'w1')).toMatchObject({ ledgerSeq: 0n, gaps: 1n });
  expect(await consume([first, second, first])).toEqual(['done', 'done', 'done']);
  const rows = await ledgerOf('a1');
  expect(rows.map(({ kind, amountNanoUsd, charged }) => [kind, amountNanoUsd, charged])).toEqual([['attempt', 20n, true], ['charge', 20n, true]]);
  expect((await store.watermarks()).find(({ writer }) => writer === 'w1')).toMatchObject({ ledgerSeq: 3n, gaps: 0n });
  const totals = await store.totals('a1', [], 0);
  expect(totals.totals.find(({ scope, periodId }) => scope === 'account' && periodId === 'total')).toMatchObject({ chargeNanoUsd: 20n, tokens: 15n });
  expect(totals).toMatchObject({ ledgerSeq: 2n, requestIds: ['r1'] });
  expect(announced).toContain('totals.v1.a1');
});

test('lowers a charge by an adjustment when the superseding attempt arrives late, and the chain verifies', async () => {
  await consume([message({ writer: 'w2', firstSeq: '1', lastSeq: '2', ended: [ended('r2', 1, 'a2', '20')], outcomes: [concluded('r2', 1, 'a2')] })]);
  await consume([message({ writer: 'w3', firstSeq: '1', lastSeq: '1', ended: [ended('r2', 2, 'a2', '20', [1])] })]);
  const rows = await ledgerOf('a2');
  expect(rows.map(({ kind, amountNanoUsd }) => [kind, amountNanoUsd])).toEqual([['attempt', 20n], ['charge', 20n], ['attempt', 20n], ['adjustment', -20n]]);
  const stored = await sql<{ tokens: bigint; byok_tokens: bigint; card_id: string; seq: bigint }>`select seq, tokens, byok_tokens, card_id from ledger_rows where account_id = 'a2' order by seq`.execute(database.db);
  const chained = rows.map((row, i) => ({ ...row, accountId: 'a2', tokens: stored.rows[i]?.tokens ?? 0n, byokTokens: stored.rows[i]?.byok_tokens ?? 0n, cardId: stored.rows[i]?.card_id ?? '' }));
  expect(brokenLink(chained)).toBeUndefined();
});

test('announces that a request in rounds is settled once the last log has reported its round', async () => {
  const named = async (): Promise<readonly string[]> => (await store.totals('a12', ['r12'], 10)).requestIds;
  await consume([message({ writer: 'w12', firstSeq: '1', lastSeq: '2', ended: [ended('r12', 1, 'a12', '20')], outcomes: [{ ...told('r12', 1, 'a12', 'DELIVERED'), followed: true }] })]);
  expect(await named()).toEqual([]);
  expect((await store.totals('a12', ['r12'], 5 + ANNOUNCED_WAIT_MS)).requestIds).toEqual(['r12']);
  await consume([message({ writer: 'w13', firstSeq: '1', lastSeq: '1', ended: [ended('r12', 2, 'a12', '20')] })]);
  expect(await named()).toEqual([]);
  // A log that reports nothing for this long counts as lost.
  expect((await store.totals('a12', ['r12'], 5 + ROUND_WAIT_MS)).requestIds).toEqual(['r12']);
  await consume([message({ writer: 'w13', firstSeq: '2', lastSeq: '2', outcomes: [told('r12', 2, 'a12', 'DELIVERED')] })]);
  expect(await named()).toEqual(['r12']);
  expect((await store.totals('a12', [], 10)).totals.find(({ scope, periodId }) => scope === 'account' && periodId === 'total')?.chargeNanoUsd).toBe(40n);
});

test('announces that a request is settled even if its last round cost nothing, with the totals of what was charged before', async () => {
  await consume([message({ writer: 'w-last-1', firstSeq: '1', lastSeq: '2', ended: [ended('r-last-free', 1, 'a-last-free', '20')], outcomes: [{ ...told('r-last-free', 1, 'a-last-free', 'DELIVERED'), followed: true }] })]);
  const free = { ...ended('r-last-free', 2, 'a-last-free', '0'), tokens: { inputUncached: 0 } };
  await consume([message({ writer: 'w-last-2', firstSeq: '1', lastSeq: '2', ended: [free], outcomes: [told('r-last-free', 2, 'a-last-free', 'DELIVERED')] })]);
  const [first, second, ...more] = published.filter(({ accountId }) => accountId === 'a-last-free');
  expect(more).toEqual([]);
  expect(first).toMatchObject({ requestIds: [], ledgerSeq: '2' });
  expect(second).toMatchObject({ requestIds: ['r-last-free'], previousSeq: '2', ledgerSeq: '3' });
  expect(second?.totals.map(({ scope, periodId, chargeNanoUsd }) => `${scope} ${periodId} ${chargeNanoUsd}`)).toContain('account total 20');
  expect((await store.totals('a-last-free', [], 10)).totals.find(({ scope, periodId }) => scope === 'account' && periodId === 'total')).toMatchObject({ chargeNanoUsd: 20n, tokens: 15n });
});

test('names a request whose later round may be under way only if asked about it, however long ago the earlier round ended', async () => {
  await consume([message({ writer: 'w14', firstSeq: '1', lastSeq: '2', ended: [ended('r14', 1, 'a14', '20')], outcomes: [{ ...told('r14', 1, 'a14', 'DELIVERED'), followed: true }] })]);
  const later = 5 + ROUND_WAIT_MS;
  expect((await store.totals('a14', [], later)).requestIds).toEqual([]);
  expect((await store.totals('a14', ['r15'], later)).requestIds).toEqual([]);
  expect((await store.totals('a14', ['r14'], later)).requestIds).toEqual(['r14']);
});

test.each([['first', 'a16'], ['last', 'a17']])('a round of tool calls only is charged together with the answering round in another log, reported %s', async (order, account) => {
  const [id, calls, words] = [`r${account}`, `w${account}-1`, `w${account}-2`];
  const called = message({ writer: calls, firstSeq: '1', lastSeq: '2', ended: [{ ...ended(id, 1, account, '20'), callsOnly: true }], outcomes: [{ ...told(id, 1, account, 'DISCARDED'), toldByEdge: false }] });
  const answered = message({ writer: words, firstSeq: '1', lastSeq: '2', ended: [ended(id, 2, account, '20')], outcomes: [{ ...told(id, 2, account, 'DELIVERED'), toldByEdge: false }] });
  for (const each of order === 'first' ? [called, answered] : [answered, called]) await consume([each]);
  expect((await ledgerOf(account)).filter(({ kind }) => kind !== 'attempt').reduce((sum, { amountNanoUsd }) => sum + amountNanoUsd, 0n)).toBe(40n);
  // Not if its client had left: then the outcome that its worker concluded is final.
  await consume([message({ writer: calls, firstSeq: '3', lastSeq: '4', ended: [{ ...ended(`${id}-left`, 1, account, '20'), callsOnly: true, clientLeft: true }], outcomes: [{ ...told(`${id}-left`, 1, account, 'DELIVERED'), toldByEdge: false }] })]);
  expect((await ledgerOf(account)).filter(({ kind, requestId }) => kind !== 'attempt' && requestId !== id).map(({ amountNanoUsd }) => amountNanoUsd)).toEqual([20n]);
});

test('tries a fact five times before it becomes a dead event, and books the other facts of the message at once', async () => {
  const usage = { writer: 'w4', firstSeq: '1', lastSeq: '4', ended: [ended('r3', 1, 'a3', '21'), ended('r4', 1, 'a3', '20')], outcomes: [told('r4', 1, 'a3', 'DELIVERED')] };
  for (let deliveries = 1; deliveries < 5; deliveries += 1) {
    expect(await consume([{ ...message(usage), deliveries }])).toEqual(['again']);
    expect((await ledgerOf('a3')).map(({ requestId }) => requestId)).toEqual(['r4', 'r4']);
    // The watermark does not pass the fact before the last try.
    expect((await store.watermarks()).find(({ writer }) => writer === 'w4')).toMatchObject({ ledgerSeq: 0n });
    expect((await sql`select from dead_events where writer = 'w4'`.execute(database.db)).rows).toHaveLength(0);
  }
  expect(await consume([{ ...message(usage), deliveries: 5 }])).toEqual(['poison']);
  expect((await ledgerOf('a3')).map(({ requestId }) => requestId)).toEqual(['r4', 'r4']);
  expect((await store.watermarks()).find(({ writer }) => writer === 'w4')).toMatchObject({ ledgerSeq: 4n, gaps: 0n });
  const { rows } = await sql<{ reason: string }>`select reason from dead_events where writer = 'w4'`.execute(database.db);
  expect(rows).toEqual([{ reason: 'cost_mismatch' }]);
});

test('no number of tries makes dead what the database refused to take: it is booked once the table is back', async () => {
  const usage = message({ writer: 'w_renamed', firstSeq: '1', lastSeq: '2', ended: [ended('r-renamed', 1, 'a-renamed', '20')], outcomes: [told('r-renamed', 1, 'a-renamed', 'DELIVERED')] });
  const away = (): Promise<unknown> => sql`alter table if exists ledger_entries rename to ledger_entries_aside`.execute(database.db);
  const back = (): Promise<unknown> => sql`alter table if exists ledger_entries_aside rename to ledger_entries`.execute(database.db);
  // The table is back right after the message was refused, when what cannot be booked would be put aside.
  const refusedOnce: LedgerStore = { ...store, commit: (...batch) => store.commit(...batch).finally(back) };
  const handle = createConsumer({ store: refusedOnce, clock: createFakeClock(), log: silentLog, metrics: createBillingMetrics(false), announce: () => undefined });
  for (let deliveries = 1; deliveries <= 6; deliveries += 1) {
    await away();
    expect(await handle([{ ...usage, deliveries }])).toEqual(['again']);
  }
  expect(await handle([{ ...usage, deliveries: 7 }])).toEqual(['done']);
  expect((await ledgerOf('a-renamed')).map(({ kind }) => kind)).toEqual(['attempt', 'charge']);
});

test('two replicas that get the same messages at once book each fact once', async () => {
  const other = createPostgresLedger(database);
  const clock = createFakeClock();
  const second = createConsumer({ store: other, clock, log: silentLog, metrics: createBillingMetrics(false), announce: () => undefined });
  const messages = Array.from({ length: 12 }, (_, i) => message({ writer: `w5-${i % 3}`, firstSeq: String(i * 2 + 1), lastSeq: String(i * 2 + 2), ended: [ended(`r5-${i}`, 1, `a5-${i % 2}`, '20')], outcomes: [told(`r5-${i}`, 1, `a5-${i % 2}`, 'DELIVERED')] }));
  // The loser of a race retries, as after a redelivery.
  const deliver = async (handle: typeof consume, batch: readonly BusMessage[]): Promise<void> => {
    for (let left = batch; left.length > 0; ) {
      const verdicts = await handle(left);
      left = left.filter((_, i) => verdicts[i] === 'again');
    }
  };
  await Promise.all([deliver(consume, messages), deliver(second, [...messages].reverse()), deliver(consume, messages.slice(3, 7))]);
  for (const account of ['a5-0', 'a5-1']) {
    const rows = await ledgerOf(account);
    expect(rows.map(({ seq, kind }) => [seq, kind])).toEqual(rows.map((_, i) => [BigInt(i + 1), i % 2 === 0 ? 'attempt' : 'charge']));
    expect(rows).toHaveLength(12);
    // A returned row contains everything that its hash covers.
    expect(brokenLink(rows.map((row) => ({ ...row, accountId: account })))).toBeUndefined();
    expect((await store.totals(account, [], 0)).totals.find(({ scope, periodId }) => scope === 'account' && periodId === 'total')?.chargeNanoUsd).toBe(120n);
  }
});

test('returns totals of days for ten days, of weeks and months for seventy, and all-time totals always', async () => {
  const { rows } = await sql<{ at: bigint }>`select max(updated_at_ms) as at from totals where account_id = 'a5-0'`.execute(database.db);
  const kindsAfter = async (days: number): Promise<string> => {
    const { totals } = await store.totals('a5-0', [], Number(rows[0]?.at) + days * 86_400_000);
    return [...new Set(totals.map(({ periodId }) => periodId.split(':')[0]))].sort().join(' ');
  };
  expect(await kindsAfter(9)).toBe('day month plan total week');
  expect(await kindsAfter(10)).toBe('month plan total week');
  expect(await kindsAfter(70)).toBe('total');
});

test('pages through the ledger without losing or repeating a row, wherever the cut is', async () => {
  const whole = await ledgerOf('a5-0');
  for (const limit of [1, 2, 3, 5]) {
    const paged = [];
    for (let after = 0n; ; ) {
      const page = await store.ledger({ accountId: 'a5-0', fromMs: 0n, toMs: 0n, after, limit });
      paged.push(...page);
      if (page.length < limit) break;
      after = page.at(-1)?.seq ?? 0n;
    }
    expect(paged).toEqual(whole);
  }
});

test('stores any text unchanged', async () => {
  const name = 'q"\\{,}\n ü 😀';
  const strange = { ...ended(`r6 ${name}`, 1, 'a6', '20'), keyId: '', model: name, provider: name, flags: [name, ''] };
  expect(await consume([message({ writer: name, firstSeq: '1', lastSeq: '2', ended: [strange] })])).toEqual(['done']);
  const [row] = await ledgerOf('a6');
  expect(row).toMatchObject({ requestId: `r6 ${name}`, provider: name, flags: [name, ''], charged: false });
  const { rows } = await sql<{ model: string }>`select detail::json->>'model' as model from ledger_entries where account_id = 'a6'`.execute(database.db);
  expect(rows).toEqual([{ model: name }]);
});

test('names the latest charged requests, and those of the requests asked about that are charged', async () => {
  const rows = 2_100;
  const batch = (first: number) => message({
    writer: 'w8', firstSeq: String(first + 1), lastSeq: String(first + 100), ended: Array.from({ length: 100 }, (_, i) => ended(`r8-${first + i}`, 1, 'a8', '20')), outcomes: Array.from({ length: 100 }, (_, i) => told(`r8-${first + i}`, 1, 'a8', 'DELIVERED')),
  });
  await consume(Array.from({ length: rows / 100 }, (_, i) => batch(i * 100)));
  const named = new Set((await store.totals('a8', ['r8-0', 'r8-7', 'r5-0', 'unknown'], 0)).requestIds);
  expect([...named].filter((id) => !id.startsWith('r8-'))).toEqual([]);
  expect([named.size, named.has('r8-0'), named.has('r8-7'), named.has('r8-1'), named.has('r8-2099')]).toEqual([2_002, true, true, false, true]);
});

test('an announcement names the sequence of the previous one, which rows without a charge do not advance', async () => {
  const heard: TotalsPublished__Output[] = [];
  const hearing = createConsumer({ store, clock: createFakeClock(), log: silentLog, metrics: createBillingMetrics(false), announce: (_, payload) => heard.push(totalsCodec.decode(payload)) });
  const one = (request: string, first: number) => message({ writer: 'w9', firstSeq: String(first), lastSeq: String(first + 1), ended: [ended(request, 1, 'a9', '20')], outcomes: [told(request, 1, 'a9', 'DELIVERED')] });
  await hearing([one('r9-1', 1)]);
  await hearing([message({ writer: 'w9', firstSeq: '3', lastSeq: '3', ended: [ended('r9-2', 1, 'a9', '20')] })]);
  await hearing([one('r9-3', 4)]);
  expect(heard.map(({ previousSeq, ledgerSeq, requestIds }) => [previousSeq, ledgerSeq, requestIds])).toEqual([['0', '2', ['r9-1']], ['2', '5', ['r9-3']]]);
});

test('a ledger with the first schema continues after the migration', async () => {
  const old = openDatabase<unknown>({ url: new Secret(await testPostgresUrl()), poolMax: 2, log: silentLog, statementTimeoutMs: 5_000, schema: 'billing', pipelined: true });
  await migrate(old.db, migrations.slice(0, 1), { schema: 'billing' });
  const row = (seq: number, kind: string, request: string, attempt: number, amount: number, hash: string) => sql`insert into ledger_entries (account_id, seq, kind, request_id, attempt, amount_nano_usd, tokens, byok_tokens, source, flags, provider,
    period, at_ms, applies_to, card_id, key_id, detail, prev_hash, hash) values ('a1', ${seq}, ${kind}, ${request}, ${attempt}, ${amount}, 15, 0, 'provider', '{}', 'sim', '2026-01', 5, '', 'card_1', 'key_1', '{"model":"m"}', '', ${hash})`.execute(old.db);
  await row(1, 'attempt', 'r1', 1, 20, 'h1');
  await row(2, 'charge', 'r1', 1, 20, 'h2');
  await row(3, 'attempt', 'r2', 1, 20, 'h3');
  const request = (id: string, outcome: object[], booked: number | null) => sql`insert into requests values (${id}, 'a1', 'key_1', ${JSON.stringify({ attempts: [{ attempt: 1, retryOf: [], costNanoUsd: '20', tokens: 15, byok: false }], outcomes: outcome })}::jsonb,
    ${JSON.stringify(periods)}::jsonb, '{}'::jsonb, ${booked === null ? '{}' : '{1}'}::integer[], ${booked}, 15, 0, 0)`.execute(old.db);
  await request('r1', [{ attempt: 1, outcome: 'DELIVERED', toldByEdge: false }], 20);
  await request('r2', [{ attempt: 1, outcome: 'SUPERSEDED', toldByEdge: true }], null);
  await sql`insert into account_heads values ('a1', 3, 'h3')`.execute(old.db);
  await sql`insert into writers values ('w1', 'sim', 9, 3, 0)`.execute(old.db);
  await sql`insert into writer_ranges values ('w1', 8, 9), ('w1', 5, 6)`.execute(old.db);
  await migrate(old.db, migrations, { schema: 'billing' });
  const ledger = createPostgresLedger(old);
  const handle = createConsumer({ store: ledger, clock: createFakeClock(), log: silentLog, metrics: createBillingMetrics(false), announce: () => undefined });
  expect(await ledger.watermarks()).toMatchObject([{ writer: 'w1', ledgerSeq: 3n, gaps: 2n }]);
  // Known facts change nothing; the retry of r1 lowers its charge, and that of r2 becomes its charge.
  await handle([message({ writer: 'w1', firstSeq: '4', lastSeq: '7', ended: [ended('r1', 1, 'a1', '20'), ended('r1', 2, 'a1', '20', [1]), ended('r2', 2, 'a1', '20', [1])], outcomes: [concluded('r1', 1, 'a1'), told('r2', 2, 'a1', 'DELIVERED')] })]);
  expect(await ledger.watermarks()).toMatchObject([{ writer: 'w1', ledgerSeq: 9n, gaps: 0n }]);
  const rows = await ledger.ledger({ accountId: 'a1', fromMs: 0n, toMs: 0n, after: 0n, limit: 100 });
  expect(rows.map(({ seq, kind, requestId, attempt, amountNanoUsd, charged }) => [seq, kind, requestId, attempt, amountNanoUsd, charged])).toEqual([
    [1n, 'attempt', 'r1', 1, 20n, false], [2n, 'charge', 'r1', 1, 20n, true], [3n, 'attempt', 'r2', 1, 20n, false],
    [4n, 'attempt', 'r1', 2, 20n, false], [5n, 'adjustment', 'r1', 2, -20n, true], [6n, 'attempt', 'r2', 2, 20n, true], [7n, 'charge', 'r2', 2, 20n, true],
  ]);
  await old.close();
});

test('refuses to change, delete or truncate ledger rows', async () => {
  await expect(sql`update ledger_entries set amount_nano_usd = 0`.execute(database.db)).rejects.toThrow(/append-only/);
  await expect(sql`delete from ledger_entries`.execute(database.db)).rejects.toThrow(/append-only/);
  await expect(sql`truncate ledger_entries`.execute(database.db)).rejects.toThrow(/append-only/);
});

test('a ledger that was restored from before a writer registered still names it, as long as it may be alive', async () => {
  const clock = createFakeClock();
  const { unary } = createHandlers({ store: { ...store, watermarks: () => Promise.resolve([]) }, clock, hearing: new Hearing(clock), ledgerNow: () => Promise.resolve(clock.nowMs()), announce: () => undefined });
  const writers = async (): Promise<unknown> => ((await (unary['Watermarks'] as (asked: unknown) => Promise<{ writers: unknown }>)({})).writers);
  await (unary['Register'] as (asked: unknown) => Promise<unknown>)({ writer: 'w_forgotten', provider: 'sim', lastSeq: '1' });
  expect(await writers()).toEqual([{ writer: 'w_forgotten' }]);
  clock.advance(900_001);
  expect(await writers()).toEqual([]);
});

test('a host whose clock is ahead does not take writers for lost, since the clock of the database counts', async () => {
  const ledgerNow = createDatabaseTime(database);
  const doorAt = async (aheadMs: number) => createHandlers({ store, clock: createFakeClock((await ledgerNow()) + aheadMs), hearing: new Hearing(createFakeClock()), ledgerNow, announce: () => undefined }).unary;
  const call = async (door: Awaited<ReturnType<typeof doorAt>>, name: string, asked: object): Promise<unknown> => await (door[name] as (asked: object) => Promise<unknown>)(asked);
  await call(await doorAt(0), 'Watermark', { writer: 'w_heard', lastSeq: '0', openSinceMs: '0' });
  const ahead = await doorAt(16 * 60_000);
  expect(await call(ahead, 'Watermarks', {})).toMatchObject({ writers: expect.arrayContaining([expect.objectContaining({ writer: 'w_heard', lost: false })]) as unknown });
  await expect(call(ahead, 'BookLost', { writer: 'w_heard', requests: [] })).rejects.toThrow(/^bad_message/);
  await call(ahead, 'Watermark', { writer: 'w_heard', lastSeq: '0', openSinceMs: '0' });
  const { rows } = await sql<{ is_now: boolean }>`select abs(reported_at_ms - extract(epoch from clock_timestamp()) * 1000) < 60000 as is_now from writers where writer = 'w_heard'`.execute(database.db);
  expect(rows).toEqual([{ is_now: true }]);
});

test.each([
  ['the clock of the database is set ahead', (clock: FakeClock) => clock.jumpWall(3_600_000)],
  ['nobody could report', (clock: FakeClock) => clock.advance(3_600_000)],
])('%s: no writer counts as lost before it has had time to report, and none that has reported then', async (_what, pass) => {
  const clock = createFakeClock();
  const { unary } = createHandlers({ store, clock, hearing: new Hearing(clock), ledgerNow: () => Promise.resolve(clock.nowMs()), announce: () => undefined });
  const call = async (name: string, asked: object): Promise<Record<string, unknown>> => (await (unary[name] as (asked: unknown) => Promise<unknown>)(asked)) as Record<string, unknown>;
  const report = (writer: string) => call('Watermark', { writer, lastSeq: '9', openSinceMs: '0' });
  const isLost = async (writer: string): Promise<unknown> => ((await call('Watermarks', {}))['writers'] as { writer: string; lost: boolean }[]).find((each) => each.writer === writer)?.lost;
  await report('w_living');
  await report('w_dead');
  pass(clock);
  expect([await isLost('w_living'), await isLost('w_dead')]).toEqual([false, false]);
  await expect(call('BookLost', { writer: 'w_living', requests: [] })).rejects.toThrow(/^bad_message/);
  for (let reports = 0; reports < 4; reports += 1) {
    clock.advance(15_000);
    await report('w_living');
  }
  expect([await isLost('w_living'), await isLost('w_dead')]).toEqual([false, true]);
});

test('a writer that reported only while the clock of the database was ahead may be declared lost; one that reported afterwards may not', async () => {
  const clock = createFakeClock();
  const { unary } = createHandlers({ store, clock, hearing: new Hearing(clock), ledgerNow: () => Promise.resolve(clock.nowMs()), announce: () => undefined });
  const call = async (name: string, asked: object): Promise<unknown> => await (unary[name] as (asked: unknown) => Promise<unknown>)(asked);
  const isLost = async (writer: string): Promise<unknown> => ((await call('Watermarks', {})) as { writers: { writer: string; lost: boolean }[] }).writers.find((each) => each.writer === writer)?.lost;
  clock.jumpWall(86_400_000);
  for (const writer of ['w_ahead', 'w_back']) await call('Watermark', { writer, lastSeq: '0', openSinceMs: '0' });
  clock.jumpWall(-86_400_000);
  await call('Watermark', { writer: 'w_back', lastSeq: '0', openSinceMs: '0' });
  clock.advance(59_000);
  expect(await call('DeclareLost', { writer: 'w_back', note: 'disk died' })).toMatchObject({ found: true, problem: expect.stringContaining('heard of') });
  expect(await call('DeclareLost', { writer: 'w_ahead', note: 'disk died' })).toEqual({ found: true, problem: '' });
  // A writer that reports again counts as lost again after its usual silence.
  for (let minutes = 0; minutes < 14; minutes += 1) {
    clock.advance(60_000);
    expect(await isLost('w_back')).toBe(false);
  }
  clock.advance(60_000);
  expect([await isLost('w_back'), await isLost('w_ahead')]).toEqual([true, true]);
});

test.each([[-80, 0], [80, 0], [0, -80], [0, 80]])('the totals of today are returned if the clock of the replica that booked is %d days off, and that of the replica asked %d', async (bookedDays, askedDays) => {
  const ledgerNow = createDatabaseTime(database);
  const clockAt = async (days: number): Promise<FakeClock> => createFakeClock((await ledgerNow()) + days * 86_400_000);
  const account = `a_apart${bookedDays}${askedDays}`;
  const [clock, own] = [await clockAt(askedDays), { writer: `w_${account}`, firstSeq: '1', lastSeq: '2' }];
  const { unary } = createHandlers({ store, clock, hearing: new Hearing(clock), ledgerNow, announce: () => undefined });
  const book = createConsumer({ store, clock: await clockAt(bookedDays), log: silentLog, metrics: createBillingMetrics(false), announce: () => undefined });
  await book([message({ ...own, ended: [ended(`r_${account}`, 1, account, '20')], outcomes: [told(`r_${account}`, 1, account, 'DELIVERED')] })]);
  const { totals } = (await (unary['Totals'] as (asked: object) => Promise<unknown>)({ accountId: account, requestIds: [] })) as { totals: { periodId: string }[] };
  expect([...new Set(totals.map(({ periodId }) => periodId.split(':')[0]))].sort()).toEqual(['day', 'month', 'plan', 'total', 'week']);
});

test('the record up to which a writer’s log is to be booked counts until the writer registers again', async () => {
  const { unary } = createHandlers({ store, clock: createFakeClock(), hearing: new Hearing(createFakeClock()), ledgerNow: () => Promise.resolve(5), announce: () => undefined });
  const owedAfter = async (name: string, told: object): Promise<string | undefined> => {
    await (unary[name] as (asked: unknown) => Promise<unknown>)({ writer: 'w_owes', provider: 'p', lastSeq: '3', openSinceMs: '1', ...told });
    return (await createPostgresBooks(database, { graceMs: 0 }).writerReports()).find(({ writer }) => writer === 'w_owes')?.owedSeq?.toString();
  };
  expect(await owedAfter('Watermark', { owedSeq: '0' })).toBe('0');
  expect(await owedAfter('Watermark', { owedSeq: '2' })).toBe('2');
  expect(await owedAfter('Register', {})).toBeUndefined();
  expect(await owedAfter('Watermark', {})).toBeUndefined();
});

test('a request that is missing from the log of a live writer is booked as quota knows it, once the ledger has all that the writer reported', async () => {
  const clock = createFakeClock();
  const { unary } = createHandlers({ store, clock, hearing: new Hearing(clock), ledgerNow: () => Promise.resolve(clock.nowMs()), announce: () => undefined });
  const call = async (name: string, asked: object): Promise<unknown> => await (unary[name] as (asked: unknown) => Promise<unknown>)(asked);
  await call('Watermark', { writer: 'w_cut', lastSeq: '2', openSinceMs: '0' });
  const request = { writer: 'w_cut', requests: [{ accountId: 'a_cut', keyId: 'key_1', requestId: 'r_cut', chargeNanoUsd: '0', tokens: '0', byok: false, periods: { ...periods, reservedAtMs: '0' } }] };
  await expect(call('BookLost', request)).rejects.toThrow(/^bad_message/);
  await consume([message({ writer: 'w_cut', firstSeq: '1', lastSeq: '2', ended: [ended('r_kept', 1, 'a_cut', '20')], outcomes: [told('r_kept', 1, 'a_cut', 'DELIVERED')] })]);
  await call('BookLost', request);
  expect((await ledgerOf('a_cut')).map(({ kind, requestId, amountNanoUsd }) => [kind, requestId, amountNanoUsd])).toEqual([['attempt', 'r_kept', 20n], ['charge', 'r_kept', 20n], ['attempt', 'r_cut', 0n], ['charge', 'r_cut', 0n]]);
});

test('a lost writer: its requests are booked once as quota knows them, its own facts replace that if the log is found, and the books verify', async () => {
  const clock = createFakeClock();
  const { unary } = createHandlers({ store, clock, hearing: new Hearing(clock), ledgerNow: () => Promise.resolve(clock.nowMs()), announce: (subject) => void announced.push(subject) });
  const call = async (name: string, message: object): Promise<Record<string, unknown>> => (await (unary[name] as (asked: unknown) => Promise<unknown>)(message)) as Record<string, unknown>;
  await call('Register', { writer: 'w_lost', provider: 'sim', lastSeq: '9' });
  const lost = (requestId: string, charge: string, tokens: string) => ({ accountId: 'a_lost', keyId: 'key_1', requestId, chargeNanoUsd: charge, tokens, byok: false, periods: { ...periods, reservedAtMs: '0' } });
  const request = { writer: 'w_lost', requests: [lost('told', '20', '15'), lost('streaming', '0', '0')] };
  await expect(call('BookLost', request)).rejects.toThrow(/^bad_message/);
  expect(await call('DeclareLost', { writer: 'w_lost', note: 'disk died' })).toMatchObject({ found: true, problem: expect.stringContaining('heard of') });
  expect(await call('DeclareLost', { writer: 'w_none', note: 'disk died' })).toEqual({ found: false });
  clock.advance(61_000);
  expect(await call('DeclareLost', { writer: 'w_lost', note: 'disk died' })).toEqual({ found: true, problem: '' });
  expect(await call('DeclareLost', { writer: 'w_lost', note: 'again' })).toEqual({ found: true, problem: '' });
  expect((await sql<{ note: string; last_seq: bigint }>`select note, last_seq from writer_losses where writer = 'w_lost'`.execute(database.db)).rows).toEqual([{ note: 'disk died', last_seq: 9n }]);
  await expect(sql`delete from writer_losses`.execute(database.db)).rejects.toThrow();
  expect((await call('Watermarks', {}))['writers']).toContainEqual(expect.objectContaining({ writer: 'w_lost', lost: true }));
  const verified = async () => (await createPostgresBooks(database, { graceMs: 0 }).verify('')).filter(({ invariant, violations, examples }) => violations > 0n && (invariant !== 'I6' || examples.includes('w_lost')));
  expect(await verified()).toEqual([]);

  announced.length = 0;
  for (let i = 0; i < 2; i += 1) await call('BookLost', request);
  expect(announced).toEqual(['totals.v1.a_lost']);
  const rows = async () => (await ledgerOf('a_lost')).map(({ kind, requestId, attempt, amountNanoUsd, flags }) => [kind, requestId, attempt, amountNanoUsd, flags.join()]);
  const booked = [['attempt', 'told', 0, 20n, 'orphan,writer_lost'], ['charge', 'told', 0, 20n, ''], ['attempt', 'streaming', 0, 0n, 'orphan,writer_lost'], ['charge', 'streaming', 0, 0n, '']];
  expect(await rows()).toEqual(booked);
  expect((await store.totals('a_lost', [], 0)).totals.find(({ periodId, scope }) => periodId === 'total' && scope === 'account')).toMatchObject({ chargeNanoUsd: 20n, tokens: 15n });

  // The disk was found: it has the same for one request, and more for the other.
  await call('Watermark', { writer: 'w_lost', lastSeq: '9', openSinceMs: '0' });
  expect((await store.watermarks()).find(({ writer }) => writer === 'w_lost')).toMatchObject({ isDeclaredLost: false });
  await consume([message({ writer: 'w_lost', firstSeq: '1', lastSeq: '9', ended: [ended('told', 1, 'a_lost', '20'), ended('streaming', 1, 'a_lost', '20')], outcomes: [told('told', 1, 'a_lost', 'DELIVERED'), told('streaming', 1, 'a_lost', 'DELIVERED')] })]);
  expect(await rows()).toEqual([...booked, ['attempt', 'told', 1, 20n, ''], ['attempt', 'streaming', 1, 20n, ''], ['adjustment', 'streaming', 1, 20n, '']]);
  expect(await verified()).toEqual([]);
});
