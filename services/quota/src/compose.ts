/** Composition root of quota. */
import type { Bus, Subscription } from '@signalbox/bus/bus';
import { connectNatsBus } from '@signalbox/bus/connect';
import type { TotalsPublished, TotalsPublished__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import type { Timer } from '@signalbox/kernel/clock';
import { createRpcClient } from '@signalbox/rpc/client';
import { createRpcServer } from '@signalbox/rpc/server';
import { ConfigError } from '@signalbox/runtime/config';
import { createHealthServer } from '@signalbox/runtime/health';
import type { Service, Surroundings } from '@signalbox/runtime/lifecycle';
import { createMemoryStore } from './adapters/memory-store.js';
import type { QuotaConfig } from './config.js';
import { createQuota } from './domain/quota.js';
import type { QuotaStore } from './domain/ports.js';
import { createQuotaMetrics, type QuotaMetrics } from './metrics.js';
import { createHandlers, readTotals } from './server.js';

/** Leases that nobody asks about end this often. */
const SWEEP_MS = 5_000;
// 100 ms: an admission has 150 ms in all (FAILURES, quota).
const BILLING_DEADLINE_MS = 100;
const STOP_GRACE_MS = 5_000;

/** Quota as a service. Without a bus it connects to NATS_URL; start rejects with a ConfigError when there is neither. */
export interface QuotaNeighbours {
  readonly bus?: Bus;
  /** Makes the store that all replicas share; absent: counters in this process, which is right for one replica only. */
  readonly createStore?: (metrics: QuotaMetrics) => QuotaStore;
}

export function composeQuota(config: QuotaConfig, surroundings: Surroundings, neighbours: QuotaNeighbours = {}): Service {
  const { clock, randomBytes, log, withProcessMetrics } = surroundings;
  const periodSeconds = config.BILLING_PERIOD_SECONDS;
  const metrics = createQuotaMetrics(withProcessMetrics);
  const store = neighbours.createStore?.(metrics) ?? createMemoryStore({ clock, periodSeconds });
  const billing = config.BILLING_ADDRS.length === 0 ? undefined : createRpcClient({ area: 'billing', addresses: config.BILLING_ADDRS, door: 'link', clock, randomBytes, defaultDeadlineMs: BILLING_DEADLINE_MS });
  const quota = createQuota(store, async (accountId) =>
    billing === undefined ? { seq: 0n, totals: [], requestIds: [] } : readTotals(await billing.unary<{ accountId: string }, TotalsPublished__Output>('Totals', { accountId })),
  );
  const server = createRpcServer({ area: 'quota', handlers: createHandlers({ quota, metrics, periodSeconds }), host: config.HOST, port: config.GRPC_PORT, clock, log });
  const health = createHealthServer({ host: config.HOST, port: config.METRICS_PORT, metrics: metrics.metrics, ready: () => started && store.ready() });
  const totalsCodec = messageCodec<TotalsPublished, TotalsPublished__Output>('signalbox.events.v1.TotalsPublished');
  const ports: Record<string, number> = {};
  let started = false;
  let stopped = false;
  let ownBus: Bus | undefined;
  let subscription: Subscription | undefined;
  let timer: Timer | undefined;

  const onTotals = (payload: Uint8Array): void => {
    let message: TotalsPublished__Output;
    try {
      message = totalsCodec.decode(payload);
    } catch {
      log.warn('A totals event could not be read.');
      return;
    }
    quota.applyTotals(message.accountId, readTotals(message)).catch((error: unknown) => log.error('A totals event could not be applied.', {}, error));
  };
  const sweepLater = (): void => {
    timer = clock.setTimer(
      SWEEP_MS,
      () => {
        quota
          .sweep()
          .then((ended) => metrics.leasesEnded(ended))
          .catch(() => log.debug('The sweep did not reach the store.'))
          .finally(() => {
            if (!stopped) sweepLater();
          });
      },
      { unref: true },
    );
  };

  return {
    name: 'quota',
    start: async () => {
      let bus = neighbours.bus;
      if (bus === undefined) {
        if (config.NATS_URL === undefined) throw new ConfigError('NATS_URL: is required, the ledger announces its totals there');
        bus = ownBus = await connectNatsBus({ url: config.NATS_URL, clock, log, name: 'quota' });
      }
      await store.start();
      subscription = await bus.listen('totals.v1.>', ({ payload }) => onTotals(payload));
      ports['grpc'] = await server.start();
      ports['metrics'] = await health.start();
      sweepLater();
      started = true;
    },
    stop: async () => {
      if (stopped) return;
      stopped = true;
      started = false;
      timer?.cancel();
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
