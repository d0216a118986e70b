import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { Secret } from '@signalbox/runtime/secret';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { createFaultProxy, type FaultProxy } from '@signalbox/testkit/fault-proxy';
import { stopTestStores, testPostgresUrl } from '@signalbox/testkit/stores';
import pg from 'pg';
import { takeSessionLock, type LockChange, type SessionLock, type SessionLockOptions } from './session-lock.js';

let url = '';
let proxy: FaultProxy;
let through = '';
let clock: FakeClock;
const taken: SessionLock[] = [];
const changes: LockChange[] = [];
const waitedFor: string[] = [];

beforeAll(async () => {
  url = await testPostgresUrl();
  const target = new URL(url);
  proxy = await createFaultProxy({ host: target.hostname, port: Number(target.port) });
  const address = new URL(url);
  address.port = String(proxy.port);
  through = address.href;
}, 30_000);
afterEach(async () => {
  proxy.heal();
  await Promise.all(taken.splice(0).map((lock) => lock.release()));
  changes.length = 0;
  waitedFor.length = 0;
});
afterAll(async () => {
  await proxy.close();
  await stopTestStores();
}, 30_000);

async function take(holder: string, options: Partial<SessionLockOptions> = {}): Promise<SessionLock> {
  clock = createFakeClock();
  const lock = await takeSessionLock({ url: new Secret(url), name: 'test', mode: 'alone', holder, clock, limitMs: 1_000, onWait: (by) => void waitedFor.push(by), onChange: (change) => void changes.push(change), ...options });
  taken.push(lock);
  return lock;
}

/** Moves time until `promise` settles, and only where that is what it waits for: the database takes its own. */
async function moving<T>(promise: Promise<T>): Promise<T> {
  let isOver = false;
  void promise.then(() => (isOver = true), () => (isOver = true));
  while (!isOver) await (clock.pendingTimers() > 0 ? clock.advanceAsync(10) : clock.settle());
  return promise;
}

async function until(isSo: () => boolean, advanceMs = 0): Promise<void> {
  for (let turn = 0; turn < 100_000 && !isSo(); turn += 1) await clock.advanceAsync(advanceMs);
  expect(isSo()).toBe(true);
}

describe('a lock on a database', () => {
  test('is one holder’s, whom the second is told of while it waits, and refused for', async () => {
    await take('the first (process 1)');
    await expect(moving(take('the second'))).rejects.toMatchObject({ name: 'LockHeldError', by: 'the first (process 1)' });
    expect(waitedFor).toEqual(['the first (process 1)']);
  });

  test('goes to who waits when its holder lets go, without a word where that is at once', async () => {
    const first = await take('first');
    const second = take('second');
    await first.release();
    await moving(second);
    expect(waitedFor).toEqual([]);
  });

  test('is not held by a process that was killed', async () => {
    await take('killed', { url: new Secret(through) });
    proxy.cut();
    await moving(take('next'));
  });

  test('may be shared by many, and by none beside one that is alone', async () => {
    await take('one', { mode: 'shared' });
    await take('other', { mode: 'shared' });
    await expect(moving(take('third'))).rejects.toMatchObject({ by: 'one' });
    await Promise.all(taken.splice(0).map((lock) => lock.release()));
    await take('alone');
    await expect(moving(take('shared', { mode: 'shared' }))).rejects.toMatchObject({ by: 'alone' });
  });

  test('is another one in another database, and under another name', async () => {
    await take('here');
    await take('elsewhere', { url: new Secret(await testPostgresUrl()) });
    await take('otherwise', { name: 'another' });
  });

  test('is waited for no longer than its start', async () => {
    await take('first');
    const starting = new AbortController();
    const given = expect(take('second', { signal: starting.signal, limitMs: 1e9 })).rejects.toThrow('aborted');
    starting.abort();
    let isOver = false;
    void given.finally(() => (isOver = true));
    await until(() => isOver, 10);
    await given;
  });

  test('a URL that nobody can read is a fault that names its setting, without it', async () => {
    await expect(take('typing', { url: new Secret('postgres://user:password@127.0.0.1:99999/x') })).rejects.toThrow(/^store_unavailable: The database at DATABASE_URL did not answer \(ERR_INVALID_URL\)\.$/);
  });

  test('a database that is away is a fault, not a lock that is held', async () => {
    proxy.cut();
    await expect(take('first', { url: new Secret(through) })).rejects.toMatchObject({ code: 'store_unavailable' });
  });
});

describe('a lock whose connection broke', () => {
  test('is taken again as soon as the database answers', async () => {
    await take('first', { url: new Secret(through) });
    proxy.cut();
    await until(() => changes.length === 1);
    proxy.heal();
    await until(() => changes.length === 2, 100);
    expect(changes).toEqual([{ state: 'lost' }, { state: 'regained' }]);
    await expect(moving(take('second'))).rejects.toMatchObject({ by: 'first' });
  });

  test('that another took meanwhile: it is told once, and taken when that one is gone', async () => {
    await take('first', { url: new Secret(through) });
    const mine = clock;
    proxy.cut();
    await until(() => changes.length === 1);
    const other = await moving(take('other', { onChange: () => undefined }));
    clock = mine;
    proxy.heal();
    await until(() => changes.length === 2, 100);
    for (let turn = 0; turn < 100; turn += 1) await clock.advanceAsync(100);
    expect(changes).toEqual([{ state: 'lost' }, { state: 'taken', by: 'other' }]);
    await other.release();
    await until(() => changes.length === 3, 100);
    expect(changes.at(-1)).toEqual({ state: 'regained' });
  });

  test('that the server ended: it is taken again', async () => {
    await take('first');
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'first'");
    await client.end();
    await until(() => changes.length === 2, 100);
    expect(changes).toEqual([{ state: 'lost' }, { state: 'regained' }]);
  });

  test('is let go of for good, though it be away', async () => {
    const lock = await take('first', { url: new Secret(through) });
    proxy.cut();
    await until(() => changes.length === 1);
    await lock.release();
    proxy.heal();
    await moving(take('second'));
    expect(changes).toEqual([{ state: 'lost' }]);
  });
});

test('a server that ends idle sessions leaves it alone', async () => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const database = new URL(url).pathname.slice(1);
  await client.query(`alter database ${database} set idle_session_timeout = '50ms'`);
  await take('first');
  await client.query('select pg_sleep(0.3)');
  const { rows } = await client.query<{ held: string }>(`select count(*) as held from pg_locks held join pg_stat_activity activity on activity.pid = held.pid where locktype = 'advisory' and application_name = 'first'`);
  await client.query(`alter database ${database} reset idle_session_timeout`);
  await client.end();
  expect(rows).toEqual([{ held: '1' }]);
  expect(changes).toEqual([]);
});
