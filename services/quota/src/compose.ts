/** Composition root of quota. */
import type { Bus, Subscription } from '@signalbox/bus/bus';
import { connectNatsBus } from '@signalbox/bus/connect';
import { observeBus } from '@signalbox/bus/metrics';
import type { BookLostRequest, TotalsRequest, WatermarksResponse__Output } from '@signalbox/contracts/billing';
import type { HoldsFreed, HoldsFreed__Output, TotalsPublished, TotalsPublished__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import { Fault } from '@signalbox/kernel/fault';
import { createRpcClient } from '@signalbox/rpc/client';
import { createRpcObserver } from '@signalbox/rpc/metrics';
import { createRpcServer } from '@signalbox/rpc/server';
import { ConfigError } from '@signalbox/runtime/config';
import { createHealthServer } from '@signalbox/runtime/health';
import type { Service, Surroundings } from '@signalbox/runtime/lifecycle';
import { repeat, type Repeating } from '@signalbox/runtime/repeating';
import { createMemoryStore } from './adapters/memory-store.js';
import type { QuotaConfig } from './config.js';
import { createQuota } from './domain/quota.js';
import type { QuotaStore } from './domain/ports.js';
import { createQuotaMetrics, type QuotaMetrics } from './metrics.js';
import { createHandlers, readTotals, readWriters, writeLost } from './server.js';

/** Leases that nobody asks about end this often. */
const SWEEP_MS = 5_000;
/** Requests that the ledger should have by now are asked about this often. */
const RECONCILE_MS = 10_000;
/** 15 s: a charge is in the ledger and back within one when all is well. */
const OVERDUE_MS = 15_000;
/** 1 s: an admission that waits for it fails then, and is asked for once more by edge. */
const BILLING_DEADLINE_MS = 1_000;
/** Nobody waits for an answer about open requests. */
const RECONCILE_DEADLINE_MS = 5_000;
const STOP_GRACE_MS = 5_000;
const HOLDS_FREED_SUBJECT = 'holds.v1.freed';

/** Quota as a service. Without a bus it connects to NATS_URL; start rejects with a ConfigError when there is neither. */
export interface QuotaNeighbours {
  readonly bus?: Bus;
  /** Makes the store that all replicas share; absent: counters in this process, which is right for one replica only. */
  readonly createStore?: (metrics: QuotaMetrics) => QuotaStore;
  /** No request is under way when this process starts: every writer lives in it, and logs of before are booked. */
  readonly isAlone?: boolean;
}

export function composeQuota(config: QuotaConfig, surroundings: Surroundings, neighbours: QuotaNeighbours = {}): Service {
  const { clock, randomBytes, log, withProcessMetrics, doors, tracer, tls } = surroundings;
  const periodSeconds = config.BILLING_PERIOD_SECONDS;
  const metrics = createQuotaMetrics(withProcessMetrics);
  const epoch = Buffer.from(randomBytes(8)).toString('hex');
  const store = neighbours.createStore?.(metrics) ?? createMemoryStore({ clock, periodSeconds, epoch: () => epoch });
  const billing = config.BILLING_ADDRS.length === 0 ? undefined : createRpcClient({ area: 'billing', addresses: config.BILLING_ADDRS, door: 'link', clock, randomBytes, defaultDeadlineMs: BILLING_DEADLINE_MS, doors, tracer, tls, observer: createRpcObserver(metrics.metrics) });
  const quota = createQuota(store, async (accountId, requestIds, waiting) => {
    if (billing === undefined) return { seq: 0n, totals: [], requestIds: [] };
    const deadlineMs = requestIds.length === 0 ? BILLING_DEADLINE_MS : RECONCILE_DEADLINE_MS;
    return readTotals(await billing.unary<TotalsRequest, TotalsPublished__Output>('Totals', { accountId, requestIds: [...requestIds] }, { deadlineMs, requestId: waiting }));
  }, (accountId) => bus?.announce(HOLDS_FREED_SUBJECT, freedCodec.encode({ accountId })), billing === undefined || neighbours.isAlone === true ? undefined : {
    clock,
    askWriters: async (waiting) => readWriters(await billing.unary<object, WatermarksResponse__Output>('Watermarks', {}, { requestId: waiting })),
    bookLost: async (writer, accountId, requests) => {
      await billing.unary<BookLostRequest, object>('BookLost', writeLost(writer, accountId, requests), { deadlineMs: RECONCILE_DEADLINE_MS });
      log.error('A lost writer left requests that only quota knew of; they are booked as far as they were told.', { writer, requests: requests.length });
    },
    tellAwaited: (writers) => log.error('Accounts with limits are refused: since Redis began anew these workers have not told what they have under way. Each is waited for until it is back, counts as lost, or is declared so (admin writer lost).', { writers }),
  });
  // Named, so that edge can tell two replicas behind one address: while one is frozen the other is asked.
  const instance = Buffer.from(randomBytes(8)).toString('hex');
  const server = createRpcServer({ area: 'quota', instance, handlers: createHandlers({ quota, metrics, periodSeconds }), host: config.HOST, port: config.GRPC_PORT, clock, log, doors, tracer, tls });
  const health = createHealthServer({ host: config.HOST, port: config.METRICS_PORT, metrics: metrics.metrics, ready: () => started && store.ready() });
  const freedCodec = messageCodec<HoldsFreed, HoldsFreed__Output>('signalbox.events.v1.HoldsFreed');
  const totalsCodec = messageCodec<TotalsPublished, TotalsPublished__Output>('signalbox.events.v1.TotalsPublished');
  const ports: Record<string, number> = {};
  let started = false;
  let stopped = false;
  let bus = neighbours.bus;
  observeBus(metrics.metrics, () => bus);
  metrics.metrics.observed('gauge', 'signalbox_quota_store_ready', '1 while the store of counters answers.', [], () => [{ labels: {}, value: store.ready() ? 1 : 0 }]);
  let ownBus: Bus | undefined;
  let subscription: Subscription | undefined;
  const repeating: Repeating[] = [];

  const onTotals = (payload: Uint8Array): void => {
    let message: TotalsPublished__Output;
    try {
      message = totalsCodec.decode(payload);
    } catch {
      log.warn('A totals event could not be read.');
      return;
    }
    quota.applyTotals(message.accountId, readTotals(message)).catch((error: unknown) => {
      if (error instanceof Fault) log.warn('Totals were missed or could not be applied; they are asked for later.', { code: error.code });
      else log.error('A totals event could not be applied.', {}, error);
    });
  };
  const sweep = async (): Promise<void> => metrics.leasesEnded(await quota.sweep());
  const reconcile = async (ageMs: number): Promise<void> => metrics.reconciled(await quota.reconcile(ageMs));
  const rounds = (name: string, delayMs: number, work: () => Promise<void>): Repeating => repeat({ clock, delayMs: () => delayMs, work, onFailure: () => log.debug('A round did not reach the store or the ledger.', { round: name }) });

  return {
    name: 'quota',
    start: async () => {
      if (bus === undefined) {
        if (config.NATS_URL === undefined) throw new ConfigError('NATS_URL: is required, the ledger announces its totals there');
        bus = ownBus = await connectNatsBus({ url: config.NATS_URL, clock, log, name: 'quota' });
      }
      // Its link is there before the first account is asked about.
      billing?.isConnected();
      await store.start();
      subscription = await bus.listen('totals.v1.>', ({ payload }) => onTotals(payload));
      ports['grpc'] = await server.start();
      ports['metrics'] = await health.start();
      repeating.push(rounds('sweep', SWEEP_MS, sweep));
      if (billing !== undefined) {
        // What was announced while this process was away.
        reconcile(0).catch(() => log.debug('Open requests could not be settled at the start; they are asked about later.'));
        repeating.push(rounds('reconcile', RECONCILE_MS, () => reconcile(OVERDUE_MS)));
      }
      started = true;
    },
    stop: async () => {
      if (stopped) return;
      stopped = true;
      started = false;
      for (const each of repeating) each.stop();
      await server.stop(STOP_GRACE_MS);
      await subscription?.stop();
      await ownBus?.close();
      await billing?.close();
      await store.stop();
      await health.stop();
    },
    ready: () => started && store.ready(),
    ports: () => ({ ...ports }),
  };
}
