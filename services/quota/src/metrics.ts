/** Metrics of quota. */
import { createMetrics, type Metrics, type Tally } from '@signalbox/runtime/metrics';

export interface QuotaMetrics {
  readonly metrics: Metrics;
  /** `decision` as in the contract; the label is in lower case. */
  admitted(decision: string): void;
  /** Duration of one call of the store. */
  storeTook(seconds: number): void;
  storeFailed(): void;
  leasesEnded(count: number): void;
  reconciled(count: number): void;
}

export function createQuotaMetrics(withProcessMetrics: boolean): QuotaMetrics {
  const metrics = createMetrics({ service: 'quota', withProcessMetrics });
  const admissions = metrics.counter('signalbox_quota_admissions_total', 'Admissions by decision.', ['decision']);
  const store = metrics.histogram('signalbox_quota_store_seconds', 'Time of one call of the store.', [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05]);
  const failures = metrics.counter('signalbox_quota_store_failures_total', 'Calls of the store that failed.', []);
  const leases = metrics.counter('signalbox_quota_leases_ended_total', 'Holds that ended by time, never dispatched.', []);
  const reconciled = metrics.counter('signalbox_quota_reconciled_total', 'Requests settled by asking the ledger, since its totals did not arrive.', []);
  const byDecision = new Map<string, Tally>(); // kept: by decision, a fixed set.
  const admittedAs = (decision: string): Tally => {
    const tally = admissions.labels({ decision: decision.toLowerCase() });
    byDecision.set(decision, tally);
    return tally;
  };
  return {
    metrics,
    admitted: (decision) => (byDecision.get(decision) ?? admittedAs(decision)).inc(),
    storeTook: (seconds) => store.observe(seconds),
    storeFailed: () => failures.inc({}),
    leasesEnded: (count) => leases.inc({}, count),
    reconciled: (count) => reconciled.inc({}, count),
  };
}
