/** Composition root of billing. */
import type { Bus, Subscription } from '@signalbox/bus/bus';
import { connectNatsBus } from '@signalbox/bus/connect';
import { observeBus, observeLag } from '@signalbox/bus/metrics';
import { Fault } from '@signalbox/kernel/fault';
import type { RpcClient } from '@signalbox/rpc/call';
import { createRpcClient } from '@signalbox/rpc/client';
import { createRpcObserver } from '@signalbox/rpc/metrics';
import { createRpcServer } from '@signalbox/rpc/server';
import { createHealthServer } from '@signalbox/runtime/health';
import type { Service, Surroundings } from '@signalbox/runtime/lifecycle';
import { openDatabase } from '@signalbox/sql/database';
import { readySchema } from '@signalbox/sql/schema-job';
import { SCHEMA } from './adapters/migrations.js';
import { createAccountsClient } from './adapters/accounts-client.js';
import { nextTurn } from './adapters/event-loop.js';
import { createDatabaseTime } from './adapters/database-time.js';
import { createPostgresBooks } from './adapters/postgres-books.js';
import { createPostgresDecisions } from './adapters/postgres-decisions.js';
import { createPostgresLedger } from './adapters/postgres-ledger.js';
import { createBooksHandlers, unreconciledOf } from './books-door.js';
import type { BillingConfig } from './config.js';
import { createDecisionsHandlers, keepDecisions, type DecisionKeeper } from './decisions-door.js';
import { createConsumer } from './consumer.js';
import { createBookkeeper } from './domain/bookkeeper.js';
import { Hearing } from './domain/hearing.js';
import { createReread } from './reread.js';
import { startRounds } from './rounds.js';
import { createBillingMetrics } from './metrics.js';
import { createHandlers } from './server.js';

const STOP_GRACE_MS = 5_000;
/** 16 messages of at most 256 records per transaction. Larger ones would block the event loop of an all-in-one process for a third of a second. */
const BATCH_MESSAGES = 16;
/** 600 ms between transactions: each one costs as much as 100 requests, so there must be few per second. Until a charge is booked, quota counts it as finished. */
const BATCH_WAIT_MS = 600;
/** Longest life of a hold that is not dispatched. A request that was reserved before the end of a period has reached its writer by then. */
const HOLD_LEASE_MS = 30_000;
const ACCOUNTS_DEADLINE_MS = 5_000;

export interface BillingNeighbours {
  readonly bus?: Bus;
  /** Address of accounts, once known; absent = ACCOUNTS_ADDRS. */
  readonly accountsAddress?: Promise<string>;
}

/** Billing as a service; without a bus it connects to NATS_URL. `start` prepares the schema and rejects with a Fault if a store is away. */
export function composeBilling(config: BillingConfig, surroundings: Surroundings, neighbours: BillingNeighbours = {}): Service {
  const { clock, randomBytes, log, withProcessMetrics, doors, tracer, tls } = surroundings;
  const metrics = createBillingMetrics(withProcessMetrics);
  const database = openDatabase<unknown>({ url: config.DATABASE_URL, poolMax: config.DATABASE_POOL_MAX, log, statementTimeoutMs: config.DATABASE_TIMEOUT_MS, schema: SCHEMA.schema, pipelined: true });
  const periodSeconds = config.BILLING_PERIOD_SECONDS;
  const graceMs = periodSeconds === undefined ? HOLD_LEASE_MS : Math.min(HOLD_LEASE_MS, periodSeconds * 500);
  const store = createPostgresLedger(database, periodSeconds);
  const books = createPostgresBooks(database, { graceMs });
  const ledgerNow = createDatabaseTime(database);
  const hearing = new Hearing(clock);
  const observer = createRpcObserver(metrics.metrics);
  const decisions = createPostgresDecisions(database);
  let decisionKeeper: DecisionKeeper | undefined;
  let accounts: Promise<RpcClient> | undefined;
  const connectAccounts = async (): Promise<RpcClient> => {
    const addresses = neighbours.accountsAddress === undefined ? config.ACCOUNTS_ADDRS : [await neighbours.accountsAddress];
    if (addresses.length === 0) throw new Fault('accounts_unavailable', 'ACCOUNTS_ADDRS is not set.');
    return createRpcClient({ area: 'accounts', addresses, door: 'link', clock, randomBytes, defaultDeadlineMs: ACCOUNTS_DEADLINE_MS, doors, tracer, tls, observer });
  };
  const keeper = createBookkeeper({ store: books, accounts: createAccountsClient(() => (accounts ??= connectAccounts()), config.CONTRACT_VARIANT), periodSeconds, hearing, graceMs });
  const announce = (subject: string, payload: Uint8Array): void => (neighbours.bus ?? ownBus)?.announce(subject, payload);
  const consumer = createConsumer({ store, clock, log, metrics, tracer, nextTurn, announce });
  const rounds = startRounds({ books, writers: () => store.watermarks(), hearing, keeper, reread: createReread({ books, consume: consumer, clock, log }), clock, ledgerNow, log, metrics, everyMs: config.RECONCILE_SECONDS * 1_000, periodSeconds, unreconciledOf });
  const booksDoor = createBooksHandlers({ books, keeper, clock, ledgerNow, periodSeconds, onReconciled: (nano) => metrics.reconciled(nano) });
  const server = createRpcServer({ area: 'billing', handlers: createHandlers({ store, clock, ledgerNow, hearing, announce, books: { ...booksDoor, ...createDecisionsHandlers({ decisions, books }) } }), host: config.HOST, port: config.GRPC_PORT, clock, log, doors, tracer, tls });
  const health = createHealthServer({ host: config.HOST, port: config.METRICS_PORT, metrics: metrics.metrics, ready: () => started });
  const ports: Record<string, number> = {};
  let started = false;
  let stopped = false;
  let ownBus: Bus | undefined;
  let subscription: Subscription | undefined;

  return {
    name: 'billing',
    start: async () => {
      await readySchema(database.db, config.DATABASE_URL, SCHEMA, config.MIGRATE_ON_START);
      hearing.begin((await store.watermarks()).map(({ seenAtMs }) => seenAtMs));
      const bus = neighbours.bus ?? (ownBus = await connectNatsBus({ url: config.NATS_URL, clock, log, name: 'billing' }));
      observeBus(metrics.metrics, () => bus);
      observeLag(metrics.metrics, 'billing', () => subscription);
      subscription = await bus.consume({ durable: 'billing', subject: 'usage.v1.>', batchMessagesMax: BATCH_MESSAGES, batchWaitMs: BATCH_WAIT_MS }, consumer);
      decisionKeeper = await keepDecisions({ bus, decisions, clock, log, keptMs: config.DECISIONS_KEPT_DAYS * 86_400_000, keptMax: config.DECISIONS_KEPT_MAX });
      ports['grpc'] = await server.start();
      ports['metrics'] = await health.start();
      started = true;
      rounds.begin();
    },
    stop: async () => {
      if (stopped) return;
      stopped = true;
      started = false;
      await rounds.stop();
      await server.stop(STOP_GRACE_MS);
      await decisionKeeper?.stop();
      await subscription?.stop();
      // Rejects if accounts was never reached.
      await accounts?.then((client) => client.close(), () => undefined);
      await ownBus?.close();
      await database.close();
      await health.stop();
    },
    ready: () => started,
    ports: () => ({ ...ports }),
  };
}
