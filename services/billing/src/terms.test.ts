import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { tierTerms, type Tier } from '@signalbox/kernel/tiers';
import type { BillingTerms } from '@signalbox/ledger-core/statement';
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
import { createBookkeeper, type AccountTerms, type Bookkeeper } from './domain/bookkeeper.js';
import type { BooksStore } from './domain/books.js';
import { Hearing } from './domain/hearing.js';
import type { LedgerStore } from './domain/ports.js';

const GRACE_MS = 30_000;
const MONTHS = [10, 11, 12, 13].map((month) => Date.UTC(2026, month - 1, 1)) as [number, number, number, number];
const [OCTOBER, NOVEMBER, DECEMBER, JANUARY] = MONTHS;
const terms = (tier: Tier): BillingTerms => ({ ...tierTerms('A', tier), tier, variant: 'A', hardCap: false });
const account = (tier: Tier, createdAtMs = OCTOBER): AccountTerms => ({ createdAtMs, terms: terms(tier) });
let database: Database<unknown>;
let store: LedgerStore;
let books: BooksStore;
let accounts = new Map<string, AccountTerms>();
const keeperOf = (own: Partial<BooksStore> = {}, hearing = new Hearing(createFakeClock())): Bookkeeper => createBookkeeper({ store: { ...books, ...own }, accounts: { termsOf: (id) => Promise.resolve(accounts.get(id)), all: () => Promise.resolve(accounts) }, periodSeconds: undefined, hearing, graceMs: GRACE_MS });
const tierOf = async (id: string, period: string, nowMs: number): Promise<string | undefined> => (await keeperOf().bill(id, period, nowMs))?.terms.tier;

beforeAll(async () => {
  database = openDatabase<unknown>({ url: new Secret(await testPostgresUrl()), poolMax: 6, log: silentLog, statementTimeoutMs: 20_000, schema: 'billing', pipelined: true });
  await migrate(database.db, migrations, { schema: 'billing' });
  store = createPostgresLedger(database);
  books = createPostgresBooks(database, { graceMs: GRACE_MS });
}, 60_000);
afterAll(async () => {
  await database.close();
  await stopTestStores();
}, 30_000);

test('the terms are those at the end of the period, however long its close waits', async () => {
  accounts = new Map([['up', account('free')], ['down', account('team')], ['later', account('team', NOVEMBER)]]);
  await store.register('w', '', 0n, NOVEMBER - 1, 0);
  expect(await keeperOf().closePeriods(NOVEMBER)).toMatchObject({ closed: [], waiting: [{ period: '2026-10', reason: 'not_over' }, { reason: 'writer_silent', writer: 'w' }] });
  accounts.set('up', account('team')).set('down', account('free')).set('unseen', account('business'));
  const open = NOVEMBER + GRACE_MS;
  expect([await tierOf('up', '2026-10', open), await tierOf('down', '2026-10', open), await tierOf('later', '2026-10', open)]).toEqual(['free', 'team', undefined]);
  expect(await keeperOf().closePeriods(open)).toMatchObject({ closed: [], waiting: [{ reason: 'writer_silent' }] });
  const days = NOVEMBER + 3 * 86_400_000;
  await store.register('w', '', 0n, days, 0);
  expect(await keeperOf().closePeriods(days)).toEqual({ closed: ['2026-10'], waiting: [] });
  const total = async (id: string): Promise<bigint | undefined> => (await keeperOf().bill(id, '2026-10', days))?.statement.totalNanoUsd;
  // An account that existed at the end but was not in the list yet gets the terms of the time of the close.
  expect([await total('up'), await total('down'), await total('unseen'), await total('later')]).toEqual([0n, 99_000_000_000n, 499_000_000_000n, undefined]);
  expect(await tierOf('up', '2026-11', days)).toBe('team');
});

test('if replicas write terms at once, the first one writes each account once, and nothing is added to a closed period', async () => {
  const ids = Array.from({ length: 200 }, (_, i) => `many-${i}`);
  const tiers: readonly Tier[] = ['free', 'team', 'business', 'enterprise'];
  await Promise.all(tiers.map((tier, i) => books.writeTerms('2026-11', new Map((i % 2 === 0 ? ids : [...ids].reverse()).map((id) => [id, terms(tier)])))));
  accounts = new Map(ids.map((id) => [id, account('pro', NOVEMBER)]));
  const tiersOf = async (): Promise<ReadonlySet<string | undefined>> => {
    const found = new Set<string | undefined>();
    // Two hundred at once would wait for the few connections for longer than a busy machine is given.
    for (let at = 0; at < ids.length; at += 4) for (const tier of await Promise.all(ids.slice(at, at + 4).map((id) => tierOf(id, '2026-11', DECEMBER)))) found.add(tier);
    return found;
  };
  const written = await tiersOf();
  expect([written.size, written.has('pro')]).toEqual([1, false]);
  await store.register('w', '', 0n, DECEMBER + GRACE_MS, 0);
  expect((await Promise.all([keeperOf(), keeperOf()].map((keeper) => keeper.closePeriods(DECEMBER + GRACE_MS)))).flatMap(({ closed }) => closed)).toEqual(['2026-11']);
  expect(await tiersOf()).toEqual(written);
  await books.writeTerms('2026-11', new Map([['straggler', terms('team')]]));
  accounts.set('straggler', account('team', NOVEMBER));
  expect(await tierOf('straggler', '2026-11', JANUARY)).toBeUndefined();
});

test('a blocker that appears while a period is being closed is returned, so that the close is retried', async () => {
  await store.register('w', '', 5n, JANUARY + GRACE_MS, 0);
  const hasty = keeperOf({ writerReports: () => Promise.resolve([]) });
  expect(await hasty.closePeriods(JANUARY + GRACE_MS)).toEqual({ closed: [], waiting: [{ period: '2026-12', reason: 'writer_behind', writer: 'w' }] });
});

test('if the clock is set ahead past the end of a period, the period closes and takes its terms a quarter of an hour later, and not if the clock is corrected before', async () => {
  const clock = createFakeClock(JANUARY - 1_200_000);
  const written: string[] = [];
  const hearing = new Hearing(clock);
  const keeper = keeperOf({ writeTerms: (period, found) => books.writeTerms(period, found).then(() => void written.push(period)) }, hearing);
  const report = async (): Promise<void> => {
    hearing.until(clock.nowMs());
    await store.register('w', '', 0n, clock.nowMs(), 0);
  };
  await sql`update writers set last_seq = ledger_seq`.execute(database.db);
  await report();
  expect(await keeper.closePeriods(clock.nowMs())).toEqual({ closed: [], waiting: [] });
  const notOver = { period: '2026-12', reason: 'not_over', writer: '' };
  clock.jumpWall(8 * 3_600_000);
  await report();
  expect((await keeper.closePeriods(clock.nowMs())).waiting).toContainEqual(notOver);
  clock.jumpWall(-8 * 3_600_000);
  await report();
  expect(await keeper.closePeriods(clock.nowMs())).toEqual({ closed: [], waiting: [] });
  clock.jumpWall(8 * 3_600_000);
  for (let minutes = 0; minutes < 15; minutes += 1) {
    await report();
    expect((await keeper.closePeriods(clock.nowMs())).waiting).toContainEqual(notOver);
    clock.advance(60_000);
  }
  expect(written).toEqual([]);
  await report();
  expect(await keeper.closePeriods(clock.nowMs())).toEqual({ closed: ['2026-12'], waiting: [] });
});
