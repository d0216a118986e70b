/** Real stores for this run only, each behind a proxy that can fail. */
import { connect } from 'node:net';
import { findStores } from '@signalbox/local-stores/find';
import { createFaultProxy, type FaultProxy } from '@signalbox/testkit/fault-proxy';
import { query } from '@signalbox/testkit/query';

export const PROXIED = ['postgres', 'redis', 'nats'] as const;
export type Proxied = (typeof PROXIED)[number];

export const ADMINISTERED = ['locked', 'read-only'] as const;
export type Administered = (typeof ADMINISTERED)[number];

export interface ChaosStores {
  /** Environment for the gateway. */
  readonly environment: Readonly<Record<string, string>>;
  readonly proxies: Readonly<Record<Proxied, FaultProxy>>;
  readonly summary: string;
  /** Deletes everything in Redis. */
  wipeRedis(): Promise<void>;
  /** What an administrator does to Postgres while it answers, for `ms`: `locked` keeps everybody from the ledger, and who waits for a lock is refused soon; with `read-only` nothing can be written. */
  administer(what: Administered, ms: number): Promise<void>;
  stop(): Promise<void>;
}

/** Throws a StoreError if a store is neither installed nor available for download. */
export async function startChaosStores(): Promise<ChaosStores> {
  const stores = await findStores({});
  const through = async (url: string): Promise<{ readonly proxy: FaultProxy; readonly url: string }> => {
    const target = new URL(url);
    const proxy = await createFaultProxy({ host: target.hostname, port: Number(target.port) });
    target.hostname = proxy.host;
    target.port = String(proxy.port);
    return { proxy, url: target.href };
  };
  try {
    const [postgres, redis, nats] = await Promise.all([through(stores.databaseUrl), through(stores.redisUrl), through(stores.natsUrl)]);
    const direct = new URL(stores.redisUrl);
    return {
      environment: { DATABASE_URL: postgres.url, REDIS_URL: redis.url, NATS_URL: nats.url },
      proxies: { postgres: postgres.proxy, redis: redis.proxy, nats: nats.proxy },
      summary: stores.summary,
      wipeRedis: () => say(direct.hostname, Number(direct.port), 'FLUSHALL\r\n'),
      administer: async (what, ms) => {
        const [name, value] = what === 'locked' ? ['lock_timeout', "'200ms'"] : ['default_transaction_read_only', 'on'];
        const set = async (change: string): Promise<void> => {
          for (const text of [`alter system ${change}`, 'select pg_reload_conf()']) await query(stores.databaseUrl, text);
        };
        await set(`set ${name} = ${value}`);
        await query(stores.databaseUrl, `${what === 'locked' ? 'set lock_timeout = 0; begin; lock table billing.ledger_entries in access exclusive mode; ' : ''}select pg_sleep(${ms / 1_000})`);
        await set(`reset ${name}`);
      },
      stop: async () => {
        await Promise.all([postgres, redis, nats].map(({ proxy }) => proxy.close()));
        await stores.stop();
      },
    };
  } catch (error) {
    await stores.stop();
    throw error;
  }
}

/** Sends one command and waits for its reply. */
function say(host: string, port: number, command: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, host, () => socket.write(command));
    socket.once('error', reject);
    socket.once('data', () => {
      socket.destroy();
      resolve();
    });
  });
}
