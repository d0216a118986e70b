import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { sqlStateOf, toStoreFault } from './faults.js';
import { migrate, type Migration } from './migrate.js';
import { openDatabase, type Database } from './database.js';
import type { Prepared } from './prepared.js';
import { readySchema, runSchemaJob, type SchemaPlan } from './schema-job.js';
import { ConfigError } from '@signalbox/runtime/config';
import { silentLog } from '@signalbox/runtime/log';
import { Secret } from '@signalbox/runtime/secret';
import { createFaultProxy } from '@signalbox/testkit/fault-proxy';
import { stopTestStores, testPostgresUrl } from '@signalbox/testkit/stores';
import { sql } from 'kysely';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';

interface Schema {
  readonly money: { readonly id: bigint; readonly amount: bigint };
}

let url = '';
const opened: Database<Schema>[] = [];
const open = (address = url, statementTimeoutMs = 2_000, pipelined = false): Database<Schema> => {
  const database = openDatabase<Schema>({ url: new Secret(address), poolMax: 4, log: silentLog, statementTimeoutMs, schema: 'room', pipelined });
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

test('a server that ends a connection in the breath in which it opened it is away, and ends nothing else', async () => {
  const message = (kind: string, body: string | Buffer): Buffer => {
    const bytes = Buffer.from(body);
    const head = Buffer.alloc(5);
    head.write(kind);
    head.writeUInt32BE(bytes.length + 4, 1);
    return Buffer.concat([head, bytes]);
  };
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    // The password is not asked for: it is ready, and stops.
    socket.once('data', () => socket.end(Buffer.concat([message('R', Buffer.alloc(4)), message('Z', 'I'), message('E', 'SFATAL\0C57P01\0Mterminating connection\0\0')])));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await expect(open(`postgres://nobody@127.0.0.1:${String(port)}/none`).ping()).rejects.toThrow(/^store_unavailable/);
  server.close();
});

test('says what is wrong with the address that was given, and nothing of what it holds', async () => {
  const said = async (address: URL): Promise<string> => {
    const database = openDatabase<Schema>({ url: new Secret(address.href), poolMax: 1, log: silentLog, statementTimeoutMs: 2_000 });
    opened.push(database);
    return database.ping().then(() => 'nothing', (error: unknown) => (error instanceof Error ? error.message : ''));
  };
  const changed = (change: Partial<URL>): URL => Object.assign(new URL(url), change);
  expect(await said(changed({ password: 'hidden' }))).toBe('store_unavailable: The database at DATABASE_URL refused (wrong user or password, 28P01).');
  expect(await said(changed({ pathname: '/nowhere' }))).toBe('store_unavailable: The database at DATABASE_URL refused (no such database, 3D000).');
  expect(await said(changed({ port: '1' }))).toBe('store_unavailable: The database at DATABASE_URL did not answer (ECONNREFUSED).');
  expect(await said(changed({ search: '?sslmode=verify-full' }))).toBe('store_unavailable: The database at DATABASE_URL did not answer (it offers no TLS, which sslmode or PGSSLMODE asks for).');
});

test.each(['DEPTH_ZERO_SELF_SIGNED_CERT', 'ERR_TLS_CERT_ALTNAME_INVALID', 'EPIPE'])('a connection that ends with %s finds the store away, and says so', (code) => {
  expect(toStoreFault(Object.assign(new Error('of db.internal'), { code }))?.message).toBe(`store_unavailable: The database at DATABASE_URL did not answer (${code}).`);
});

test('options of the address are kept, and do not replace the schema that a service works in', async () => {
  const address = new URL(url);
  address.search = '?options=-c%20application_name%3Dmine&application_name=';
  const { rows } = await sql<{ path: string; name: string }>`select current_setting('search_path') as path, current_setting('application_name') as name`.execute(open(address.href).db);
  expect(rows).toEqual([{ path: 'room', name: 'mine' }]);
});

test('reads 64-bit numbers exactly, as bigint', async () => {
  const row = await open().db.selectFrom('money').selectAll().where('id', '=', 1n).executeTakeFirstOrThrow();
  expect(row.amount).toBe(9_223_372_036_854_775_807n);
});

test('a query that comes after the end finds the store away, as one during an outage does', async () => {
  const { db, close, transactPrepared } = open();
  await sql`select 1`.execute(db);
  await close();
  await close();
  await expect(sql`select 1`.execute(db)).rejects.toMatchObject({ code: 'store_unavailable' });
  await expect(db.transaction().execute(() => Promise.resolve())).rejects.toMatchObject({ code: 'store_unavailable' });
  await expect(transactPrepared(() => Promise.resolve())).rejects.toMatchObject({ code: 'store_unavailable' });
});

test('leaves a broken constraint recognisable', async () => {
  const error = await open().db.insertInto('money').values({ id: 1n, amount: 2n }).execute().catch((thrown: unknown) => thrown);
  expect(sqlStateOf(error)).toBe('23505');
});

test('what its administrator does to a database is the store’s state, and no error of the statement', async () => {
  const { db } = open();
  await open().db.transaction().execute(async (transaction) => {
    await sql`lock table money in access exclusive mode`.execute(transaction);
    const impatient = new URL(url);
    impatient.search = '?options=-c%20lock_timeout%3D50ms';
    await expect(open(impatient.href).db.selectFrom('money').selectAll().execute()).rejects.toThrow('store_unavailable: The database at DATABASE_URL refused (a lock was not free in time, 55P03).');
  });
  await expect(sql`select 1 from money_under_restore`.execute(db)).rejects.toThrow('store_unavailable: The database at DATABASE_URL refused (a table is missing, 42P01).');
  // As behind a pooler that shares connections out.
  await expect(sql`execute of_another_connection`.execute(db)).rejects.toThrow('store_unavailable: The database at DATABASE_URL refused (26000).');
});

test.each([false, true])('keeps all of a transaction of prepared statements, or nothing (pipelined: %s)', async (pipelined) => {
  const { db, transactPrepared } = open(url, 2_000, pipelined);
  const insert = { name: 'insert_money', text: 'insert into money select * from unnest($1::bigint[], $2::bigint[])' };
  const first = pipelined ? 100 : 200;
  const kept = async (): Promise<readonly bigint[]> => (await db.selectFrom('money').select('id').where('id', '>=', BigInt(first)).where('id', '<', BigInt(first + 100)).orderBy('id').execute()).map(({ id }) => id);
  await transactPrepared(async (run) => {
    await run(insert, [[first], [1]]);
    await run(insert, [[first + 1], [1]]);
  });
  const both = [BigInt(first), BigInt(first + 1)];
  expect(await kept()).toEqual(both);
  await expect(transactPrepared(async (run) => {
    await run(insert, [[first + 2], [1]]);
    throw new Error('changed my mind');
  })).rejects.toThrow('changed my mind');
  const clash = await transactPrepared(async (run) => {
    await run(insert, [[first + 3], [1]]);
    await run(insert, [[first], [1]]);
  }).catch((error: unknown) => error);
  expect(sqlStateOf(clash)).toBe('23505');
  expect(await kept()).toEqual(both);
});

test('pipelined statements run in the order of the calls, and one that fails takes the rest with it', async () => {
  const { transactPrepared } = open(url, 2_000, true);
  const add = { name: 'add', text: 'insert into money values ($1::bigint, 0)' };
  const count = { name: 'count', text: 'select count(*) as count from money where id between 300 and 399' };
  const [, , counted] = await transactPrepared((run) => Promise.all([run(add, [300]), run(add, [301]), run<{ count: bigint }>(count, [])]));
  expect(counted).toEqual([{ count: 2n }]);
  await expect(transactPrepared((run) => Promise.all([run(add, [302]), run(add, [300]), run(add, [303])]))).rejects.toThrow(/duplicate/);
  expect(await transactPrepared((run) => run(count, []))).toEqual([{ count: 2n }]);
});

const ADD: Prepared = { name: 'add', text: 'insert into money values ($1::bigint, 0)' };
const LIST: Prepared = { name: 'list', text: 'select id from money where id between $1::bigint and $1::bigint + 99 order by id' };

test.each([false, true])('a transaction that is concluded keeps all of what was begun by then, or nothing (pipelined: %s)', async (pipelined) => {
  const { transactPrepared } = open(url, 2_000, pipelined);
  const first = pipelined ? 400 : 500;
  const kept = (): Promise<readonly { readonly id: bigint }[]> => transactPrepared((run) => run<{ id: bigint }>(LIST, [first]));
  const add = (ids: readonly number[]): Promise<unknown> =>
    transactPrepared(async (run, conclude) => {
      if (!pipelined) for (const id of ids) await run(ADD, [id]);
      const added = Promise.all(pipelined ? ids.map((id) => run(ADD, [id])) : []);
      conclude();
      await added;
    });
  await add([first, first + 1]);
  const both = [{ id: BigInt(first) }, { id: BigInt(first + 1) }];
  expect(await kept()).toEqual(both);
  await expect(add([first + 2, first, first + 3])).rejects.toThrow(/duplicate/);
  expect(await kept()).toEqual(both);
  await expect(transactPrepared(async (run, conclude) => {
    conclude();
    await run(ADD, [first + 4]);
  })).rejects.toThrow('The transaction is concluded.');
  expect(await kept()).toEqual(both);
});

test('its commit goes with its last statements, and waits for no answer to them', async () => {
  const target = new URL(url);
  const proxy = await createFaultProxy({ host: target.hostname, port: Number(target.port) });
  const through = new URL(url);
  through.port = String(proxy.port);
  const { transactPrepared, ping, close } = open(through.href, 100, true);
  await ping();
  proxy.dropReplies();
  await expect(transactPrepared((run, conclude) => {
    const added = run(ADD, [600]);
    conclude();
    return added;
  })).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(await open().transactPrepared((run) => run(LIST, [600]))).toEqual([{ id: 600n }]);
  await close();
  await proxy.close();
});

test.each([false, true])('answers a cut, frozen or absent store with a fault, and works again after (pipelined: %s)', async (pipelined) => {
  const target = new URL(url);
  const proxy = await createFaultProxy({ host: target.hostname, port: Number(target.port) });
  const through = new URL(url);
  through.port = String(proxy.port);
  const database = open(through.href, 300, pipelined);
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

test('of pipelined statements the one that is refused is told, not those that fail with it, however their answers come', async () => {
  const { transactPrepared } = open(url, 2_000, true);
  const refused = transactPrepared(async (run) => {
    const missing = async (): Promise<unknown> => {
      const rows = await run({ name: 'missing', text: 'select 1 from money_under_restore' }, []);
      return rows;
    };
    const both = Promise.all([missing(), run({ name: 'behind', text: 'select 1' }, [])]);
    // When the first answer is read, the other has come with it.
    setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200));
    return both;
  });
  await expect(refused).rejects.toMatchObject({ code: 'store_unavailable', cause: { code: '42P01' } });
});

test('a schema is made by a run of its own: the service’s role gets its rows, no table, and of what stays only more', async () => {
  const plan: SchemaPlan = { schema: 'room_job', migrations, appendOnly: ['money'] };
  const ready = (wanted = plan): Promise<void> => readySchema(open().db, new Secret(url), wanted, 'off');
  await expect(ready()).rejects.toThrow(new ConfigError('The schema room_job is older than this build, which needs 0001_money, 0002_seed: run `node services/room_job/dist/main.js migrate` first, or start with MIGRATE_ON_START=on.'));
  await sql`do $$ begin create role room_service login password 'room'; exception when duplicate_object then null; end $$`.execute(open().db);
  expect(await runSchemaJob(plan, { DATABASE_URL: url, SERVICE_ROLE: 'room_service' })).toEqual(['0001_money', '0002_seed']);
  expect(await runSchemaJob(plan, { DATABASE_URL: url, SERVICE_ROLE: 'room_service' })).toEqual([]);
  await ready();
  await expect(ready({ ...plan, migrations: [...migrations, { name: '0003_more', up: () => Promise.resolve() }] })).rejects.toThrow(/which needs 0003_more:/);
  const service = new URL(url);
  service.username = 'room_service';
  service.password = 'room';
  const { db } = open(service.href);
  await readySchema(db, new Secret(url), plan, 'off');
  await sql`insert into room_job.money values (2, 5)`.execute(db);
  for (const refused of ['update room_job.money set amount = 0', 'delete from room_job.money', 'create table room_job.mine (id integer)', 'drop table room_job.money', 'delete from room_job.migration']) await expect(sql.raw(refused).execute(db)).rejects.toMatchObject({ code: 'store_unavailable', cause: { code: '42501' } });
});

test('such a run that cannot work says what is wrong', async () => {
  const plan: SchemaPlan = { schema: 'room_job', migrations };
  await expect(runSchemaJob(plan, {})).rejects.toThrow(/^DATABASE_URL: /);
  await expect(runSchemaJob(plan, { DATABASE_URL: url, SERVICE_ROLE: 'Robert"; drop' })).rejects.toThrow(/^SERVICE_ROLE: must be the name of a role$/);
  await expect(runSchemaJob(plan, { DATABASE_URL: url.replace(/:[^:@]*@/, ':wrong@') })).rejects.toMatchObject({ code: 'store_unavailable' });
});

test('a migration at the start of a service takes as long as it needs, whatever the time-outs of the service’s own connections', async () => {
  const plan: SchemaPlan = { schema: 'room_large', migrations: [{ name: '0001_index', up: async (transaction) => void (await sql`select pg_sleep(1.5)`.execute(transaction)) }] };
  // The client gives up 1 s after the server would.
  const { db } = open(url, 200);
  await readySchema(db, new Secret(url), plan, 'on');
  await readySchema(db, new Secret(url), plan, 'off');
});

test('a user who may not make the schema is told so, by the setting that names the user', async () => {
  for (const text of ['drop role if exists newcomer', "create role newcomer login password 'n'"]) await sql.raw(text).execute(open().db);
  const address = Object.assign(new URL(url), { username: 'newcomer', password: 'n' }).href;
  const plan: SchemaPlan = { schema: 'unmade', migrations };
  const told = /^DATABASE_URL: its user may not make the schema unmade \(permission denied for database [\w-]+\): give it CREATE/;
  await expect(readySchema(open(address).db, new Secret(address), plan, 'on')).rejects.toThrow(told);
  await expect(runSchemaJob(plan, { DATABASE_URL: address })).rejects.toThrow(told);
});
