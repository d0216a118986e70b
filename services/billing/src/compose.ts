/** Composition root of billing. */
import type { Bus, Subscription } from '@signalbox/bus/bus';
import { connectNatsBus } from '@signalbox/bus/connect';
import { createRpcServer } from '@signalbox/rpc/server';
import { createHealthServer } from '@signalbox/runtime/health';
import type { Service, Surroundings } from '@signalbox/runtime/lifecycle';
import { openDatabase } from '@signalbox/sql/database';
import { migrate } from '@signalbox/sql/migrate';
import { migrations } from './adapters/migrations.js';
import { createPostgresLedger } from './adapters/postgres-ledger.js';
import type { BillingConfig } from './config.js';
import { createConsumer } from './consumer.js';
import { createBillingMetrics } from './metrics.js';
import { createHandlers } from './server.js';

const SCHEMA = 'billing';
const STOP_GRACE_MS = 5_000;
/** 64 messages of at most 256 records: one transaction. */
const BATCH_MESSAGES = 64;
/** 400 ms: a transaction costs as much as 40 requests, so few of them a second. Until then quota counts what is finished. */
const BATCH_WAIT_MS = 400;

/** Billing as a service; without a bus it connects to NATS_URL. Start applies the migrations and rejects with a Fault when a store is away. */
export function composeBilling(config: BillingConfig, surroundings: Surroundings, neighbours: { readonly bus?: Bus } = {}): Service {
  const { clock, log, withProcessMetrics } = surroundings;
  const metrics = createBillingMetrics(withProcessMetrics);
  const database = openDatabase<unknown>({ url: config.DATABASE_URL, poolMax: config.DATABASE_POOL_MAX, log, statementTimeoutMs: config.DATABASE_TIMEOUT_MS, schema: SCHEMA, pipelined: true });
  const store = createPostgresLedger(database);
  const server = createRpcServer({ area: 'billing', handlers: createHandlers({ store, clock }), host: config.HOST, port: config.GRPC_PORT, clock, log });
  const health = createHealthServer({ host: config.HOST, port: config.METRICS_PORT, metrics: metrics.metrics, ready: () => started });
  const ports: Record<string, number> = {};
  let started = false;
  let stopped = false;
  let ownBus: Bus | undefined;
  let subscription: Subscription | undefined;

  return {
    name: 'billing',
    start: async () => {
      await migrate(database.db, migrations, { schema: SCHEMA });
      const bus = neighbours.bus ?? (ownBus = await connectNatsBus({ url: config.NATS_URL, clock, log, name: 'billing' }));
      const consumer = createConsumer({ store, clock, log, metrics, announce: (subject, payload) => bus.announce(subject, payload) });
      subscription = await bus.consume({ durable: 'billing', subject: 'usage.v1.>', batchMessagesMax: BATCH_MESSAGES, batchWaitMs: BATCH_WAIT_MS }, consumer);
      ports['grpc'] = await server.start();
      ports['metrics'] = await health.start();
      started = true;
    },
    stop: async () => {
      if (stopped) return;
      stopped = true;
      started = false;
      await server.stop(STOP_GRACE_MS);
      await subscription?.stop();
      await ownBus?.close();
      await database.close();
      await health.stop();
    },
    ready: () => started,
    ports: () => ({ ...ports }),
  };
}
