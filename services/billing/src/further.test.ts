import { afterAll, beforeAll, expect, test } from '@jest/globals';
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
import { createConsumer } from './consumer.js';
import { createBookkeeper } from './domain/bookkeeper.js';
import { Hearing } from './domain/hearing.js';
import { createBillingMetrics } from './metrics.js';

const codec = messageCodec<UsageRecorded, UsageRecorded__Output>('signalbox.events.v1.UsageRecorded');
const JANUARY = Date.UTC(2026, 0, 1);
const clock = createFakeClock(JANUARY + 3_600_000);
const FEE = 4n;
const card = { id: 'card_1', inputUncached: '1000000', outputText: '2000000' };
let database: Database<unknown>;

beforeAll(async () => {
  database = openDatabase<unknown>({ url: new Secret(await testPostgresUrl()), poolMax: 4, log: silentLog, statementTimeoutMs: 20_000, schema: 'billing', pipelined: true });
  await migrate(database.db, migrations, { schema: 'billing' });
}, 60_000);
afterAll(async () => {
  await database.close();
  await stopTestStores();
}, 30_000);

test('rounds that ran at two replicas are spend on the bill and in reports, whichever log comes first; only what takes a charge back is a correction', async () => {
  const books = createPostgresBooks(database, { graceMs: 0 });
  const consume = createConsumer({ store: createPostgresLedger(database), clock, log: silentLog, metrics: createBillingMetrics(false), announce: () => undefined });
  const terms = { createdAtMs: JANUARY, terms: { ...tierTerms('A', 'team'), tier: 'team', variant: 'A', hardCap: false } };
  const keeper = createBookkeeper({ store: books, accounts: { termsOf: () => Promise.resolve(terms), all: () => Promise.resolve(new Map([['a', terms]])) }, periodSeconds: undefined, hearing: new Hearing(clock), graceMs: 0 });
  /** Books one attempt and its outcome by a writer of its own, as logs of different replicas are. The second round has a fee. */
  const book = async (requestId: string, attempt: number, more: { readonly retryOf?: number[]; readonly byok?: boolean; readonly toldByEdge?: boolean } = {}): Promise<void> => {
    const { retryOf = [], byok = false, toldByEdge = true } = more;
    const feeNanoUsd = attempt === 2 && !byok ? FEE : 0n;
    const ended = {
      requestId, attempt, accountId: 'a', keyId: 'key_1', retryOf, byok, provider: 'p', model: 'm', source: 'PROVIDER' as const, status: 200, periods: { day: '2026-01-01', week: '2026-W01', month: '2026-01', plan: '2026-01' },
      card: feeNanoUsd === 0n ? card : { ...card, id: cardIdWith(card.id, { feeNanoUsd, bought: [] }), requestNanoUsd: String(feeNanoUsd) }, tokens: { inputUncached: 10, outputText: 5 }, costNanoUsd: String(20n + feeNanoUsd), endedAtMs: String(JANUARY + attempt), ttftMs: 1, totalMs: 2,
    };
    const payload = codec.encode({ writer: `${requestId} ${attempt}`, firstSeq: '1', lastSeq: '2', ended: [ended], outcomes: [{ requestId, attempt, accountId: 'a', outcome: 'DELIVERED', toldByEdge, followed: attempt === 1 && toldByEdge }] });
    expect(await consume([{ subject: 'usage.v1.0', payload, deliveries: 1 }])).toEqual(['done']);
  };
  const bill = async () => (await keeper.bill('a', '2026-01', clock.nowMs()))?.statement;

  await book('r1', 1);
  await book('r1', 2);
  await book('r2', 2);
  await book('r2', 1);
  await book('own', 1, { byok: true });
  await book('own', 2, { byok: true });
  const { lines = [], ...sums } = (await bill()) ?? {};
  expect(sums).toMatchObject({ modelSpendNanoUsd: 80n, pluginsNanoUsd: 2n * FEE, adjustmentsNanoUsd: 0n, usedTokens: 90n });
  expect(lines.filter(({ kind }) => kind !== 'subscription' && kind !== 'included' && kind !== 'overage').map(({ kind, requests, amountNanoUsd }) => [kind, requests, amountNanoUsd])).toEqual([['model_spend', 3n, 80n], ['plugin', 0n, 2n * FEE]]);
  expect(await books.request('a', 'r1')).toMatchObject({ chargeNanoUsd: 40n + FEE, adjustments: [], attempts: [{ charged: true }, { charged: true }] });
  expect(await books.periods('a')).toMatchObject([{ chargeNanoUsd: 80n + 2n * FEE, modelSpendNanoUsd: 80n }]);

  await book('r3', 1, { toldByEdge: false });
  await book('r3', 2, { retryOf: [1] });
  expect((await bill())?.lines.filter(({ kind }) => kind === 'adjustment')).toMatchObject([{ requestId: 'r3', amountNanoUsd: FEE }]);
  expect((await books.request('a', 'r3'))?.adjustments).toMatchObject([{ amountNanoUsd: FEE, flags: [] }]);

  const kept = await sql<{ flags: readonly string[] }>`select flags from billing.ledger_entries where kind = 'adjustment' order by seq`.execute(database.db);
  expect(kept.rows.map(({ flags }) => flags)).toEqual([['further'], ['further'], ['further'], []]);
  expect((await books.verify('')).filter(({ violations }) => violations > 0n)).toEqual([]);
});

