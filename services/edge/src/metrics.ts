/** Metrics of edge. Labels come from small closed sets. */
import type { Metrics } from '@signalbox/runtime/metrics';
import type { AttemptReport } from './domain/answer.js';

export interface EdgeMetrics {
  chatStarted(): void;
  chatEnded(status: number, elapsedMs: number): void;
  chatConducted(result: string, attempts: readonly AttemptReport[]): void;
  error(code: string): void;
  /** Requests of the chat route in work. */
  inFlight(): number;
}

export function createEdgeMetrics(metrics: Metrics, providers: ReadonlySet<string>): EdgeMetrics {
  const requests = metrics.counter('signalbox_edge_chat_requests_total', 'Chat completions by HTTP status.', ['status']);
  const seconds = metrics.histogram('signalbox_edge_chat_duration_seconds', 'Time from the request line to the end of the answer.', [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120]);
  const results = metrics.counter('signalbox_edge_chat_results_total', 'Conducted requests by what became of them.', ['result']);
  const attempts = metrics.counter('signalbox_edge_attempts_total', 'Attempts by provider and result.', ['provider', 'result']);
  const errors = metrics.counter('signalbox_edge_errors_total', 'Errors answered, by public code.', ['code']);
  const running = metrics.gauge('signalbox_edge_chat_in_flight', 'Chat completions in work.');
  let count = 0;
  return {
    chatStarted: () => {
      count += 1;
      running.set(count);
    },
    chatEnded: (status, elapsedMs) => {
      count -= 1;
      running.set(count);
      requests.inc({ status: String(status) });
      seconds.observe(elapsedMs / 1_000);
    },
    chatConducted: (result, reports) => {
      results.inc({ result });
      for (const { provider, failed } of reports) attempts.inc({ provider: providers.has(provider) ? provider : 'other', result: failed?.class.toLowerCase() ?? 'answered' });
    },
    error: (code) => errors.inc({ code }),
    inFlight: () => count,
  };
}
