/** Composition root of accounts: adapters, domain, doors. */
import type { Bus } from '@signalbox/bus/bus';
import { connectNatsBus } from '@signalbox/bus/connect';
import { createIdSource } from '@signalbox/kernel/ids';
import { createRpcServer, type RpcServer } from '@signalbox/rpc/server';
import { ConfigError } from '@signalbox/runtime/config';
import { createHealthServer } from '@signalbox/runtime/health';
import type { Service, Surroundings } from '@signalbox/runtime/lifecycle';
import { createMetrics } from '@signalbox/runtime/metrics';
import { openDatabase } from '@signalbox/sql/database';
import { migrate } from '@signalbox/sql/migrate';
import { createBusAnnouncer } from './adapters/bus-announcer.js';
import { MIGRATIONS } from './adapters/migrations.js';
import { createPostgresStore, type AccountsSchema } from './adapters/postgres-store.js';
import type { AccountsConfig } from './config.js';
import { createAccounts } from './domain/accounts.js';
import { createKeys } from './domain/keys.js';
import { createSecretMaker } from './domain/secrets.js';
import { createAccountsMetrics } from './metrics.js';
import { createHandlers } from './server.js';

const STOP_GRACE_MS = 5_000;

/** Without a bus one is connected to NATS_URL (and closed at the stop). `start` rejects with a ConfigError or Fault. */
export function composeAccounts(config: AccountsConfig, { clock, randomBytes, log, withProcessMetrics }: Surroundings, options: { readonly bus?: Bus } = {}): Service {
  const metrics = createMetrics({ service: 'accounts', withProcessMetrics });
  const database = openDatabase<AccountsSchema>({ url: config.DATABASE_URL, poolMax: config.DATABASE_POOL_MAX, log, statementTimeoutMs: config.STATEMENT_TIMEOUT_MS });
  let isReady = false;
  let server: RpcServer | undefined;
  let ownBus: Bus | undefined;
  let stopping: Promise<void> | undefined;
  const ports: Record<string, number> = {};
  const health = createHealthServer({ host: config.HOST, port: config.METRICS_PORT, metrics, ready: () => isReady });

  const connectBus = async (): Promise<Bus> => {
    if (options.bus !== undefined) return options.bus;
    if (config.NATS_URL === undefined) throw new ConfigError('NATS_URL: is required');
    ownBus = await connectNatsBus({ url: config.NATS_URL, clock, log, name: 'accounts' });
    return ownBus;
  };

  return {
    name: 'accounts',
    start: async () => {
      const bus = await connectBus();
      await migrate(database.db, MIGRATIONS, { schema: 'accounts' });
      const store = createPostgresStore(database.db);
      const announcer = createBusAnnouncer(bus);
      const ids = createIdSource(clock, randomBytes);
      const secrets = createSecretMaker(config.KEY_PEPPER, randomBytes);
      const accounts = createAccounts({ store, announcer, clock, ids, secrets });
      const keys = createKeys({ store, announcer, clock, ids, secrets });
      const handlers = createHandlers({ accounts, keys, metrics: createAccountsMetrics(metrics) });
      server = createRpcServer({ area: 'accounts', handlers, host: config.HOST, port: config.GRPC_PORT, clock, log });
      ports['grpc'] = await server.start();
      ports['metrics'] = await health.start();
      isReady = true;
    },
    stop: () => {
      stopping ??= (async () => {
        isReady = false;
        await server?.stop(STOP_GRACE_MS);
        await ownBus?.close();
        await database.close();
        await health.stop();
      })();
      return stopping;
    },
    ready: () => isReady,
    ports: () => ports,
  };
}
