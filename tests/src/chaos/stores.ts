/** Real stores for this run only, each behind a proxy that can fail. */
import { connect } from 'node:net';
import { findStores } from '@signalbox/local-stores/find';
import { createFaultProxy, type FaultProxy } from '@signalbox/testkit/fault-proxy';

export const PROXIED = ['postgres', 'redis', 'nats'] as const;
export type Proxied = (typeof PROXIED)[number];

export interface ChaosStores {
  /** Environment for the gateway. */
  readonly environment: Readonly<Record<string, string>>;
  readonly proxies: Readonly<Record<Proxied, FaultProxy>>;
  readonly summary: string;
  /** Deletes everything in Redis. */
  wipeRedis(): Promise<void>;
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
