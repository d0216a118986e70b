/** The commands of a heartbeat are sent to Redis in one write, in the order in which they must run. */
import { afterAll, expect, test } from '@jest/globals';
import { createFaultProxy } from '@signalbox/testkit/fault-proxy';
import { stopTestStores, testRedisUrl } from '@signalbox/testkit/stores';
import { Redis } from 'ioredis';
import { createHash } from 'node:crypto';
import { createQuota } from '../domain/quota.js';
import { createQuotaMetrics } from '../metrics.js';
import { createHandlers } from '../server.js';
import { command, fresh, redisStore } from '../testing/stores.js';
import { SCRIPTS } from './scripts.js';

afterAll(() => stopTestStores());

const NAMES = new Map(Object.entries(SCRIPTS).map(([name, text]) => [createHash('sha1').update(text).digest('hex'), name]));

test.each([
  [false, ['heartbeat', 'held', 'epoch']],
  [true, ['confirm', 'epoch']],
])('what it says of holds and the life of the store are asked together, the life last (confirm: %s)', async (confirm, expected) => {
  const url = new URL(await testRedisUrl());
  const proxy = await createFaultProxy({ host: url.hostname, port: Number(url.port) });
  const through = new URL(url);
  through.port = String(proxy.port);
  const store = redisStore(through.href);
  await store.start();
  const accountId = fresh();
  await store.admit(accountId, command('held', { amount: 5n }));
  const { unary } = createHandlers({ quota: createQuota(store, () => Promise.reject(new Error('not asked'))), metrics: createQuotaMetrics(false), periodSeconds: undefined });
  const redis = new Redis(url.href);
  const monitor = await redis.monitor();
  const run: string[] = [];
  const isRun = new Promise<void>((resolve) => {
    monitor.on('monitor', (_time: string, [name, hash = '']: readonly string[]) => {
      const script = name === 'evalsha' ? NAMES.get(hash) : undefined;
      if (script !== undefined && run.push(script) === expected.length) resolve();
    });
  });
  // No answer arrives until all commands have been sent.
  proxy.dropReplies();
  const beat = unary?.['Heartbeat']?.({ writer: 'w', confirm, holds: [{ accountId, requestId: 'held', extendToNanoUsd: '0', extendToTokens: '0', draw: null }] } as never, {} as never) as Promise<unknown>;
  const ended = beat.catch(() => undefined);
  await isRun;
  expect(run).toEqual(expected);
  monitor.disconnect();
  redis.disconnect();
  await proxy.close();
  await store.stop();
  await ended;
});
