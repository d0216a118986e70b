import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { BusMessage } from '@signalbox/bus/bus';
import type { UsageRecorded, UsageRecorded__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
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
import { createBillingMetrics } from './metrics.js';

const codec = messageCodec<UsageRecorded, UsageRecorded__Output>('signalbox.events.v1.UsageRecorded');
const JANUARY = Date.UTC(2026, 0, 1);
const card = { id: 'card_1', inputUncached: '1000000', outputText: '2000000' };
const FEE = 40;
const dear = { ...card, id: `card_1+plugins.${FEE}`, requestNanoUsd: String(FEE) };
const periods = { day: '2026-01-01', week: '2026-W01', month: '2026-01', plan: '2026-01' };
/** The contents of a ledger that is older than the sums for reports. */
const TABLES = {
  ledger_entries: 'seq, at_ms, amount_nano_usd, tokens, byok_tokens, attempt, account_id, kind, request_id, source, provider, period, card_id, key_id, applies_to, flags, detail, hash, charge_hash',
  account_heads: 'account_id, seq, hash, totals_seq',
  totals: 'account_id, scope, period_id, charge_nano_usd, tokens, byok_tokens, updated_at_ms',
  writers: 'writer, provider, last_seq, ledger_seq, registered_at_ms, beyond',
  outcomes: 'request_id, attempt, outcome, told_by_edge, account_id',
} as const;

let url: Secret;
const opened: Database<unknown>[] = [];
let nextSeq = 1;

/** The books in one schema, as kept by billing. */
function billing(schema: string) {
  const database = openDatabase<unknown>({ url, poolMax: 2, log: silentLog, statementTimeoutMs: 20_000, schema, pipelined: true });
  opened.push(database);
  const consume = createConsumer({ store: createPostgresLedger(database), clock: createFakeClock(JANUARY + 3_600_000), log: silentLog, metrics: createBillingMetrics(false), announce: () => undefined });
  const books = createPostgresBooks(database, { graceMs: 30_000 });
  const book = async (requestId: string, attempt: number, output: number, toldByEdge = true, { fee = 0, byok = false } = {}): Promise<void> => {
    const seq = String(nextSeq);
    nextSeq += 1;
    const usage: UsageRecorded = {
      writer: 'w', firstSeq: seq, lastSeq: seq,
      ended: [{ requestId, attempt, accountId: 'x', keyId: 'key_1', retryOf: attempt === 1 ? [] : [1], card: fee === 0 ? card : dear, periods, byok, tokens: { inputUncached: 10, outputText: output }, costNanoUsd: String(10 + 2 * output + fee), savingsNanoUsd: String(output), source: 'PROVIDER', provider: 'p', model: `m/${attempt}`, endedAtMs: String(JANUARY + nextSeq) }],
      outcomes: [{ requestId, attempt, accountId: 'x', outcome: 'DELIVERED', toldByEdge }],
    };
    const message: BusMessage = { subject: 'usage.v1.0', payload: codec.encode(usage), deliveries: 1 };
    expect(await consume([message])).toEqual(['done']);
  };
  const failing = async (): Promise<readonly string[]> => (await books.verify('')).filter(({ violations }) => violations > 0n).map(({ invariant, examples }) => `${invariant} ${examples.join(', ')}`);
  return { database, book, failing };
}

beforeAll(async () => {
  url = new Secret(await testPostgresUrl());
}, 60_000);
afterAll(async () => {
  for (const database of opened) await database.close();
  await stopTestStores();
}, 30_000);

test('a ledger with corrections that is older than the sums for reports verifies after the upgrade, and later changes in it are found', async () => {
  const source = billing('billing');
  await migrate(source.database.db, migrations, { schema: 'billing' });
  await source.book('plain', 1, 5);
  // Concluded by the worker, then superseded by an attempt that edge reported.
  await source.book('corrected', 1, 6, false);
  await source.book('corrected', 2, 9);
  // Plugin fees, which earlier versions counted as the provider's.
  await source.book('plugins', 1, 4, true, { fee: FEE });
  await source.book('plugins corrected', 1, 4, false, { fee: FEE });
  await source.book('plugins corrected', 2, 8, true, { fee: FEE });
  await source.book('plugins on own credentials', 1, 4, true, { fee: FEE, byok: true });
  expect(await source.failing()).toEqual([]);

  const old = billing('old');
  await migrate(old.database.db, migrations.slice(0, 3), { schema: 'old' });
  for (const [table, columns] of Object.entries(TABLES)) await sql.raw(`insert into old.${table} (${columns}) select ${columns} from billing.${table}`).execute(old.database.db);
  await migrate(old.database.db, migrations, { schema: 'old' });
  expect(await old.failing()).toEqual([]);
  await old.book('plain again', 1, 3);
  expect(await old.failing()).toEqual([]);

  await sql.raw('update old.usage_days set prompt_tokens = prompt_tokens + 1').execute(old.database.db);
  expect(await old.failing()).toHaveLength(1);
}, 60_000);
