/** Composition root of accounts: adapters, domain, listeners. */
import type { Bus } from '@signalbox/bus/bus';
import { connectNatsBus } from '@signalbox/bus/connect';
import { observeBus } from '@signalbox/bus/metrics';
import { createIdSource } from '@signalbox/kernel/ids';
import { createRpcServer, type RpcServer } from '@signalbox/rpc/server';
import { ConfigError } from '@signalbox/runtime/config';
import { createHealthServer } from '@signalbox/runtime/health';
import type { Service, Surroundings } from '@signalbox/runtime/lifecycle';
import { createMetrics } from '@signalbox/runtime/metrics';
import { repeat, type Repeating } from '@signalbox/runtime/repeating';
import { Secret } from '@signalbox/runtime/secret';
import { openDatabase } from '@signalbox/sql/database';
import { readySchema } from '@signalbox/sql/schema-job';
import { createBusAnnouncer } from './adapters/bus-announcer.js';
import { SCHEMA } from './adapters/migrations.js';
import { createOwnAddressCheck } from './adapters/own-address.js';
import { createPostgresChangeLog } from './adapters/postgres-change-log.js';
import { createPostgresClaimStore } from './adapters/postgres-claim-store.js';
import { createPostgresSessionStore } from './adapters/postgres-session-store.js';
import { createPostgresStore } from './adapters/postgres-store.js';
import type { AccountsSchema } from './adapters/rows.js';
import type { AccountsConfig } from './config.js';
import { createAccounts } from './domain/accounts.js';
import { createClaims } from './domain/claims.js';
import { createEnvelope } from './domain/envelope.js';
import { createKeys } from './domain/keys.js';
import { createProviderKeys } from './domain/provider-keys.js';
import { createSecretMaker } from './domain/secrets.js';
import { spellingsOf } from './domain/secrets-keys.js';
import { createSessions } from './domain/sessions.js';
import { createAccountsMetrics } from './metrics.js';
import { createHandlers } from './server.js';

const STOP_GRACE_MS = 5_000;
/** Interval at which expired claims and answers are deleted. */
const PURGE_INTERVAL_MS = 600_000;

/** Without a bus, connects to NATS_URL and closes that connection at stop. `start` rejects with a ConfigError or Fault. */
export function composeAccounts(config: AccountsConfig, { clock, randomBytes, log, withProcessMetrics, doors, tracer, tls }: Surroundings, options: { readonly bus?: Bus } = {}): Service {
  const metrics = createMetrics({ service: 'accounts', withProcessMetrics });
  const database = openDatabase<AccountsSchema>({ url: config.DATABASE_URL, poolMax: config.DATABASE_POOL_MAX, log, statementTimeoutMs: config.STATEMENT_TIMEOUT_MS });
  let isReady = false;
  let server: RpcServer | undefined;
  let ownBus: Bus | undefined;
  let purging: Repeating | undefined;
  let stopping: Promise<void> | undefined;
  observeBus(metrics, () => options.bus ?? ownBus);
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
      await readySchema(database.db, config.DATABASE_URL, SCHEMA, config.MIGRATE_ON_START);
      const store = createPostgresStore(database.db);
      const announcer = createBusAnnouncer(bus, clock);
      const ids = createIdSource(clock, randomBytes);
      const secrets = createSecretMaker(config.KEY_PEPPER, randomBytes);
      const accounts = createAccounts({ store, announcer, clock, ids, secrets, variant: config.CONTRACT_VARIANT });
      const keys = createKeys({ store, announcer, clock, ids, secrets });
      if (!(await keys.isPepperTheirs())) throw new ConfigError('KEY_PEPPER: is not the one under which the keys of this database were made, and none of them would be known. Set that one; `npm start` keeps it as key-pepper in its DATA_DIR.');
      const olderSecretsKeys = [...config.SECRETS_KEYS_OLD, ...spellingsOf(config.SECRETS_KEY.unwrap()).map((value) => new Secret(value))];
      const providerKeys = createProviderKeys({ store, announcer, clock, ids, envelope: createEnvelope(config.SECRETS_KEY, olderSecretsKeys, randomBytes), addressProblem: createOwnAddressCheck(config.FETCH_ALLOW) });
      const { rewrapped, unreadable } = await providerKeys.rewrap();
      if (rewrapped > 0) log.info('Provider credentials were re-encrypted under the current SECRETS_KEY.', { count: rewrapped });
      if (!(await providerKeys.isSecretsKeyTheirs())) throw new ConfigError('SECRETS_KEY: is not the one under which the provider credentials of this database are kept, and none of them could be used. Set that one, or name it in SECRETS_KEYS_OLD; `npm start` keeps it as secrets-key in its DATA_DIR.');
      if (unreadable > 0) log.error('Provider credentials are under a SECRETS_KEY that is not known here; name it in SECRETS_KEYS_OLD.', { count: unreadable });
      const claims = createClaims({ store: createPostgresClaimStore(database.db), clock, envelope: createEnvelope(config.SECRETS_KEY, olderSecretsKeys, randomBytes, 'signalbox kept answer'), leaseMs: config.CLAIM_LEASE_SECONDS * 1_000 });
      purging = repeat({ clock, delayMs: () => PURGE_INTERVAL_MS, work: () => claims.purge(), onFailure: (error) => log.error('Expired claims could not be deleted.', {}, error) });
      const sessions = createSessions({ store: createPostgresSessionStore(database.db), keys, announcer, clock, idleSeconds: config.SESSION_IDLE_SECONDS, absoluteSeconds: config.SESSION_ABSOLUTE_SECONDS });
      const handlers = createHandlers({ clock, accounts, keys, providerKeys, claims, sessions, changes: createPostgresChangeLog(database.db), metrics: createAccountsMetrics(metrics) });
      server = createRpcServer({ area: 'accounts', handlers, host: config.HOST, port: config.GRPC_PORT, clock, log, doors, tracer, tls });
      ports['grpc'] = await server.start();
      ports['metrics'] = await health.start();
      isReady = true;
    },
    stop: () => {
      stopping ??= (async () => {
        isReady = false;
        purging?.stop();
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
