import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { UsageRecorded, UsageRecorded__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import { silentLog } from '@signalbox/runtime/log';
import { Secret } from '@signalbox/runtime/secret';
import { openDatabase, type Database } from '@signalbox/sql/database';
import { migrate } from '@signalbox/sql/migrate';
import { createFakeClock } from '@signalbox/testkit/clock';
import { stopTestStores, testPostgresUrl } from '@signalbox/testkit/stores';
import { sql } from 'kysely';
import { createDatabaseTime } from './adapters/database-time.js';
import { migrations } from './adapters/migrations.js';
import { createPostgresLedger } from './adapters/postgres-ledger.js';
import { createConsumer } from './consumer.js';
import { Hearing } from './domain/hearing.js';
import type { LedgerStore } from './domain/ports.js';
import { createBillingMetrics } from './metrics.js';
import { createHandlers } from './server.js';

const codec = messageCodec<UsageRecorded, UsageRecorded__Output>('signalbox.events.v1.UsageRecorded');
const clock = createFakeClock();
let database: Database<unknown>;
let store: LedgerStore;
let writer: string;
let writers = 0;

beforeAll(async () => {
  database = openDatabase<unknown>({ url: new Secret(await testPostgresUrl()), poolMax: 4, log: silentLog, statementTimeoutMs: 5_000, schema: 'billing', pipelined: true });
  await migrate(database.db, migrations, { schema: 'billing' });
  store = createPostgresLedger(database);
}, 60_000);
afterAll(async () => {
  await database.close();
  await stopTestStores();
}, 30_000);
beforeEach(() => {
  writer = `w_${(writers += 1)}`;
});

type Door = (name: string, message: object) => Promise<Record<string, unknown>>;
/** A replica of billing; `over` replaces methods of its store. */
function doorOf(over: Partial<LedgerStore> = {}): Door {
  const { unary } = createHandlers({ store: { ...store, ...over }, clock, hearing: new Hearing(clock), ledgerNow: () => Promise.resolve(clock.nowMs()), announce: () => undefined });
  return async (name, message) => (await (unary[name] as (asked: unknown) => Promise<unknown>)({ writer, ...message })) as Record<string, unknown>;
}
const report = async (door: Door, lastSeq = '0', openSinceMs = '0'): Promise<string> => {
  clock.advance(1_000);
  return String((await door('Watermark', { lastSeq, openSinceMs }))['reportId']);
};
const endedAt = async (door: Door): Promise<unknown> => ((await door('Watermarks', {}))['writers'] as { writer: string; ended: boolean }[]).find((each) => each.writer === writer)?.ended;
const book = async (firstSeq: number, lastSeq: number): Promise<void> => {
  const consume = createConsumer({ store, clock, log: silentLog, metrics: createBillingMetrics(false), announce: () => undefined });
  await consume([{ subject: 'usage.v1.0', payload: codec.encode({ writer, firstSeq: String(firstSeq), lastSeq: String(lastSeq) }), deliveries: 1 }]);
};

test('a writer has ended once it said so (repeatably), until it reports again', async () => {
  const [door, other] = [doorOf(), doorOf()];
  const reportId = await report(door);
  expect([reportId.length, await endedAt(door)]).toEqual([36, false]);
  for (let times = 0; times < 2; times += 1) expect(await door('Deregister', { lastSeq: '0', reportId })).toEqual({ ended: true });
  expect([await endedAt(door), await endedAt(other)]).toEqual([true, true]);
  // It is back, before it has written anything.
  await other('Register', { provider: 'sim', lastSeq: '0' });
  expect([await endedAt(door), await endedAt(other)]).toEqual([false, false]);
});

test.each<[string, (door: Door) => Promise<unknown>]>([
  ['it is registered again', (door) => door('Register', { provider: 'sim', lastSeq: '0' })],
  ['it has reported again', (door) => report(door)],
  // Like `register` in versions before writers could end.
  ['it has reported to an older version of billing', () =>
    sql`insert into writers (writer, provider, last_seq, registered_at_ms, reported_at_ms, open_since_ms, owed_seq, seen_at_ms)
      values (${writer}, '', 0, ${clock.nowMs()}::bigint, ${clock.nowMs()}::bigint, 0, null, ${clock.nowMs()}::bigint)
      on conflict (writer) do update set last_seq = greatest(writers.last_seq, excluded.last_seq), seen_at_ms = excluded.seen_at_ms, lost_at_ms = 0, owed_seq = excluded.owed_seq`.execute(database.db)],
])('%s: an earlier report of the end no longer counts, whether already stored or still on its way', async (_what, hear) => {
  const door = doorOf();
  const reportId = await report(door);
  await hear(door);
  expect(await door('Deregister', { lastSeq: '0', reportId })).toEqual({ ended: false });
  const latest = await report(door);
  expect(await door('Deregister', { lastSeq: '0', reportId: latest })).toEqual({ ended: true });
  await hear(door);
  expect(await endedAt(door)).toBe(false);
  expect(await door('Deregister', { lastSeq: '0', reportId: latest })).toEqual({ ended: false });
});

test('a writer has ended only when the ledger has its whole log, in whatever order that arrives', async () => {
  const door = doorOf();
  const end = async (lastSeq: string): Promise<unknown> => (await door('Deregister', { lastSeq, reportId: await report(door, lastSeq) }))['ended'];
  expect(await end('4')).toBe(false);
  await book(3, 4);
  expect(await end('4')).toBe(false);
  await book(1, 2);
  // If more of its log is known than it names.
  expect(await door('Deregister', { lastSeq: '3', reportId: await report(door, '4') })).toEqual({ ended: false });
  expect(await door('Deregister', { lastSeq: '4', reportId: await report(door, '4', '17') })).toEqual({ ended: false });
  expect([await end('4'), await endedAt(door)]).toEqual([true, true]);
  // If records arrive anyway, the writer is waited for again.
  await book(6, 6);
  expect(await endedAt(door)).toBe(false);
});

test('a writer that is unknown, or does not name its report, has not ended', async () => {
  const door = doorOf();
  expect(await door('Deregister', { lastSeq: '0', reportId: '' })).toEqual({ ended: false });
  await report(door);
  for (const reportId of ['', 'report', '00000000-0000-0000-0000-000000000000']) expect(await door('Deregister', { lastSeq: '0', reportId })).toEqual({ ended: false });
  await expect(door('Deregister', { writer: '', lastSeq: '0', reportId: 'report' })).rejects.toThrow(/^bad_message/);
});

test('a ledger that was restored to a time at which a writer had ended no longer says so if this process has heard from it since', async () => {
  const door = doorOf();
  await door('Deregister', { lastSeq: '0', reportId: await report(door) });
  const backup = await store.watermarks();
  const restored = doorOf({ watermarks: () => Promise.resolve(backup) });
  expect(await endedAt(restored)).toBe(true);
  await report(restored);
  expect(await endedAt(restored)).toBe(false);
});

test('a writer that the ledger learns of from its records, as after a restore, does not count as lost', async () => {
  const { unary } = createHandlers({ store, clock, hearing: new Hearing(clock), ledgerNow: createDatabaseTime(database), announce: () => undefined });
  await book(1, 1);
  const { writers: told } = (await (unary['Watermarks'] as (asked: unknown) => Promise<unknown>)({})) as { writers: { writer: string }[] };
  expect(told.find((each) => each.writer === writer)).toMatchObject({ lost: false, ended: false });
});
