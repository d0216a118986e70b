/** Real stores for tests: those of `npm test` when it runs us, else private ones started on first use. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startNats } from '@signalbox/local-stores/nats';
import { startPostgres } from '@signalbox/local-stores/postgres';
import { startRedis } from '@signalbox/local-stores/redis';
import { randomBytes } from '@signalbox/runtime/random';
import pg from 'pg';

const cleanups: (() => Promise<void>)[] = [];
const started = new Map<string, Promise<string>>();

/** One store a test file, started once. `undefined` when there is none here: skip loudly, or fail under REQUIRE_REAL_STORES=1. */
async function urlOf(variable: string, start: () => Promise<{ readonly url: string; stop(): Promise<void> }>): Promise<string> {
  const given = process.env[variable];
  if (given !== undefined && given !== '') return given;
  let url = started.get(variable);
  if (url === undefined) {
    url = start().then((store) => {
      cleanups.push(() => store.stop());
      return store.url;
    });
    started.set(variable, url);
  }
  return url;
}

/** URL of a fresh, empty database of a real Postgres. Rejects with StoreError when there is none. */
export async function testPostgresUrl(): Promise<string> {
  const server = await urlOf('TEST_DATABASE_URL', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'signalbox-test-postgres-'));
    const store = await startPostgres({ dataDir, durability: 'fast', path: process.env['PATH'] ?? '' });
    return {
      url: store.url,
      stop: async () => {
        await store.stop();
        rmSync(dataDir, { recursive: true, force: true });
      },
    };
  });
  const name = `test_${Buffer.from(randomBytes(8)).toString('hex')}`;
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  try {
    await client.query(`create database ${name}`);
  } finally {
    await client.end();
  }
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

/** URL of a real Redis. It may be shared with other tests: prefix your keys, flush nothing. */
export function testRedisUrl(): Promise<string> {
  return urlOf('TEST_REDIS_URL', () => startRedis({ path: process.env['PATH'] ?? '' }));
}

/** A Redis of this test's own, to be stopped by the test: for faults, flushes and users of its own. */
export function ownRedis(options: Parameters<typeof startRedis>[0] = {}): ReturnType<typeof startRedis> {
  return startRedis({ path: process.env['PATH'] ?? '', ...options });
}

/** A NATS of this test's own, to be stopped by the test: for a billing of its own, which takes all usage, and a subject of that has one consumer. */
export function ownNats(): ReturnType<typeof startNats> {
  return startNats({ path: process.env['PATH'] ?? '' });
}

/** URL of a real NATS server with JetStream. It may be shared: use fresh subjects and durable names. */
export function testNatsUrl(): Promise<string> {
  return urlOf('TEST_NATS_URL', () => startNats({ path: process.env['PATH'] ?? '' }));
}

/** Stops what this test file started: `afterAll(stopTestStores)`. Safe to call twice. */
export async function stopTestStores(): Promise<void> {
  started.clear();
  await Promise.all(cleanups.splice(0).map((stop) => stop()));
}
