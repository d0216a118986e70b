import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { BusMessage } from '@signalbox/bus/bus';
import type { UsageRecorded, UsageRecorded__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import { cardIdWith } from '@signalbox/kernel/card-fees';
import { tierTerms } from '@signalbox/kernel/tiers';
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
import { unreconciledOf } from './books-door.js';
import { createConsumer } from './consumer.js';
import { createBookkeeper, type AccountTerms, type Bookkeeper } from './domain/bookkeeper.js';
import { Hearing } from './domain/hearing.js';
import type { BooksStore } from './domain/books.js';
import type { LedgerStore } from './domain/ports.js';
import { createBillingMetrics } from './metrics.js';

const codec = messageCodec<UsageRecorded, UsageRecorded__Output>('signalbox.events.v1.UsageRecorded');
const JANUARY = Date.UTC(2026, 0, 1);
const FEBRUARY = Date.UTC(2026, 1, 1);
const HOUR = 3_600_000;
const GRACE_MS = 30_000;
const clock = createFakeClock(FEBRUARY - HOUR);
const team: AccountTerms = { createdAtMs: JANUARY, terms: { ...tierTerms('A', 'team'), tier: 'team', variant: 'A', hardCap: false } };
let accounts = new Map<string, AccountTerms>();
let database: Database<unknown>;
let store: LedgerStore;
let books: BooksStore;
let keeper: Bookkeeper;
let consume: (messages: readonly BusMessage[]) => Promise<readonly string[]>;
let nextSeq = 1;

beforeAll(async () => {
  database = openDatabase<unknown>({ url: new Secret(await testPostgresUrl()), poolMax: 4, log: silentLog, statementTimeoutMs: 20_000, schema: 'billing', pipelined: true });
  await migrate(database.db, migrations, { schema: 'billing' });
  store = createPostgresLedger(database);
  books = createPostgresBooks(database, { graceMs: GRACE_MS });
  keeper = createBookkeeper({ store: books, accounts: { termsOf: (id) => Promise.resolve(accounts.get(id)), all: () => Promise.resolve(accounts) }, periodSeconds: undefined, hearing: new Hearing(clock), graceMs: GRACE_MS });
  consume = createConsumer({ store, clock, log: silentLog, metrics: createBillingMetrics(false), announce: () => undefined });
}, 60_000);
afterAll(async () => {
  await database.close();
  await stopTestStores();
}, 30_000);

interface Told {
  readonly id: string;
  readonly account: string;
  readonly model?: string;
  readonly provider?: string;
  readonly key?: string;
  readonly atMs?: number;
  readonly output?: number;
  readonly attempt?: number;
  readonly retryOf?: number[];
  readonly failed?: boolean;
  /** The outcome was concluded by the worker. */
  readonly concluded?: boolean;
  readonly byok?: boolean;
  readonly month?: string;
  readonly savings?: string;
  readonly totalMs?: number;
  readonly ttftMs?: number;
  /** Plugin fees, and the part of them that was paid to the provider of images. */
  readonly fee?: number;
  readonly bought?: number;
  /** What the provider says it charged. */
  readonly took?: number;
}
const card = { id: 'card_1', inputUncached: '1000000', outputText: '2000000' };
const ended = ({ id, account, model = 'm/one', provider = 'p', key = 'key_1', atMs = JANUARY + HOUR, output = 5, attempt = 1, retryOf = [], failed = false, byok = false, month = '2026-01', savings = '7', totalMs = 9, ttftMs = 3, fee = 0, bought = 0, took }: Told) => ({
  requestId: id, attempt, accountId: account, keyId: key, retryOf, card: fee === 0 ? card : { ...card, id: cardIdWith(card.id, { feeNanoUsd: BigInt(fee), bought: bought === 0 ? [] : [{ provider: 'painter', nanoUsd: BigInt(bought) }] }), requestNanoUsd: String(fee) }, periods: { day: '2026-01-01', week: '2026-W01', month, plan: month }, tokens: failed ? null : { inputUncached: 10, outputText: output },
  costNanoUsd: failed ? '0' : String(10 + output * 2 + fee), savingsNanoUsd: failed ? '0' : savings, source: 'PROVIDER' as const, provider, model, endedAtMs: String(atMs), status: failed ? 500 : 200,
  failure: failed ? ('PROVIDER_ERROR' as const) : ('FAILURE_CLASS_UNSPECIFIED' as const), decisionId: 'dec_1', ttftMs, totalMs, byok, ...(took === undefined ? {} : { toldNanoUsd: String(took) }),
});
const outcome = ({ id, account, attempt = 1, failed = false, concluded = false }: Told) => ({ requestId: id, attempt, accountId: account, outcome: failed ? ('DISCARDED' as const) : ('DELIVERED' as const), toldByEdge: !concluded });
const message = (usage: UsageRecorded): BusMessage => ({ subject: 'usage.v1.0', payload: codec.encode(usage), deliveries: 1 });
/** Books requests of one attempt, or attempts of one request, by the writer `w`. */
async function book(...told: readonly Told[]): Promise<void> {
  const firstSeq = nextSeq;
  nextSeq += told.length * 2;
  expect(await consume([message({ writer: 'w', firstSeq: String(firstSeq), lastSeq: String(nextSeq - 1), ended: told.map(ended), outcomes: told.map(outcome) })])).toEqual(['done']);
}
const list = { fromMs: 0, toMs: 0, model: '', provider: '', keyId: '', status: '', after: '', limit: 10 } as const;
const everything = { fromDay: '', toDay: '', groupBy: 'day', model: '', provider: '', keyId: '', after: '', limit: 10, dearestFirst: false } as const;
const idsOf = async (query: Partial<Parameters<BooksStore['requests']>[0]> & { readonly accountId: string }): Promise<readonly string[] | undefined> => (await books.requests({ ...list, ...query }))?.requests.map(({ id }) => id);
const violations = async (accountId = ''): Promise<readonly string[]> => (await books.verify(accountId)).filter(({ violations: count }) => count > 0n).map(({ invariant }) => invariant);

describe('usage and requests', () => {
  beforeAll(async () => {
    await book(
      { id: 'u1', account: 'u' }, { id: 'u2', account: 'u', model: 'm/two', atMs: JANUARY + 25 * HOUR, key: 'key_2', output: 7, savings: '-9' }, { id: 'u3', account: 'u', provider: 'q', atMs: JANUARY + 26 * HOUR, byok: true },
      { id: 'u4', account: 'u', failed: true, atMs: JANUARY + 50 * HOUR }, { id: 'v1', account: 'v' },
    );
    await book({ id: 'u5', account: 'u', failed: true, atMs: JANUARY + 51 * HOUR, provider: 'q' }, { id: 'u5', account: 'u', attempt: 2, retryOf: [1], atMs: JANUARY + 52 * HOUR });
  });

  test('sums by each group: cost, charge and signed savings', async () => {
    const usage = async (groupBy: 'day' | 'model' | 'provider' | 'key', fromDay = '', toDay = '') =>
      (await books.usage({ ...everything, accountId: 'u', fromDay, toDay, groupBy })).rows.map((row) => [row.group, row.requests, row.promptTokens, row.completionTokens, row.costNanoUsd, row.chargeNanoUsd, row.savingsNanoUsd]);
    expect(await usage('day')).toEqual([['2026-01-03', 2n, 10n, 5n, 20n, 20n, 7n], ['2026-01-02', 2n, 20n, 12n, 44n, 24n, -2n], ['2026-01-01', 1n, 10n, 5n, 20n, 20n, 7n]]);
    expect(await usage('model')).toEqual([['m/one', 4n, 30n, 15n, 60n, 40n, 21n], ['m/two', 1n, 10n, 7n, 24n, 24n, -9n]]);
    expect(await usage('provider')).toEqual([['p', 4n, 30n, 17n, 64n, 64n, 5n], ['q', 1n, 10n, 5n, 20n, 0n, 7n]]);
    expect((await usage('key')).map(([group]) => group)).toEqual(['key_1', 'key_2']);
    expect((await usage('day', '2026-01-02', '2026-01-02')).map(([group]) => group)).toEqual(['2026-01-02']);
  });

  test('returns durations by each group and for one model or provider: of answers only, and across batches and days', async () => {
    const latency = async (query: Partial<Parameters<BooksStore['usage']>[0]>) =>
      (await books.usage({ ...everything, accountId: 'slow', ...query })).rows.map(({ group, totalMsP50, totalMsP95, ttftMsP50, ttftMsP95 }) => [group, ...[totalMsP50, totalMsP95, ttftMsP50, ttftMsP95].map((ms) => Math.round(ms / 100))]);
    await book(...Array.from({ length: 90 }, (_, i): Told => ({ id: `s${i}`, account: 'slow', totalMs: 1_000, ttftMs: 200 })));
    await book(...Array.from({ length: 10 }, (_, i): Told => ({ id: `t${i}`, account: 'slow', totalMs: 9_000, ttftMs: 0 })), { id: 'n', account: 'slow', failed: true, totalMs: 60_000 });
    await book({ id: 'o', account: 'slow', model: 'm/two', provider: 'q', atMs: JANUARY + 25 * HOUR, totalMs: 500, ttftMs: 500 });
    // Accurate to 8 %.
    const first = ['2026-01-01', 10, 88, 2, 2];
    const second = ['2026-01-02', 5, 5, 5, 5];
    expect(await latency({})).toEqual([second, first]);
    expect(await latency({ groupBy: 'provider' })).toEqual([['p', ...first.slice(1)], ['q', ...second.slice(1)]]);
    expect(await latency({ model: 'm/one' })).toEqual([first]);
    expect(await latency({ provider: 'q' })).toEqual([second]);
    expect(await latency({ keyId: 'key_2' })).toEqual([]);
    await book({ id: 'z', account: 'fails', failed: true });
    expect(await latency({ accountId: 'fails' })).toEqual([['2026-01-01', 0, 0, 0, 0]]);
  });

  test('covers all accounts, with the most expensive first if asked for', async () => {
    await book({ id: 'w1', account: 'all_1', output: 1, atMs: JANUARY + 700 * HOUR }, { id: 'w2', account: 'all_2', output: 9, atMs: JANUARY + 700 * HOUR }, { id: 'w3', account: 'all_1', output: 2, atMs: JANUARY + 701 * HOUR }, { id: 'w4', account: 'all_0', output: 1, atMs: JANUARY + 701 * HOUR });
    const rows = async (query: Partial<Parameters<BooksStore['usage']>[0]>) =>
      (await books.usage({ ...everything, accountId: '', fromDay: '2026-01-30', toDay: '2026-01-30', groupBy: 'account', ...query })).rows.map(({ group, requests, costNanoUsd }) => [group, requests, costNanoUsd]);
    expect(await rows({})).toEqual([['all_0', 1n, 12n], ['all_1', 2n, 26n], ['all_2', 1n, 28n]]);
    expect(await rows({ dearestFirst: true })).toEqual([['all_2', 1n, 28n], ['all_1', 2n, 26n], ['all_0', 1n, 12n]]);
    expect(await rows({ dearestFirst: true, limit: 1 })).toEqual([['all_2', 1n, 28n]]);
    expect(await rows({ groupBy: 'model' })).toEqual([['m/one', 4n, 66n]]);
    expect(await rows({ accountId: 'all_1', groupBy: 'key' })).toEqual([['key_1', 2n, 26n]]);
  });

  test('pages by group', async () => {
    const page = (after: string) => books.usage({ ...everything, accountId: 'u', after, limit: 2 });
    expect(await page('')).toMatchObject({ rows: [{ group: '2026-01-03' }, { group: '2026-01-02' }], hasMore: true });
    expect(await page('2026-01-02')).toMatchObject({ rows: [{ group: '2026-01-01' }], hasMore: false });
  });

  test('lists newest first, by any filter, and only the account\'s own', async () => {
    expect(await idsOf({ accountId: 'u' })).toEqual(['u5', 'u4', 'u3', 'u2', 'u1']);
    expect(await idsOf({ accountId: 'u', model: 'm/two' })).toEqual(['u2']);
    expect(await idsOf({ accountId: 'u', provider: 'q' })).toEqual(['u3']);
    expect(await idsOf({ accountId: 'u', keyId: 'key_1', status: 'completed' })).toEqual(['u5', 'u3', 'u1']);
    expect(await idsOf({ accountId: 'u', status: 'failed' })).toEqual(['u4']);
    expect(await idsOf({ accountId: 'u', fromMs: JANUARY + 25 * HOUR, toMs: JANUARY + 50 * HOUR })).toEqual(['u3', 'u2']);
    expect(await idsOf({ accountId: 'u', model: 'm' })).toEqual([]);
    expect(await idsOf({ accountId: 'v' })).toEqual(['v1']);
    expect(await idsOf({ accountId: 'u', after: 'v1' })).toBeUndefined();
  });

  test('pages without losing or repeating one, filtered or not', async () => {
    for (const filter of [{}, { keyId: 'key_1' }, { model: 'm/one' }]) {
      const whole = await idsOf({ accountId: 'u', ...filter });
      const paged: string[] = [];
      for (;;) {
        const page = await books.requests({ ...list, ...filter, accountId: 'u', limit: 1, after: paged.at(-1) ?? '' });
        paged.push(...(page?.requests.map(({ id }) => id) ?? []));
        if (page?.hasMore !== true) break;
      }
      expect(paged).toEqual(whole);
    }
  });

  test('a request lists its attempts, of which only the delivered one is charged', async () => {
    expect(await books.request('u', 'u5')).toMatchObject({
      id: 'u5', chargeNanoUsd: 20n, period: '2026-01',
      attempts: [{ attempt: 1, provider: 'q', charged: false, failure: 'PROVIDER_ERROR', httpStatus: 500, costNanoUsd: 0n }, { attempt: 2, charged: true, costNanoUsd: 20n, savingsNanoUsd: 7n, decisionId: 'dec_1', tokens: { inputUncached: 10, outputText: 5 } }],
    });
    expect(await books.request('u', 'u3')).toMatchObject({ chargeNanoUsd: 0n, attempts: [{ byok: true, costNanoUsd: 20n }] });
    expect(await books.request('v', 'u5')).toBeUndefined();
    // An operator needs only the id, and is told the account.
    expect(await books.request('', 'u5')).toEqual(await books.request('u', 'u5'));
    expect(await books.request('', 'u5')).toMatchObject({ accountId: 'u', attempts: [{ attempt: 1 }, { attempt: 2 }] });
    expect(await books.request('', 'nobody')).toBeUndefined();
  });
});

describe('closing', () => {
  const bill = (period: string) => keeper.bill('c', period, clock.nowMs());
  const report = (openSinceMs = 0) => store.register('w', '', BigInt(nextSeq - 1), clock.nowMs(), openSinceMs);

  test('waits for the end of the period, every writer, open holds and dead events', async () => {
    accounts = new Map([['c', team], ['idle', team], ['later', { ...team, createdAtMs: FEBRUARY }]]);
    await book({ id: 'c1', account: 'c', concluded: true }, { id: 'c2', account: 'c', model: 'm/two' });
    const waiting = async () => (await keeper.closePeriods(clock.nowMs())).waiting.filter(({ period }) => period === '2026-01').map(({ reason }) => reason);
    expect(await waiting()).toEqual([]);
    await clock.advanceAsync(HOUR - GRACE_MS);
    await report();
    await clock.advanceAsync(2 * GRACE_MS);
    expect(await waiting()).toEqual(['writer_silent']);
    await store.register('w', '', BigInt(nextSeq + 3), clock.nowMs(), 0);
    expect(await waiting()).toEqual(['writer_behind']);
    nextSeq += 4;
    expect(await consume([message({ writer: 'w', firstSeq: String(nextSeq - 4), lastSeq: String(nextSeq - 1) })])).toEqual(['done']);
    await report(FEBRUARY - 1);
    expect(await waiting()).toEqual(['reservation_open']);
    await report();
    await consume([{ subject: 'usage.v1.0', payload: Uint8Array.of(255, 255), deliveries: 5 }]);
    expect(await waiting()).toEqual(['dead_events']);
    const [dead] = await books.deadEvents(0n, 10);
    expect(dead).toMatchObject({ reason: 'undecodable', resolved: false, payloadBytes: 2 });
    expect(await books.resolveDeadEvent(dead?.id ?? 0n, 'looked at', clock.nowMs())).toBe(true);
    expect(await keeper.closePeriods(clock.nowMs())).toEqual({ closed: ['2026-01'], waiting: [] });
    expect(await keeper.closePeriods(clock.nowMs())).toEqual({ closed: [], waiting: [] });
  });

  test('freezes the terms, so that later changes do not affect the bill', async () => {
    const before = await bill('2026-01');
    expect(before).toMatchObject({ terms: { tier: 'team' }, statement: { subscriptionNanoUsd: 99_000_000_000n, modelSpendNanoUsd: 40n, usedTokens: 30n, totalNanoUsd: 99_000_000_040n } });
    expect(before?.closedAtMs).toBeGreaterThan(0);
    accounts.set('c', { ...team, terms: { ...team.terms, tier: 'business', subscriptionNanoUsd: 499_000_000_000n } });
    expect(await bill('2026-01')).toEqual(before);
    expect(await keeper.bill('idle', '2026-01', clock.nowMs())).toMatchObject({ statement: { totalNanoUsd: 99_000_000_000n } });
    expect(await keeper.bill('later', '2026-01', clock.nowMs())).toBeUndefined();
    expect(await keeper.bill('nobody', '2026-02', clock.nowMs())).toBeUndefined();
    expect(await bill('2026-03')).toBeUndefined();
    expect(await bill('x')).toBeUndefined();
  });

  test('late facts are booked to the open period, with their request, and change no row of the closed one', async () => {
    const before = await bill('2026-01');
    // A retry that superseded c1 arrives, and a request that was unknown.
    await consume([message({ writer: 'late', firstSeq: '1', lastSeq: '3', ended: [ended({ id: 'c1', account: 'c', attempt: 2, retryOf: [1], failed: true }), ended({ id: 'c9', account: 'c', output: 6 })], outcomes: [outcome({ id: 'c9', account: 'c' })] })]);
    expect(await bill('2026-01')).toEqual(before);
    expect(await bill('2026-02')).toMatchObject({
      closedAtMs: 0,
      statement: { modelSpendNanoUsd: 22n, adjustmentsNanoUsd: -20n, usedTokens: 1n },
    });
    const lines = (await bill('2026-02'))?.statement.lines.filter(({ kind }) => kind === 'adjustment');
    expect(lines).toMatchObject([{ requestId: 'c1', amountNanoUsd: -20n, description: 'Correction of a charge of 2026-01' }]);
    const rows = await store.ledger({ accountId: 'c', fromMs: 0n, toMs: 0n, after: 4n, limit: 10 });
    expect(rows.map(({ kind, requestId, period, flags }) => [kind, requestId, period, flags])).toEqual([
      ['attempt', 'c1', '2026-02', ['late']], ['adjustment', 'c1', '2026-02', ['late']], ['attempt', 'c9', '2026-02', ['late']], ['charge', 'c9', '2026-02', []],
    ]);
    expect(await violations()).toEqual([]);
  });

  test('a closed period cannot be changed, nor closed again with other terms', async () => {
    expect(await books.close({ id: '2026-01', startMs: JANUARY, endMs: FEBRUARY }, new Map([['c', team.terms]]), clock.nowMs())).toBe('was_closed');
    await expect(sql`update closed_terms set terms = '{}'`.execute(database.db)).rejects.toThrow(/append-only/);
    await expect(sql`delete from closed_periods`.execute(database.db)).rejects.toThrow(/append-only/);
  });

  test('terms of a great many accounts are written in parts, before the period is locked to close it', async () => {
    const own = openDatabase<unknown>({ url: new Secret(await testPostgresUrl()), poolMax: 2, log: silentLog, statementTimeoutMs: 20_000, schema: 'billing', pipelined: true });
    await migrate(own.db, migrations, { schema: 'billing' });
    const statements: string[] = [];
    const transactPrepared: typeof own.transactPrepared = (work) => own.transactPrepared((run, conclude) => work((statement, values) => (statements.push(statement.name), run(statement, values)), conclude));
    const many = createPostgresBooks({ db: own.db, transactPrepared }, { graceMs: 0 });
    const terms = new Map(Array.from({ length: 1_201 }, (_, index) => [`acct_${index}`, team.terms]));
    await many.writeTerms('2026-01', terms);
    expect(statements.filter((name) => name === 'billing_add_terms')).toHaveLength(3);
    statements.length = 0;
    // One more account, which was made before the end and is known only now.
    expect(await many.close({ id: '2026-01', startMs: JANUARY, endMs: FEBRUARY }, new Map([...terms, ['acct_new', team.terms]]), FEBRUARY)).toBe('closed');
    expect(statements.filter((name) => name === 'billing_add_terms')).toHaveLength(1);
    expect((await sql`select from closed_terms where period = '2026-01'`.execute(own.db)).rows).toHaveLength(1_202);
    await own.close();
  });

  test('a ledger that was restored to a time before a close takes what comes again into its period, without a restart, and closes another under the same id', async () => {
    const own = openDatabase<unknown>({ url: new Secret(await testPostgresUrl()), poolMax: 2, log: silentLog, statementTimeoutMs: 20_000, schema: 'billing', pipelined: true });
    await migrate(own.db, migrations, { schema: 'billing' });
    const running = createPostgresLedger(own);
    const restored = createPostgresBooks(own, { graceMs: 0 });
    const take = createConsumer({ store: running, clock, log: silentLog, metrics: createBillingMetrics(false), announce: () => undefined });
    const periodOf = async (id: string, seq: number, month: string): Promise<unknown> => {
      expect(await take([message({ writer: `w-${id}`, firstSeq: String(seq), lastSeq: String(seq + 1), ended: [ended({ id, account: 'z', month })], outcomes: [outcome({ id, account: 'z' })] })])).toEqual(['done']);
      return (await running.ledger({ accountId: 'z', fromMs: 0n, toMs: 0n, after: 0n, limit: 100 })).filter(({ requestId, kind }) => requestId === id && kind === 'charge').map(({ period }) => period);
    };
    const close = (id: string, startMs: number, endMs: number) => restored.close({ id, startMs, endMs }, new Map(), Date.UTC(2026, 6, 1));
    expect(await close('2026-01', JANUARY, FEBRUARY)).toBe('closed');
    expect(await periodOf('z1', 1, '2026-01')).toEqual(['2026-02']);
    const goBack = ['alter table closed_periods disable trigger all', 'delete from closed_periods', 'alter table closed_periods enable trigger all', 'alter table closed_periods alter column id restart with 1'];
    for (const statement of goBack) await sql.raw(statement).execute(own.db);
    expect(await periodOf('z2', 1, '2026-01')).toEqual(['2026-01']);
    expect(await close('2025-12', JANUARY - 1, JANUARY)).toBe('closed');
    expect(await periodOf('z3', 1, '2025-12')).toEqual(['2026-02']);
    for (const statement of goBack) await sql.raw(statement).execute(own.db);
    expect(await close('2026-01', JANUARY, FEBRUARY)).toBe('closed');
    expect(await periodOf('z4', 1, '2026-01')).toEqual(['2026-02']);
    expect(await periodOf('z5', 1, '2025-12')).toEqual(['2025-12']);
    await own.close();
  });
});

describe('comparing', () => {
  const provider = async (subject: string) => (await books.reconcile(clock.nowMs())).filter((row) => row.kind === 'provider' && row.subject === subject).map(({ day, oursNanoUsd, theirsNanoUsd, status }) => [day, oursNanoUsd, theirsNanoUsd, status]);
  const day = '2026-02-01';

  test('our attempts with the provider’s figures, day by day; accounts’ own keys are not on our bill', async () => {
    await book({ id: 'd1', account: 'd', provider: 'bill', atMs: FEBRUARY, month: '2026-02' }, { id: 'd2', account: 'd', provider: 'bill', atMs: FEBRUARY, month: '2026-02', byok: true });
    expect(await provider('bill')).toEqual([[day, 20n, 0n, 'unreported']]);
    expect(unreconciledOf(await books.reconcile(clock.nowMs()))).toBe(0n);
    await books.importProviderUsage('bill', [{ day, costNanoUsd: 26n, tokens: 15n }], clock.nowMs());
    expect(await provider('bill')).toEqual([[day, 20n, 26n, 'differs']]);
    clock.advance(1);
    expect(unreconciledOf(await books.reconcile(clock.nowMs()))).toBe(6n);
    // Every replica can return the latest result.
    expect(unreconciledOf(await books.lastReconciled())).toBe(6n);
    expect((await books.verify('')).find(({ invariant }) => invariant === 'I1')).toMatchObject({ violations: 1n, examples: [`bill ${day}`] });
    // Importing a day again replaces the earlier figure.
    await books.importProviderUsage('bill', [{ day, costNanoUsd: 20n, tokens: 15n }], clock.nowMs());
    expect(await provider('bill')).toEqual([[day, 20n, 20n, 'matched']]);
    expect((await books.verify('')).find(({ invariant }) => invariant === 'I1')).toMatchObject({ violations: 0n });
  });

  test('a later correction adjusts our cost but not the charge, once, and never below 0', async () => {
    const change = { requestId: 'd1', attempt: 1, costNanoUsd: 5n, reason: 'invoice' };
    const charge = async () => (await books.request('d', 'd1'))?.chargeNanoUsd;
    expect(await books.adjustCost(change, '2026-02', clock.nowMs())).toMatchObject({ amountNanoUsd: -15n });
    expect(await books.adjustCost(change, '2026-02', clock.nowMs())).toEqual({ seq: 0n, amountNanoUsd: 0n });
    expect(await books.adjustCost({ ...change, costNanoUsd: 0n }, '2026-02', clock.nowMs())).toMatchObject({ amountNanoUsd: -5n });
    await expect(books.adjustCost({ ...change, costNanoUsd: -1n }, '2026-02', clock.nowMs())).rejects.toThrow(/below 0/);
    expect(await books.adjustCost({ ...change, attempt: 2 }, '2026-02', clock.nowMs())).toBeUndefined();
    expect(await charge()).toBe(20n);
    expect(await provider('bill')).toEqual([[day, 0n, 20n, 'differs']]);
    const last = (await store.ledger({ accountId: 'd', fromMs: 0n, toMs: 0n, after: 0n, limit: 100 })).at(-1);
    expect(last).toMatchObject({ kind: 'adjustment', appliesTo: 'cost', requestId: 'd1', amountNanoUsd: -5n, charged: false });
    // Later facts are booked independently of it.
    await book({ id: 'd3', account: 'd', provider: 'bill', atMs: FEBRUARY, month: '2026-02' });
    expect(await violations()).toEqual([]);
  });

  test('the cost that a provider reports is our cost from the start, beside the charge at the price card', async () => {
    const told = { account: 'took', provider: 'taker', atMs: FEBRUARY, month: '2026-02' };
    await book(
      { id: 'took1', ...told, took: 33 }, { id: 'took2', ...told, took: 20 }, { id: 'took3', ...told, took: 0 }, { id: 'took4', ...told },
      { id: 'took5', ...told, took: 25, fee: 1_000 }, { id: 'took6', ...told, took: 9_999, byok: true }, { id: 'took7', ...told, failed: true, took: 4 },
    );
    await books.importProviderUsage('taker', [{ day, costNanoUsd: 33n + 20n + 0n + 20n + 25n + 4n, tokens: 75n }], clock.nowMs());
    expect(await provider('taker')).toEqual([[day, 102n, 102n, 'matched']]);
    const rows = (await store.ledger({ accountId: 'took', fromMs: 0n, toMs: 0n, after: 0n, limit: 100 })).filter(({ kind }) => kind === 'adjustment');
    expect(rows.map(({ requestId, attempt, amountNanoUsd, appliesTo, charged, period }) => [requestId, attempt, amountNanoUsd, appliesTo, charged, period])).toEqual(
      [['took1', 13n], ['took3', -20n], ['took5', 5n], ['took7', 4n]].map(([id, amount]) => [id, 1, amount, 'cost', false, '2026-02']),
    );
    expect(await Promise.all(['took1', 'took3', 'took5', 'took7'].map(async (id) => { const found = await books.request('took', id); return [found?.chargeNanoUsd, found?.adjustments]; }))).toEqual([[20n, []], [20n, []], [1_020n, []], [0n, []]]);
    // An invoice may correct it again.
    expect(await books.adjustCost({ requestId: 'took1', attempt: 1, costNanoUsd: 30n, reason: 'invoice' }, '2026-02', clock.nowMs())).toMatchObject({ amountNanoUsd: -3n });
    await sql`delete from attempt_days where account_id = 'took'`.execute(database.db);
    expect(await books.recount('took', false)).toMatchObject([{ attemptDays: 1, brokenInvariants: [] }]);
    expect(await violations('took')).toEqual([]);
    await books.importProviderUsage('taker', [{ day, costNanoUsd: 99n, tokens: 75n }], clock.nowMs());
    expect(await provider('taker')).toEqual([[day, 99n, 99n, 'matched']]);
  });

  test('lists writers that are behind', async () => {
    await store.register('behind', 'p', 4n, clock.nowMs());
    expect((await books.reconcile(clock.nowMs())).filter(({ kind }) => kind === 'writer')).toMatchObject([{ subject: 'behind', gaps: 4n, status: 'unbooked' }]);
    expect(await violations()).toEqual(['I6']);
  });
});

describe('fees of plugins', () => {
  const day = '2026-02-01';
  const told = { account: 'fees', provider: 'talker', atMs: FEBRUARY, month: '2026-02' };
  beforeAll(async () => {
    accounts.set('fees', { ...team, terms: { ...team.terms, subscriptionNanoUsd: null, includedTokens: null } });
    await book(
      { id: 'fee1', ...told, fee: 1_000 }, { id: 'fee2', ...told, fee: 500, bought: 300 }, { id: 'fee3', ...told },
      { id: 'fee4', ...told, fee: 1_000, byok: true }, { id: 'fee5', ...told, fee: 1_000, failed: true },
    );
  });

  test('are separate lines on a bill', async () => {
    const statement = (await keeper.bill('fees', '2026-02', clock.nowMs()))?.statement;
    expect(statement).toMatchObject({ modelSpendNanoUsd: 60n, pluginsNanoUsd: 1_500n, adjustmentsNanoUsd: 0n, totalNanoUsd: 1_560n });
    expect(statement?.lines.filter(({ kind }) => kind === 'plugin')).toMatchObject([{ description: 'Plugins with m/one', model: 'm/one', provider: 'talker', amountNanoUsd: 1_500n }]);
    // They are also separate in the list of bills.
    expect(await books.periods('fees')).toEqual([{ period: '2026-02', modelSpendNanoUsd: 60n, chargeNanoUsd: 1_560n, closedAtMs: 0 }]);
  });

  test('are on no provider’s bill, but what tools bought is on the bill of the provider they bought it from', async () => {
    await books.importProviderUsage('talker', [{ day, costNanoUsd: 65n, tokens: 45n }], clock.nowMs());
    await books.importProviderUsage('painter', [{ day, costNanoUsd: 300n, tokens: 0n }], clock.nowMs());
    // An invoice does not contain fees either.
    expect(await books.adjustCost({ requestId: 'fee1', attempt: 1, costNanoUsd: 25n, reason: 'invoice' }, '2026-02', clock.nowMs())).toMatchObject({ amountNanoUsd: 5n });
    const found = (await books.reconcile(clock.nowMs())).filter(({ subject }) => subject === 'talker' || subject === 'painter');
    expect(found.map(({ subject, oursNanoUsd, theirsNanoUsd, status }) => [subject, oursNanoUsd, theirsNanoUsd, status])).toEqual([['painter', 300n, 300n, 'matched'], ['talker', 65n, 65n, 'matched']]);
    expect(await violations('fees')).toEqual([]);
  });
});

test('a bill with more corrections than lines still includes all of them', async () => {
  accounts.set('corrected', team);
  await sql`insert into ledger_entries (account_id, seq, at_ms, kind, request_id, attempt, amount_nano_usd, tokens, byok_tokens, source, provider, period, card_id, key_id, applies_to, flags, detail, hash)
    select 'corrected', n, ${FEBRUARY}::bigint, 'adjustment', 'corrected-' || n, 1, -3, 0, 0, 'provider', 'p', '2026-02', 'c', 'k', 'charge', '{}', '{}', 'h' from generate_series(1, 10002) n`.execute(database.db);
  await sql`insert into usage_days (account_id, day, period, provider, key_id, model, requests, tokens, byok_tokens, prompt_tokens, completion_tokens, cost_nano_usd, charge_nano_usd, adjusted_nano_usd, savings_nano_usd)
    values ('corrected', '2026-02-01', '2026-02', 'p', 'k', 'm', 10002, 0, 0, 0, 0, 100000, 100000, -30006, 0)`.execute(database.db);
  const statement = (await keeper.bill('corrected', '2026-02', clock.nowMs()))?.statement;
  expect(statement).toMatchObject({ adjustmentsNanoUsd: -30_006n, totalNanoUsd: 99_000_069_994n });
  expect(statement?.lines.filter(({ kind }) => kind === 'adjustment').slice(-2)).toMatchObject([{ requestId: 'corrected-10000', amountNanoUsd: -3n }, { requestId: '', amountNanoUsd: -6n, description: 'Further corrections of charges' }]);
});

test('lists, requests and sums are read by an index, however long the ledger is', async () => {
  await sql`insert into ledger_entries (account_id, seq, at_ms, kind, request_id, attempt, amount_nano_usd, tokens, byok_tokens, source, provider, period, card_id, key_id, applies_to, flags, detail, hash, charge_hash)
    select 'big', n * 2, ${JANUARY}::bigint + n * 1000, 'attempt', 'big-' || n, 1, 20, 15, 0, 'provider', 'p', '2026-01', 'c', 'k', '', '{}', '{"model":"m"}', 'h', 'h' from generate_series(1, 20000) n`.execute(database.db);
  await sql`analyze ledger_entries`.execute(database.db);
  const planOf = async (query: ReturnType<typeof sql>): Promise<string> => (await sql<{ 'QUERY PLAN': string }>`explain ${query}`.execute(database.db)).rows.map((row) => row['QUERY PLAN']).join('\n');
  const newest = await planOf(sql`select e.request_id from ledger_entries e where e.account_id = 'big' and (e.kind = 'charge' or e.charge_hash is not null) and e.at_ms >= 0 and e.at_ms < 9999999999999 order by e.at_ms desc, e.seq desc limit 21`);
  const failed = await planOf(sql`select e.request_id from ledger_entries e where e.account_id = 'big' and (e.kind = 'charge' or e.charge_hash is not null) and e.kind = 'charge' and e.detail like '{"charged":[]%' order by e.at_ms desc, e.seq desc limit 21`);
  expect([newest, failed].filter((plan) => plan.includes('Seq Scan') || plan.includes('Sort'))).toEqual([]);
  expect(newest).toContain('ledger_requests_by_time');
});
