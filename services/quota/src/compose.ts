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

/** Interval of the sweep that ends expired leases of accounts without requests. */
const SWEEP_MS = 5_000;
/** Interval of asking the ledger about requests that it should have by now. */
const RECONCILE_MS = 10_000;
/** Age from which the ledger should have a request. A charge normally is in the ledger, and back here, within one second. */
const OVERDUE_MS = 15_000;
/** 1 s: an admission that waits for billing longer fails, and edge repeats it once. */
const BILLING_DEADLINE_MS = 1_000;
/** Longer, since no client waits for an answer about open requests. */
const RECONCILE_DEADLINE_MS = 5_000;
const STOP_GRACE_MS = 5_000;
const HOLDS_FREED_SUBJECT = 'holds.v1.freed';

/** What quota needs from outside. Without a bus it connects to NATS_URL; `start` rejects with a ConfigError if there is neither. */
export interface QuotaNeighbours {
  readonly bus?: Bus;
  /** Creates the store that all replicas share; absent = counters in this process, which is correct for one replica only. */
  readonly createStore?: (metrics: QuotaMetrics) => QuotaStore;
  /** True if no request can be running when this process starts: every writer is in this process, and older logs are booked already. */
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
      log.error('A lost writer left requests that only quota knows; they are booked with the amounts last reported.', { writer, requests: requests.length });
    },
    tellAwaited: (writers) => log.error('Requests of accounts with limits are refused: these workers have not reported their running requests since Redis lost its state. Each is waited for until it is back, counts as lost, or is declared lost (admin writer lost).', { writers }),
  });
  // A name of its own, so that edge can distinguish two replicas behind one address and call the other while one is frozen.
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
      if (error instanceof Fault) log.warn('Totals were missed or could not be applied; they are requested again later.', { code: error.code });
      else log.error('A totals event could not be applied.', {}, error);
    });
  };
  const sweep = async (): Promise<void> => metrics.leasesEnded(await quota.sweep());
  const reconcile = async (ageMs: number): Promise<void> => metrics.reconciled(await quota.reconcile(ageMs));
  const rounds = (name: string, delayMs: number, work: () => Promise<void>): Repeating => repeat({ clock, delayMs: () => delayMs, work, onFailure: () => log.debug('A periodic task could not reach the store or the ledger.', { round: name }) });

  return {
    name: 'quota',
    start: async () => {
      if (bus === undefined) {
        if (config.NATS_URL === undefined) throw new ConfigError('NATS_URL: is required, the ledger announces its totals there');
        bus = ownBus = await connectNatsBus({ url: config.NATS_URL, clock, log, name: 'quota' });
      }
      // Connect now, so that the link is up before the first question about an account.
      billing?.isConnected();
      await store.start();
      subscription = await bus.listen('totals.v1.>', ({ payload }) => onTotals(payload));
      ports['grpc'] = await server.start();
      ports['metrics'] = await health.start();
      repeating.push(rounds('sweep', SWEEP_MS, sweep));
      if (billing !== undefined) {
        // Catch up with totals that were announced while this process was down.
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
