import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Bus, BusMessage, Verdict } from '@signalbox/bus/bus';
import { connectNatsBus } from '@signalbox/bus/connect';
import type { UsageRecorded, UsageRecorded__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import { Fault } from '@signalbox/kernel/fault';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog } from '@signalbox/runtime/log';
import { Secret } from '@signalbox/runtime/secret';
import { openDatabase, type Database } from '@signalbox/sql/database';
import { migrate } from '@signalbox/sql/migrate';
import { createFakeClock } from '@signalbox/testkit/clock';
import { stopTestStores, testNatsUrl, testPostgresUrl } from '@signalbox/testkit/stores';
import { until } from '@signalbox/testkit/until';
import { sql } from 'kysely';
import { migrations } from './adapters/migrations.js';
import { createPostgresBooks } from './adapters/postgres-books.js';
import { createPostgresLedger } from './adapters/postgres-ledger.js';
import { createConsumer } from './consumer.js';
import type { BooksStore } from './domain/books.js';
import type { LedgerStore } from './domain/ports.js';
import { createBillingMetrics } from './metrics.js';
import { createReread } from './reread.js';

type Handler = (messages: readonly BusMessage[]) => Promise<readonly Verdict[]>;

const codec = messageCodec<UsageRecorded, UsageRecorded__Output>('signalbox.events.v1.UsageRecorded');
let database: Database<unknown>;
let store: LedgerStore;
let books: BooksStore;
let consume: Handler;
let bus: Bus;
const metrics = createBillingMetrics(false);

beforeAll(async () => {
  database = openDatabase<unknown>({ url: new Secret(await testPostgresUrl()), poolMax: 4, log: silentLog, statementTimeoutMs: 5_000, schema: 'billing', pipelined: true });
  await migrate(database.db, migrations, { schema: 'billing' });
  store = createPostgresLedger(database);
  books = createPostgresBooks(database, { graceMs: 0 });
  consume = createConsumer({ store, clock: createFakeClock(), log: silentLog, metrics, announce: () => undefined });
  bus = await connectNatsBus({ url: await testNatsUrl(), clock: systemClock, log: silentLog, name: 'unread' });
}, 60_000);
afterAll(async () => {
  await bus.close();
  await database.close();
  await stopTestStores();
}, 30_000);

const card = { id: 'card_1', inputUncached: '1000000', outputText: '2000000' };
const periods = { day: '2026-01-01', week: '2026-W01', month: '2026-01', plan: '2026-01' };
/** A message of one request that costs 20 nano-dollars by its card. */
const usage = (writer: string, requestId: string, cost = '20'): Uint8Array => codec.encode({
  writer, firstSeq: '1', lastSeq: '2',
  ended: [{ requestId, attempt: 1, accountId: 'a1', keyId: 'key_1', card, periods, tokens: { inputUncached: 10, outputText: 5 }, costNanoUsd: cost, source: 'PROVIDER', provider: 'sim', endedAtMs: '5' }],
  outcomes: [{ requestId, attempt: 1, accountId: 'a1', outcome: 'DELIVERED', toldByEdge: true }],
});
/** A message that cannot be decoded: field 1 announces a text of 200 bytes that are missing. The number makes it unique. */
const junk = (number: number): Buffer => Buffer.from([0x0a, 0xc8, 0x01, 0xff, number >> 8, number & 0xff]);
const kept = async (where = sql`true`): Promise<readonly { id: bigint; reason: string; hex: string; note: string; is_resolved: boolean }[]> =>
  (await sql<{ id: bigint; reason: string; hex: string; note: string; is_resolved: boolean }>`select id, reason, encode(payload, 'hex') as hex, note, resolved_at_ms is not null as is_resolved from dead_events where ${where} order by id`.execute(database.db)).rows;

