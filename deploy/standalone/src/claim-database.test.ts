import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { silentLog } from '@signalbox/runtime/log';
import type { SessionLock } from '@signalbox/sql/session-lock';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { stopTestStores, testPostgresUrl } from '@signalbox/testkit/stores';
import { hostname } from 'node:os';
import { claimDatabase, type ClaimDatabaseOptions } from './claim-database.js';

const US = `process ${process.pid} of host ${hostname()}`;
let url = '';
let clock: FakeClock;
const told: string[] = [];
const held: SessionLock[] = [];
beforeAll(async () => {
  url = await testPostgresUrl();
}, 30_000);
afterEach(async () => {
  await Promise.all(held.splice(0).map((lock) => lock.release()));
  told.length = 0;
});
afterAll(() => stopTestStores(), 30_000);

/** Advances the fake clock only when the claim waits for time, not while it waits for the database. */
async function claim(counters: ClaimDatabaseOptions['counters']): Promise<SessionLock> {
  clock = createFakeClock();
  let isOver = false;
  const claiming = claimDatabase({ url, counters, clock, log: silentLog, tell: (line) => void told.push(line) });
  void claiming.then((lock) => held.push(lock), () => undefined).finally(() => (isOver = true));
  while (!isOver) await (clock.pendingTimers() > 0 ? clock.advanceAsync(50) : clock.settle());
  return claiming;
}

test('a second all-in-one waits ten seconds for the first, says for whom, and is refused by the variable', async () => {
  await claim('memory');
  await expect(claim('memory')).rejects.toThrow(`DATABASE_URL: npm start (${US}) runs on the database at DATABASE_URL too, and this one counts in its own memory, so that caps are counted apart: stop it, or give this one another database.`);
  expect(told).toEqual([`signalbox: npm start (${US}) has the database at DATABASE_URL; waiting for its end, at most 10 s`]);
  expect(clock.monotonicMs()).toBeGreaterThanOrEqual(10_000);
});

test('those that count in one Redis may be several, and are none beside an all-in-one', async () => {
  await claim('redis');
  await claim('redis');
  await expect(claim('memory')).rejects.toThrow(`DATABASE_URL: npm run start:split (${US}) runs on the database at DATABASE_URL too, and this one counts`);
  await Promise.all(held.splice(0).map((lock) => lock.release()));
  await claim('memory');
  await expect(claim('redis')).rejects.toThrow(`DATABASE_URL: npm start (${US}) runs on the database at DATABASE_URL too, and it counts`);
});

test('a start with a Redis of its own is as alone as an all-in-one', async () => {
  await claim('own-redis');
  const beside = `npm run start:split (${US}) runs on the database at DATABASE_URL too, and`;
  await expect(claim('own-redis')).rejects.toThrow(`DATABASE_URL: ${beside} this one counts in a Redis of its own, so that caps are counted apart: stop it, or give this one another database.`);
  await expect(claim('redis')).rejects.toThrow(`DATABASE_URL: ${beside} it counts by itself`);
});
