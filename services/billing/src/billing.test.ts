import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { BusMessage } from '@signalbox/bus/bus';
import type { UsageRecorded, UsageRecorded__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import { brokenLink } from '@signalbox/ledger-core/hash-chain';
import { silentLog } from '@signalbox/runtime/log';
import { Secret } from '@signalbox/runtime/secret';
import { openDatabase, type Database } from '@signalbox/sql/database';
import { migrate } from '@signalbox/sql/migrate';
import { createFakeClock } from '@signalbox/testkit/clock';
import { stopTestStores, testPostgresUrl } from '@signalbox/testkit/stores';
import { sql } from 'kysely';
import { migrations } from './adapters/migrations.js';
import { createPostgresLedger } from './adapters/postgres-ledger.js';
import { createConsumer } from './consumer.js';
import type { LedgerStore } from './domain/ports.js';
import { createBillingMetrics } from './metrics.js';

const codec = messageCodec<UsageRecorded, UsageRecorded__Output>('signalbox.events.v1.UsageRecorded');
let database: Database<unknown>;
let store: LedgerStore;
let consume: (messages: readonly BusMessage[]) => Promise<readonly string[]>;
const announced: string[] = [];

beforeAll(async () => {
  database = openDatabase<unknown>({ url: new Secret(await testPostgresUrl()), poolMax: 4, log: silentLog, statementTimeoutMs: 5_000, schema: 'billing' });
  await migrate(database.db, migrations, { schema: 'billing' });
  store = createPostgresLedger(database.db);
  consume = createConsumer({ store, clock: createFakeClock(), log: silentLog, metrics: createBillingMetrics(false), announce: (subject) => void announced.push(subject) });
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
const told = (requestId: string, attempt: number, accountId: string, outcome: 'DELIVERED' | 'SUPERSEDED') => ({ requestId, attempt, accountId, outcome, toldByEdge: true });
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
  const totals = await store.totals('a1', 0);
  expect(totals.totals.find(({ scope, periodId }) => scope === 'account' && periodId === 'total')).toMatchObject({ chargeNanoUsd: 20n, tokens: 15n });
  expect(totals).toMatchObject({ ledgerSeq: 2n, requestIds: ['r1'] });
  expect(announced).toContain('totals.v1.a1');
});

test('brings a charge down by an adjustment when the superseding attempt arrives late, and the chain verifies', async () => {
  await consume([message({ writer: 'w2', firstSeq: '1', lastSeq: '2', ended: [ended('r2', 1, 'a2', '20')], outcomes: [told('r2', 1, 'a2', 'DELIVERED')] })]);
  await consume([message({ writer: 'w3', firstSeq: '1', lastSeq: '1', ended: [ended('r2', 2, 'a2', '20', [1])] })]);
  const rows = await ledgerOf('a2');
  expect(rows.map(({ kind, amountNanoUsd }) => [kind, amountNanoUsd])).toEqual([['attempt', 20n], ['charge', 20n], ['attempt', 20n], ['adjustment', -20n]]);
  const stored = await sql<{ tokens: bigint; byok_tokens: bigint; card_id: string; seq: bigint }>`select seq, tokens, byok_tokens, card_id from ledger_entries where account_id = 'a2' order by seq`.execute(database.db);
  const chained = rows.map((row, i) => ({ ...row, accountId: 'a2', tokens: stored.rows[i]?.tokens ?? 0n, byokTokens: stored.rows[i]?.byok_tokens ?? 0n, cardId: stored.rows[i]?.card_id ?? '' }));
  expect(brokenLink(chained)).toBeUndefined();
});

test('keeps a cost that its card does not give aside and books what stands beside it', async () => {
  const usage = { writer: 'w4', firstSeq: '1', lastSeq: '4', ended: [ended('r3', 1, 'a3', '21'), ended('r4', 1, 'a3', '20')], outcomes: [told('r4', 1, 'a3', 'DELIVERED')] };
  expect(await consume([message(usage)])).toEqual(['done']);
  expect((await ledgerOf('a3')).map(({ requestId }) => requestId)).toEqual(['r4', 'r4']);
  const { rows } = await sql<{ reason: string }>`select reason from dead_events where writer = 'w4'`.execute(database.db);
  expect(rows).toEqual([{ reason: 'cost_mismatch' }]);
});

test('refuses to change, delete or truncate ledger rows', async () => {
  await expect(sql`update ledger_entries set amount_nano_usd = 0`.execute(database.db)).rejects.toThrow(/append-only/);
  await expect(sql`delete from ledger_entries`.execute(database.db)).rejects.toThrow(/append-only/);
  await expect(sql`truncate ledger_entries`.execute(database.db)).rejects.toThrow(/append-only/);
});

test('gives up on an unreadable message at the fifth delivery only', async () => {
  const junk = { subject: 'usage.v1.0', payload: Uint8Array.of(255, 255), deliveries: 1 };
  expect(await consume([junk])).toEqual(['again']);
  expect(await consume([{ ...junk, deliveries: 5 }])).toEqual(['poison']);
});