test('1,300 unreadable messages are delivered once each without blocking the next; their bytes are kept twice and counted', async () => {
  const subject = `usage.v1.unread-${process.pid}`;
  const all = Array.from({ length: 1_300 }, (_, number) => junk(number));
  await Promise.all(all.map((payload) => bus.publish(subject, payload)));
  await bus.publish(subject, usage('w1', 'behind'));
  const dead: string[] = [];
  const delivered: string[] = [];
  await bus.consume({ durable: `unread-dlq-${process.pid}`, subject: `dlq.v1.${subject}`, batchMessagesMax: 100, batchWaitMs: 1 }, (messages) => {
    dead.push(...messages.map(({ payload }) => Buffer.from(payload).toString('hex')));
    return Promise.resolve(messages.map(() => 'done'));
  });
  let isBooked = false;
  await bus.consume({ durable: `unread-${process.pid}`, subject, batchMessagesMax: 16, batchWaitMs: 1 }, async (messages) => {
    for (const { deliveries, payload } of messages) {
      expect(deliveries).toBe(1);
      delivered.push(Buffer.from(payload).toString('hex'));
    }
    const verdicts = await consume(messages);
    isBooked ||= messages.some(({ payload }) => payload.length > 6);
    return verdicts;
  });
  await until(() => isBooked);
  await until(() => dead.length >= all.length);
  const sent = all.map((payload) => payload.toString('hex'));
  expect(delivered).toEqual([...sent, Buffer.from(usage('w1', 'behind')).toString('hex')]);
  expect((await store.ledger({ accountId: 'a1', fromMs: 0n, toMs: 0n, after: 0n, limit: 100 })).map(({ kind, requestId }) => [kind, requestId])).toEqual([['attempt', 'behind'], ['charge', 'behind']]);
  expect([...dead].sort()).toEqual([...sent].sort());
  expect((await kept(sql`reason = 'undecodable'`)).map(({ hex }) => hex).sort()).toEqual([...sent].sort());
  expect(await books.deadWaiting()).toBe(all.length);
  expect(await metrics.metrics.registry.metrics()).toContain('signalbox_billing_dead_events_total{reason="undecodable",service="billing"} 1300');
}, 60_000);

/** A message that an earlier version could not read. */
async function keep(...payloads: readonly Uint8Array[]): Promise<void> {
  await store.commit([], payloads.map((payload) => ({ subject: 'usage.v1.0', reason: 'undecodable', writer: '', payload })), 1);
}

const rereadWith = (handler: Handler): (() => Promise<void>) => createReread({ books, consume: handler, clock: createFakeClock(7), log: silentLog });

test('the first version that can read a kept message books it once, resolves it and advances its writer’s watermark; others are kept', async () => {
  await sql`delete from dead_events`.execute(database.db);
  await keep(junk(1), usage('w2', 'late'), junk(2));
  // Two replicas at once, twice.
  await Promise.all([rereadWith(consume)(), rereadWith(consume)()]);
  const reread = rereadWith(consume);
  await reread();
  await reread();
  const rows = await store.ledger({ accountId: 'a1', fromMs: 0n, toMs: 0n, after: 0n, limit: 100 });
  expect(rows.filter(({ requestId }) => requestId === 'late').map(({ kind, amountNanoUsd }) => [kind, amountNanoUsd])).toEqual([['attempt', 20n], ['charge', 20n]]);
  expect((await store.watermarks()).find(({ writer }) => writer === 'w2')).toMatchObject({ ledgerSeq: 2n, gaps: 0n });
  expect((await kept()).map(({ hex, is_resolved, note }) => [hex.length, is_resolved, note])).toEqual([[12, false, ''], [Buffer.from(usage('w2', 'late')).length * 2, true, 'read by a later version'], [12, false, '']]);
});

test('a fact of such a message that cannot be booked is kept as a separate dead event', async () => {
  await sql`delete from dead_events`.execute(database.db);
  await keep(usage('w3', 'wrong', '21'));
  await rereadWith(consume)();
  expect((await kept()).map(({ reason, is_resolved }) => [reason, is_resolved])).toEqual([['undecodable', true], ['cost_mismatch', false]]);
});

test('while the ledger is away nothing is resolved, and the next round starts with the same message', async () => {
  await sql`delete from dead_events`.execute(database.db);
  await keep(usage('w4', 'away'), usage('w5', 'away too'));
  let answer: readonly Verdict[] = ['again'];
  const seen: string[] = [];
  const reread = rereadWith(async ([message]) => {
    seen.push(codec.decode(message?.payload ?? new Uint8Array()).writer);
    return Promise.resolve(answer);
  });
  await reread();
  expect((await kept()).map(({ is_resolved }) => is_resolved)).toEqual([false, false]);
  answer = ['done'];
  await reread();
  expect(seen).toEqual(['w4', 'w4', 'w5']);
  expect((await kept()).map(({ is_resolved }) => is_resolved)).toEqual([true, true]);
  const gone = createReread({ books: { ...books, nextUnread: () => Promise.reject(new Fault('store_unavailable', 'away')) }, consume, clock: createFakeClock(), log: silentLog });
  await expect(gone()).resolves.toBeUndefined();
});

test('a round looks at 256 messages and the next one at those after them, so that each is reached however many are unreadable', async () => {
  await sql`delete from dead_events`.execute(database.db);
  await keep(...Array.from({ length: 300 }, (_, number) => junk(number)), usage('w6', 'behind three hundred'));
  const reread = rereadWith(consume);
  await reread();
  expect((await kept()).some(({ is_resolved }) => is_resolved)).toBe(false);
  await reread();
  expect((await kept()).filter(({ is_resolved }) => is_resolved)).toHaveLength(1);
});
