/** Metrics of a worker. Labels come from closed sets: classes, sources, buckets. Money is exact until it is scraped; the ledger is authoritative. */
import type { FailureClass__Output } from '@signalbox/contracts/worker';
import type { TokenCounts } from '@signalbox/kernel/tokens';
import type { Metrics } from '@signalbox/runtime/metrics';
import type { EndpointBreakers } from './endpoint-breakers.js';
import type { OpenJournal } from './wal.js';

export interface WorkerMetrics {
  /** `ok`, or the class of the failure. */
  attempt(outcome: 'ok' | 'abandoned' | 'unable' | FailureClass__Output, firstByteMs: number, totalMs: number): void;
  tokens(tokens: TokenCounts, source: string): void;
  /** What an attempt costs by its card, and how much less than the reference. Savings may be negative. */
  charged(payer: 'gateway' | 'byok', costNanoUsd: bigint, savingsNanoUsd: bigint): void;
  suspect(): void;
  /** One call of the image API: `ok` or the class of the failure, the images it gave, and how long it took. */
  images(outcome: 'ok' | FailureClass__Output, count: number, seconds: number): void;
  inFlight(count: number): void;
  draining(count: number): void;
}

const SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600] as const;
const BUCKETS = ['inputUncached', 'cacheRead', 'cacheWrite', 'outputText', 'outputReasoning', 'audio', 'image'] as const;

export function createWorkerMetrics(metrics: Metrics): WorkerMetrics {
  const attempts = metrics.counter('signalbox_worker_attempts_total', 'Attempts at the provider by how they ended.', ['outcome']);
  const firstByte = metrics.histogram('signalbox_worker_first_byte_seconds', 'From the request to the first byte of the answer.', SECONDS);
  const total = metrics.histogram('signalbox_worker_attempt_seconds', 'From the request to the end of the answer.', SECONDS);
  const tokens = metrics.counter('signalbox_worker_tokens_total', 'Tokens booked.', ['bucket', 'source']);
  const suspects = metrics.counter('signalbox_worker_suspect_usage_total', 'Attempts whose usage figures are hard to believe.', []);
  const imageCalls = metrics.counter('signalbox_worker_image_calls_total', 'Calls of the image API by how they ended.', ['outcome']);
  const imagesMade = metrics.counter('signalbox_worker_images_total', 'Images that the provider made.', []);
  const imageSeconds = metrics.histogram('signalbox_worker_image_call_seconds', 'From a call of the image API to the end of its answer.', SECONDS);
  const costs = { gateway: 0n, byok: 0n };
  const saved = { gateway: 0n, byok: 0n };
  const byPayer = (sums: typeof costs) => [
    { labels: { payer: 'gateway' }, value: Number(sums.gateway) },
    { labels: { payer: 'byok' }, value: Number(sums.byok) },
  ];
  metrics.observed('counter', 'signalbox_worker_cost_nano_usd_total', 'Cost of attempts at the card they were sent with, in nano-dollars, by who pays the provider.', ['payer'], () => byPayer(costs));
  // Not a counter: an attempt may cost more than the reference, so the value can fall.
  metrics.observed('gauge', 'signalbox_worker_savings_nano_usd', 'Cost of the reference model less the cost, in nano-dollars, since the start.', ['payer'], () => byPayer(saved));
  const inFlight = metrics.gauge('signalbox_worker_in_flight', 'Attempts under way.');
  const draining = metrics.gauge('signalbox_worker_draining', 'Attempts under way whose client is gone.');
  return {
    attempt: (outcome, firstByteMs, totalMs) => {
      attempts.inc({ outcome });
      total.observe(totalMs / 1_000);
      if (firstByteMs > 0) firstByte.observe(firstByteMs / 1_000);
    },
    tokens: (counts, source) => {
      for (const bucket of BUCKETS) if (counts[bucket] > 0) tokens.inc({ bucket, source }, counts[bucket]);
    },
    charged: (payer, costNanoUsd, savingsNanoUsd) => {
      costs[payer] += costNanoUsd;
      saved[payer] += savingsNanoUsd;
    },
    suspect: () => suspects.inc({}),
    images: (outcome, count, seconds) => {
      imageCalls.inc({ outcome });
      imageSeconds.observe(seconds);
      if (count > 0) imagesMade.inc({}, count);
    },
    inFlight: (count) => inFlight.set(count),
    draining: (count) => draining.set(count),
  };
}

/** Metrics of the write-ahead log. Records that wait on this disk are money that the ledger does not know of yet. */
export function observeJournal(metrics: Metrics, journal: Pick<OpenJournal, 'state' | 'isRegistered' | 'recordsWritten' | 'recordsRefused' | 'diskFailures' | 'recordsAfter' | 'unbookedMs'>): void {
  const one = (value: number) => [{ labels: {}, value }];
  metrics.observed('gauge', 'signalbox_worker_wal_unshipped_records', 'Records written that the bus has not taken.', [], () => one(journal.recordsAfter(journal.state().shippedSeq)));
  metrics.observed('gauge', 'signalbox_worker_wal_unbooked_records', 'Records written that the ledger has not committed.', [], () => one(journal.recordsAfter(journal.state().ledgerSeq)));
  metrics.observed('gauge', 'signalbox_worker_wal_unbooked_seconds', 'How long the oldest record that is to be booked has waited for the ledger; 0 = none does.', [], () => one(journal.unbookedMs() / 1_000));
  metrics.observed('gauge', 'signalbox_worker_wal_refused_records', 'Records that the disk of the log refused, and those behind them.', [], () => one(journal.recordsRefused()));
  metrics.observed('counter', 'signalbox_worker_wal_disk_failures_total', 'How often the disk refused to write the log, or failed to make it durable.', ['call'], () => Object.entries(journal.diskFailures()).map(([call, value]) => ({ labels: { call }, value: Number(value) })));
  metrics.observed('counter', 'signalbox_worker_wal_records_total', 'Records written to the log.', [], () => one(journal.recordsWritten()));
  metrics.observed('gauge', 'signalbox_worker_wal_registered', '1 once billing knows this writer; a worker takes no work before.', [], () => one(journal.isRegistered() ? 1 : 0));
}

export function observeBreakers(metrics: Metrics, breakers: EndpointBreakers): void {
  metrics.observed('gauge', 'signalbox_worker_breakers', 'Endpoints that were asked, by the state of the breaker in front of them.', ['state'], () => {
    const counts = breakers.states();
    return Object.entries(counts).map(([state, value]) => ({ labels: { state }, value }));
  });
}

export function observeCredentials(metrics: Metrics, counts: () => { readonly benched: number; readonly doubtful: number; readonly usable: number }): void {
  metrics.observed('gauge', 'signalbox_worker_credentials', 'Credentials of the operator: benched after a refusal, off the bench and not taken since, or usable.', ['state'], () => {
    const { benched, doubtful, usable } = counts();
    return [
      { labels: { state: 'benched' }, value: benched },
      { labels: { state: 'doubtful' }, value: doubtful },
      { labels: { state: 'usable' }, value: usable },
    ];
  });
}
