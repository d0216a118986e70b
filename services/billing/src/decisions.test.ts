import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createMemoryBus } from '@signalbox/bus/memory';
import type { DecisionsMade, DecisionsMade__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import { silentLog } from '@signalbox/runtime/log';
import { Secret } from '@signalbox/runtime/secret';
import { openDatabase, type Database } from '@signalbox/sql/database';
import { migrate } from '@signalbox/sql/migrate';
import { createFakeClock } from '@signalbox/testkit/clock';
import { stopTestStores, testPostgresUrl } from '@signalbox/testkit/stores';
import { sql } from 'kysely';
import { migrations } from './adapters/migrations.js';
import { createPostgresDecisions } from './adapters/postgres-decisions.js';
import { createDecisionsHandlers, keepDecisions } from './decisions-door.js';
import type { DecisionRow, DecisionStore } from './domain/decisions.js';
import { watched } from './testing/many-rows.js';

let database: Database<unknown>;
let store: DecisionStore;

beforeAll(async () => {
  database = openDatabase<unknown>({ url: new Secret(await testPostgresUrl()), poolMax: 4, log: silentLog, statementTimeoutMs: 20_000, schema: 'billing', pipelined: true });
  await migrate(database.db, migrations, { schema: 'billing' });
  store = createPostgresDecisions(database);
}, 60_000);
beforeEach(async () => {
  await sql`truncate decisions`.execute(database.db);
});
afterAll(async () => {
  await database.close();
  await stopTestStores();
}, 30_000);

const row = (number: number, over: Partial<DecisionRow> = {}): DecisionRow => ({ id: `dec_${String(number).padStart(4, '0')}`, requestId: `chatcmpl-${String(number)}`, accountId: 'acct_1', atMs: 1_000 * number, viaAuto: true, record: '{"q":0.1,"a":1e-7}', score: undefined, ...over });
const ids = (rows: readonly DecisionRow[]): string[] => rows.map(({ id }) => id);

describe('decisions in Postgres', () => {
  test('come back byte for byte, once, and only to their account', async () => {
    await store.add([row(1), row(2)]);
    await store.add([row(1, { record: '{}' }), row(3)]);
    expect(await store.find({ accountId: 'acct_1', id: 'dec_0001', requestId: '' })).toEqual(row(1));
    expect(await store.find({ accountId: 'acct_1', id: '', requestId: 'chatcmpl-3' })).toEqual(row(3));
    expect(await store.find({ accountId: '', id: 'dec_0001', requestId: '' })).toEqual(row(1));
    expect(await store.find({ accountId: 'acct_2', id: 'dec_0001', requestId: '' })).toBeUndefined();
    expect(await store.find({ accountId: 'acct_2', id: '', requestId: 'chatcmpl-3' })).toBeUndefined();
  });

  test('are listed newest first, page by page, those for auto alone', async () => {
    await store.add([row(1), row(2, { viaAuto: false }), row(3), row(4, { accountId: 'acct_2' }), row(5)]);
    const all = { accountId: '', fromMs: 0, toMs: 0, after: '', limit: 2 };
    const first = await store.list(all);
    expect([ids(first.rows), first.hasMore]).toEqual([['dec_0005', 'dec_0004'], true]);
    const second = await store.list({ ...all, after: 'dec_0004' });
    expect([ids(second.rows), second.hasMore]).toEqual([['dec_0003', 'dec_0001'], false]);
    expect(ids((await store.list({ ...all, accountId: 'acct_1', fromMs: 1_000, toMs: 5_000, limit: 10 })).rows)).toEqual(['dec_0003', 'dec_0001']);
  });

  test('are deleted by age and by number', async () => {
    await store.add([1, 2, 3, 4, 5, 6].map((number) => row(number)));
    await store.prune(2_000, 3);
    expect(ids((await store.list({ accountId: '', fromMs: 0, toMs: 0, after: '', limit: 10 })).rows)).toEqual(['dec_0006', 'dec_0005', 'dec_0004']);
    await store.prune(0, 3);
    expect((await store.list({ accountId: '', fromMs: 0, toMs: 0, after: '', limit: 10 })).rows).toHaveLength(3);
  });

  test.each([
    ['age', 4_000_000, 1_000_000],
    ['number', 0, 1_001],
  ])('are deleted by %s a thousand at a time, however many there are', async (_by, beforeMs, keptMax) => {
    await sql`insert into decisions (id, request_id, account_id, at_ms, via_auto, record) select 'dec_' || lpad(i::text, 4, '0'), 'r' || i, 'acct_1', 1000 * i, true, '{}' from generate_series(1, 5000) i`.execute(database.db);
    const { db, answers } = watched(database.db);
    await createPostgresDecisions({ db }).prune(beforeMs, keptMax);
    expect(Math.max(...answers)).toBe(1_000);
    expect(answers.reduce((sum, rows) => sum + rows, 0)).toBe(beforeMs === 0 ? 4_000 : 3_999);
    const { rows } = await sql<{ first: string; count: bigint }>`select min(id) as first, count(*) as count from decisions`.execute(database.db);
    expect(rows).toEqual([{ first: 'dec_4000', count: 1_001n }]);
  });
});

describe('RPCs and bus subscription for decisions', () => {
  const known = new Set(['chatcmpl-booked']);
  const handlers = () => createDecisionsHandlers({ decisions: store, books: { request: (accountId, requestId) => Promise.resolve(accountId === 'acct_1' && known.has(requestId) ? ({} as never) : undefined) } });
  const feedback = (message: object): Promise<unknown> => Promise.resolve((handlers()['Feedback'] as (message: object) => Promise<unknown>)({ accountId: 'acct_1', decision: null, score: 0.5, ...message }));

  test('feedback is stored with the decision of that account, and nowhere else', async () => {
    await store.add([row(1)]);
    expect(await feedback({ requestId: 'chatcmpl-1', score: 0.9 })).toEqual({ known: true, kept: true });
    expect((await store.find({ accountId: '', id: 'dec_0001', requestId: '' }))?.score).toBe(0.9);
    expect(await feedback({ requestId: 'chatcmpl-1', accountId: 'acct_2', score: 0 })).toEqual({ known: false, kept: false });
    expect((await store.find({ accountId: '', id: 'dec_0001', requestId: '' }))?.score).toBe(0.9);
    expect(await feedback({ requestId: 'chatcmpl-booked' })).toEqual({ known: true, kept: false });
    for (const score of [Number.NaN, -0.1, 1.1]) await expect(feedback({ requestId: 'chatcmpl-1', score })).rejects.toMatchObject({ code: 'bad_message' });
  });

  test('feedback may contain a decision that has not arrived yet, only for its own account and request', async () => {
    const decision = { id: 'dec_0007', requestId: 'chatcmpl-7', accountId: 'acct_1', atMs: '7000', viaAuto: true, recordJson: Buffer.from('{}') };
    expect(await feedback({ requestId: 'chatcmpl-7', decision: { ...decision, accountId: 'acct_2' } })).toEqual({ known: false, kept: false });
    expect(await feedback({ requestId: 'chatcmpl-7', decision })).toEqual({ known: true, kept: true });
    expect((await store.find({ accountId: 'acct_1', id: 'dec_0007', requestId: '' }))?.score).toBe(0.5);
  });

  test('decisions from the bus are stored, and a message that cannot be decoded is skipped', async () => {
    const clock = createFakeClock();
    const bus = createMemoryBus({ clock });
    const keeper = await keepDecisions({ bus, decisions: store, clock, log: silentLog, keptMs: 1_000, keptMax: 10 });
    bus.announce('decisions.v1', Buffer.from([255, 255]));
    bus.announce('decisions.v1', messageCodec<DecisionsMade, DecisionsMade__Output>('signalbox.events.v1.DecisionsMade').encode({ decisions: [{ id: 'dec_0001', requestId: 'chatcmpl-1', accountId: 'acct_1', atMs: '1000', viaAuto: true, recordJson: Buffer.from(row(1).record) }] }));
    await clock.settle();
    await keeper.stop();
    expect(await store.find({ accountId: 'acct_1', id: 'dec_0001', requestId: '' })).toEqual(row(1));
    await bus.close();
  });
});
