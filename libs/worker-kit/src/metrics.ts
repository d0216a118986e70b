/** Metrics of a worker. Labels are closed sets: classes, sources, buckets. */
import type { FailureClass__Output } from '@signalbox/contracts/worker';
import type { TokenCounts } from '@signalbox/kernel/tokens';
import type { Metrics } from '@signalbox/runtime/metrics';

export interface WorkerMetrics {
  /** `ok`, or the class of the failure. */
  attempt(outcome: 'ok' | 'abandoned' | FailureClass__Output, ttftMs: number, totalMs: number): void;
  tokens(tokens: TokenCounts, source: string): void;
  suspect(): void;
  inFlight(count: number): void;
  draining(count: number): void;
}

const SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600] as const;
const BUCKETS = ['inputUncached', 'cacheRead', 'cacheWrite', 'outputText', 'outputReasoning', 'audio', 'image'] as const;

export function createWorkerMetrics(metrics: Metrics): WorkerMetrics {
  const attempts = metrics.counter('signalbox_worker_attempts_total', 'Attempts at the provider by how they ended.', ['outcome']);
  const ttft = metrics.histogram('signalbox_worker_first_byte_seconds', 'From the request to the first byte of the answer.', SECONDS);
  const total = metrics.histogram('signalbox_worker_attempt_seconds', 'From the request to the end of the answer.', SECONDS);
  const tokens = metrics.counter('signalbox_worker_tokens_total', 'Tokens booked.', ['bucket', 'source']);
  const suspects = metrics.counter('signalbox_worker_suspect_usage_total', 'Attempts whose usage figures are hard to believe.', []);
  const inFlight = metrics.gauge('signalbox_worker_in_flight', 'Attempts under way.');
  const draining = metrics.gauge('signalbox_worker_draining', 'Attempts under way whose client is gone.');
  return {
    attempt: (outcome, ttftMs, totalMs) => {
      attempts.inc({ outcome });
      total.observe(totalMs / 1_000);
      if (ttftMs > 0) ttft.observe(ttftMs / 1_000);
    },
    tokens: (counts, source) => {
      for (const bucket of BUCKETS) if (counts[bucket] > 0) tokens.inc({ bucket, source }, counts[bucket]);
    },
    suspect: () => suspects.inc({}),
    inFlight: (count) => inFlight.set(count),
    draining: (count) => draining.set(count),
  };
}
