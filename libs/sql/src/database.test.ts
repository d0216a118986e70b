import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { isUniqueViolation } from './faults.js';
import { migrate, type Migration } from './migrate.js';
import { openDatabase, type Database } from './database.js';
import { silentLog } from '@signalbox/runtime/log';
import { Secret } from '@signalbox/runtime/secret';
import { createFaultProxy } from '@signalbox/testkit/fault-proxy';
import { stopTestStores, testPostgresUrl } from '@signalbox/testkit/stores';
import { sql } from 'kysely';

interface Schema {
  readonly money: { readonly id: bigint; readonly amount: bigint };
}

let url = '';
const opened: Database<Schema>[] = [];
const open = (address = url, statementTimeoutMs = 2_000): Database<Schema> => {
  const database = openDatabase<Schema>({ url: new Secret(address), poolMax: 4, log: silentLog, statementTimeoutMs, schema: 'room' });
  opened.push(database);
  return database;
};
const migrations: readonly Migration[] = [
  { name: '0001_money', up: async (transaction) => void (await sql`create table money (id bigint primary key, amount bigint not null)`.execute(transaction)) },
  { name: '0002_seed', up: async (transaction) => void (await sql`insert into money values (1, 9223372036854775807)`.execute(transaction)) },
];

beforeAll(async () => {
  url = await testPostgresUrl();
}, 30_000);
afterAll(async () => {
  await Promise.all(opened.map((database) => database.close()));
  await stopTestStores();
}, 30_000);

test('migrates once when replicas start together', async () => {
  const applied = await Promise.all([1, 2, 3].map(() => migrate(open().db, migrations, { schema: 'room' })));
  expect(applied.flat().sort()).toEqual(['0001_money', '0002_seed']);
  expect(await migrate(open().db, migrations, { schema: 'room' })).toEqual([]);
});

test('keeps nothing of a migration run that fails', async () => {
  const broken: readonly Migration[] = [
    { name: '0001_a', up: async (transaction) => void (await sql`create table a (id int)`.execute(transaction)) },
    { name: '0002_b', up: async (transaction) => void (await sql`create tabel b (id int)`.execute(transaction)) },
  ];
  await expect(migrate(open().db, broken, { schema: 'half' })).rejects.toThrow(/syntax/);
  const { rows } = await sql<{ count: bigint }>`select count(*) as count from information_schema.schemata where schema_name = 'half'`.execute(open().db);
  expect(rows[0]?.count).toBe(0n);
});

test('reads 64-bit numbers exactly, as bigint', async () => {
  const row = await open().db.selectFrom('money').selectAll().where('id', '=', 1n).executeTakeFirstOrThrow();
  expect(row.amount).toBe(9_223_372_036_854_775_807n);
});

test('leaves a broken constraint recognisable', async () => {
  const error = await open().db.insertInto('money').values({ id: 1n, amount: 2n }).execute().catch((thrown: unknown) => thrown);
  expect(isUniqueViolation(error)).toBe(true);
});

test('answers a cut, frozen or absent store with a fault, and works again after', async () => {
  const target = new URL(url);
  const proxy = await createFaultProxy({ host: target.hostname, port: Number(target.port) });
  const through = new URL(url);
  through.port = String(proxy.port);
  const database = open(through.href, 300);
  await database.ping();
  proxy.cut();
  await expect(database.ping()).rejects.toThrow(/^store_unavailable/);
  proxy.heal();
  await database.ping();
  proxy.freeze();
  await expect(database.ping()).rejects.toThrow(/^store_unavailable/);
  proxy.heal();
  await database.ping();
  await expect(sql`select pg_sleep(2)`.execute(database.db)).rejects.toThrow(/^store_unavailable/);
  await database.close();
  await proxy.close();
});