test('a request whose rounds ran at two providers, across midnight, is one line on the bill, one day of usage and one entry of the lists, with the same sum in each', async () => {
  const books = createPostgresBooks(database, { graceMs: 0 });
  const consume = createConsumer({ store: createPostgresLedger(database), clock, log: silentLog, metrics: createBillingMetrics(false), announce: () => undefined });
  const terms = { createdAtMs: JANUARY, terms: { ...tierTerms('A', 'team'), tier: 'team', variant: 'A', hardCap: false } };
  const keeper = createBookkeeper({ store: books, accounts: { termsOf: () => Promise.resolve(terms), all: () => Promise.resolve(new Map([['b', terms]])) }, periodSeconds: undefined, hearing: new Hearing(clock), graceMs: 0 });
  const midnight = JANUARY + 86_400_000;
  const book = async (requestId: string, attempt: 1 | 2): Promise<void> => {
    const place = attempt === 1 ? { provider: 'p1', model: 'm1', endedAtMs: String(midnight - 2_000) } : { provider: 'p2', model: 'm2', endedAtMs: String(midnight + 2_000) };
    const ended = {
      ...place, requestId, attempt, accountId: 'b', keyId: 'key_2', source: 'PROVIDER' as const, status: 200, periods: { day: '2026-01-01', week: '2026-W01', month: '2026-01', plan: '2026-01' },
      card, tokens: { inputUncached: 10 * attempt, outputText: 5 }, costNanoUsd: String(10 + 10 * attempt), ttftMs: 1, totalMs: 2,
    };
    const payload = codec.encode({ writer: `${requestId} ${attempt}`, firstSeq: '1', lastSeq: '2', ended: [ended], outcomes: [{ requestId, attempt, accountId: 'b', outcome: 'DELIVERED', toldByEdge: true, followed: attempt === 1 }] });
    expect(await consume([{ subject: 'usage.v1.0', payload, deliveries: 1 }])).toEqual(['done']);
  };
  await book('first first', 1);
  await book('first first', 2);
  await book('last first', 2);
  await book('last first', 1);

  const lines = (await keeper.bill('b', '2026-01', clock.nowMs()))?.statement.lines.filter(({ kind }) => kind === 'model_spend' || kind === 'adjustment');
  expect(lines?.map(({ kind, model, provider, requests, tokens, amountNanoUsd }) => [kind, model, provider, requests, tokens, amountNanoUsd])).toEqual([['model_spend', 'm1', 'p1', 1n, 40n, 50n], ['model_spend', 'm2', 'p2', 1n, 40n, 50n]]);
  const query = { accountId: 'b', model: '', provider: '', keyId: '', after: '', limit: 20 };
  for (const groupBy of ['day', 'model', 'provider'] as const) {
    const { rows } = await books.usage({ ...query, fromDay: '', toDay: '', groupBy, dearestFirst: false });
    expect([groupBy, rows.map(({ requests, chargeNanoUsd, costNanoUsd }) => [requests, chargeNanoUsd, costNanoUsd])]).toEqual([groupBy, [[1n, 50n, 50n], [1n, 50n, 50n]]]);
    for (const { group, chargeNanoUsd } of rows) {
      const span = groupBy === 'day' ? { fromMs: Date.parse(group), toMs: Date.parse(group) + 86_400_000 } : { fromMs: 0, toMs: 0, [groupBy]: group };
      const listed = (await books.requests({ ...query, ...span, status: '' }))?.requests ?? [];
      expect([group, listed.map((request) => request.chargeNanoUsd)]).toEqual([group, [chargeNanoUsd]]);
    }
  }
  // It stays where it was booked first; the end of each round is told with the round.
  const listed = await books.requests({ ...query, fromMs: 0, toMs: 0, status: '' });
  expect(listed?.requests.map(({ id, atMs, attempts }) => [id, atMs - midnight, attempts.map(({ endedAtMs }) => endedAtMs - midnight)])).toEqual([['last first', 2_000, [-2_000, 2_000]], ['first first', -2_000, [-2_000, 2_000]]]);
  expect((await books.verify('b')).filter(({ violations }) => violations > 0n)).toEqual([]);
  expect(await books.recount('b', true)).toEqual([]);
});
