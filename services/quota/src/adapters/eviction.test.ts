/** A Redis that deletes keys when its memory is full is named at the start: it would lose counters of money one by one. */
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog, type LogFields } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { ownRedis } from '@signalbox/testkit/stores';
import { Redis } from 'ioredis';
import { command, fresh, verdict } from '../testing/stores.js';
import { createRedisStore } from './redis-store.js';

let server: Awaited<ReturnType<typeof ownRedis>>;
let admin: Redis;
beforeAll(async () => {
  server = await ownRedis();
  admin = new Redis(server.url);
});
afterAll(async () => {
  admin.disconnect();
  await server.stop();
});
const errors: LogFields[] = [];
beforeEach(() => {
  errors.length = 0;
});

async function started(policy: string, bytes: number): Promise<ReturnType<typeof createRedisStore>> {
  await admin.config('SET', 'maxmemory-policy', policy);
  await admin.config('SET', 'maxmemory', String(bytes));
  const store = createRedisStore({
    url: server.url, clock: systemClock, randomBytes, commandTimeoutMs: 5_000,
    log: { ...silentLog, error: (text, fields = {}) => void errors.push({ text, ...fields }) },
    metrics: { storeTook: () => undefined, storeFailed: () => undefined },
  });
  await store.start();
  return store;
}

// The sets of ended requests have a time to live, so that volatile policies delete money too.
test.each(['allkeys-lru', 'allkeys-random', 'volatile-lru', 'volatile-ttl'])('%s with a limit of memory is an error of the log, and the store serves', async (policy) => {
  const store = await started(policy, 100_000_000);
  expect(errors).toEqual([{ text: expect.stringContaining('set its maxmemory-policy to noeviction') as unknown, policy, maxmemory_bytes: 100_000_000 }]);
  expect(verdict(await store.admit(fresh(), command('a'))).decision).toBe('admitted');
  await store.stop();
});

test.each([['noeviction', 100_000_000], ['allkeys-lru', 0]])('%s with %d bytes deletes nothing and is not mentioned', async (policy, bytes) => {
  await (await started(policy, bytes)).stop();
  expect(errors).toEqual([]);
});
