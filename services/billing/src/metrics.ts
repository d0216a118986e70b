/** Metrics of billing. */
import { createMetrics, type Metrics } from '@signalbox/runtime/metrics';

export interface BillingMetrics {
  readonly metrics: Metrics;
  rowsBooked(kind: string, count: number): void;
  eventRefused(reason: string): void;
  batchFailed(): void;
  /** Duration of a transaction that booked facts. */
  committed(seconds: number): void;
  /** Σ |difference| found by the latest reconciliation, of any replica. */
  reconciled(unreconciledNanoUsd: bigint): void;
  deadWaiting(count: number): void;
  periodsClosed(count: number): void;
  /** Periods that are over and cannot close yet. */
  periodsWaiting(count: number): void;
  /** Silent writers with records that are not booked. */
  writersSilent(count: number): void;
}

export function createBillingMetrics(withProcessMetrics: boolean): BillingMetrics {
  const metrics = createMetrics({ service: 'billing', withProcessMetrics });
  const rows = metrics.counter('signalbox_billing_ledger_rows_total', 'Ledger rows booked.', ['kind']);
  const dead = metrics.counter('signalbox_billing_dead_events_total', 'Events kept aside since they must not be booked.', ['reason']);
  const failed = metrics.counter('signalbox_billing_batches_failed_total', 'Batches that were not committed and come again.', []);
  const commit = metrics.histogram('signalbox_billing_commit_seconds', 'Time of one transaction of booked facts.', [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]);
  const unreconciled = metrics.gauge('signalbox_billing_unreconciled_nano_usd', 'Nano-dollars in dispute between the ledger, the providers and its own sums, as last compared.');
  const waiting = metrics.gauge('signalbox_billing_dead_events_waiting', 'Events kept aside that nobody has dealt with: each holds the period open.');
  const closed = metrics.counter('signalbox_billing_periods_closed_total', 'Periods closed.', []);
  const overdue = metrics.gauge('signalbox_billing_periods_waiting', 'Periods that are over and cannot close yet.');
  const silent = metrics.gauge('signalbox_billing_writers_silent', 'Workers that have said nothing for two minutes, and of whose log not all is booked.');
  return {
    metrics,
    reconciled: (nano) => unreconciled.set(Number(nano)),
    deadWaiting: (count) => waiting.set(count),
    periodsClosed: (count) => closed.inc({}, count),
    periodsWaiting: (count) => overdue.set(count),
    writersSilent: (count) => silent.set(count),
    rowsBooked: (kind, count) => rows.inc({ kind }, count),
    eventRefused: (reason) => dead.inc({ reason }),
    committed: (seconds) => commit.observe(seconds),
    batchFailed: () => failed.inc({}),
  };
}
