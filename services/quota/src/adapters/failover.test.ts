/** Redis fails over: its name leads to another server, and the earlier one, a replica now, keeps its connections and refuses every write. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { createFaultProxy } from '@signalbox/testkit/fault-proxy';
import { ownRedis } from '@signalbox/testkit/stores';
import { oneTurn, until } from '@signalbox/testkit/until';
import { Redis } from 'ioredis';
import { command, fresh } from '../testing/stores.js';
import { createRedisStore } from './redis-store.js';

type Server = Awaited<ReturnType<typeof ownRedis>>;
let first: Server;
let second: Server;
let admin: Redis;
beforeAll(async () => {
  [first, second] = await Promise.all([ownRedis(), ownRedis()]);
  admin = new Redis(first.url);
});
afterAll(async () => {
  admin.disconnect();
  await Promise.all([first.stop(), second.stop()]);
});
const portOf = ({ url }: Server): number => Number(new URL(url).port);
const storeAt = (port: number, lines: string[] = []): ReturnType<typeof createRedisStore> =>
  createRedisStore({
    url: `redis://127.0.0.1:${String(port)}`, clock: systemClock, randomBytes, commandTimeoutMs: 5_000,
    log: { ...silentLog, error: (text) => void lines.push(text), warn: (text, fields = {}) => void lines.push(`${text} ${String(fields['code'] ?? fields['reason'])}`) },
    metrics: { storeTook: () => undefined, storeFailed: () => undefined },
  });

test('a store that became a read-only replica is left for what its name leads to now', async () => {
  const target = { host: '127.0.0.1', port: portOf(first) };
  const proxy = await createFaultProxy(target);
  const store = storeAt(proxy.port);
  await store.start();
  await store.admit(fresh(), command('before'));
  const epoch = await store.epoch();
  target.port = portOf(second);
  await admin.replicaof('127.0.0.1', String(portOf(second)));
  let admitted = false;
  const serves = async (): Promise<void> => {
    while (!admitted) {
      admitted = await store.admit(fresh(), command('after')).then(() => true, () => false);
      await oneTurn();
    }
  };
  const trying = serves();
  await until(() => admitted);
  await trying;
  // Counters of another server are another life: what was held before is reported anew.
  expect(await store.epoch()).not.toBe(epoch);
  await store.stop();
  await proxy.close();
});

test('a replica is not ready, and a start on one says so', async () => {
  await admin.replicaof('127.0.0.1', String(portOf(second)));
  const store = storeAt(portOf(first));
  await expect(store.start()).rejects.toThrow('Redis at REDIS_URL is a read-only replica');
  expect(store.ready()).toBe(false);
  await store.stop();
});

test('a Redis whose password was changed is named in the log, once a minute, and used again once it has the old one', async () => {
  await admin.replicaof('NO', 'ONE');
  const lines: string[] = [];
  const store = storeAt(portOf(first), lines);
  await store.start();
  await admin.config('SET', 'requirepass', 'another');
  await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  await until(() => lines.length > 0);
  await expect(store.admit(fresh(), command('a'))).rejects.toThrow('quota_unavailable');
  await admin.config('SET', 'requirepass', '');
  await until(() => store.ready());
  await store.admit(fresh(), command('b'));
  expect(lines).toEqual(['Redis was lost: accounts with limits get 503 until it is back. Redis at REDIS_URL refused (it wants a password, as in redis://user:password@host:port, NOAUTH).']);
  await store.stop();
});

test('a Redis that is full is named in the log, once a minute', async () => {
  await admin.replicaof('NO', 'ONE');
  const lines: string[] = [];
  const store = storeAt(portOf(first), lines);
  await store.start();
  await admin.config('SET', 'maxmemory', '1');
  for (const id of ['a', 'b']) await expect(store.admit(fresh(), command(id))).rejects.toThrow('quota_unavailable');
  expect(lines).toEqual(['Redis refuses commands: accounts with limits get 503. OOM']);
  await admin.config('SET', 'maxmemory', '0');
  await store.admit(fresh(), command('c'));
  await store.stop();
});
