/** Metrics of billing. */
import { createMetrics, type Metrics } from '@signalbox/runtime/metrics';

export interface BillingMetrics {
  readonly metrics: Metrics;
  rowsBooked(kind: string, count: number): void;
  eventRefused(reason: string): void;
  batchFailed(): void;
}

export function createBillingMetrics(withProcessMetrics: boolean): BillingMetrics {
  const metrics = createMetrics({ service: 'billing', withProcessMetrics });
  const rows = metrics.counter('billing_ledger_rows_total', 'Ledger rows booked.', ['kind']);
  const dead = metrics.counter('billing_dead_events_total', 'Events kept aside since they must not be booked.', ['reason']);
  const failed = metrics.counter('billing_batches_failed_total', 'Batches that were not committed and come again.', []);
  return {
    metrics,
    rowsBooked: (kind, count) => rows.inc({ kind }, count),
    eventRefused: (reason) => dead.inc({ reason }),
    batchFailed: () => failed.inc({}),
  };
}
