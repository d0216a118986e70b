/** Metrics of edge. Labels come from small closed sets. */
import type { Metrics } from '@signalbox/runtime/metrics';
import type { Authenticator } from './adapters/authenticator.js';
import type { AttemptReport } from './domain/answer.js';
import type { Unread } from './domain/reader-pace.js';
import type { RequestPlaces } from './domain/request-places.js';

export interface EdgeMetrics {
  chatStarted(): void;
  chatEnded(status: number, elapsedMs: number): void;
  chatConducted(result: string, attempts: readonly AttemptReport[]): void;
  error(code: string): void;
  /** An answer was given up for its reader. */
  unread(why: Unread): void;
  claimTakenOver(): void;
  /** A request was admitted from an advance, without a call to quota. */
  servedFromAdvance(): void;
  /** Quota was away, and edge decided the admission by itself. */
  decidedLocally(isAdmitted: boolean): void;
  /** A plan made for an earlier request was used, so that the request did not wait for routing. */
  planReused(): void;
  /** Requests of the chat route in work. */
  inFlight(): number;
}

export function createEdgeMetrics(metrics: Metrics, providers: ReadonlySet<string>): EdgeMetrics {
  const requests = metrics.counter('signalbox_edge_chat_requests_total', 'Chat completions by HTTP status.', ['status']);
  const seconds = metrics.histogram('signalbox_edge_chat_duration_seconds', 'Time from the request line to the end of the answer.', [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120]);
  const results = metrics.counter('signalbox_edge_chat_results_total', 'Conducted requests by result.', ['result']);
  const attempts = metrics.counter('signalbox_edge_attempts_total', 'Attempts by provider and result.', ['provider', 'result']);
  const errors = metrics.counter('signalbox_edge_errors_total', 'Errors answered, by public code.', ['code']);
  const unread = metrics.counter('signalbox_edge_unread_answers_total', 'Answers given up because their clients read nothing of them for a minute (stalled), or too little for too long (slow).', ['why']);
  const takenOver = metrics.counter('signalbox_edge_claims_taken_over_total', 'Requests with an Idempotency-Key that were run again, since the ledger had no trace of the first run after 15 minutes.', []);
  const running = metrics.gauge('signalbox_edge_chat_in_flight', 'Chat completions in work.');
  const served = metrics.counter('signalbox_edge_advance_admissions_total', 'Requests admitted from an advance, without a call to quota.', []);
  const local = metrics.counter('signalbox_edge_local_admissions_total', 'Requests decided without quota while it was away, by whether they were admitted.', ['admitted']);
  const reused = metrics.counter('signalbox_edge_plans_reused_total', 'Requests that used a plan made for an earlier request, and so did not wait for routing.', []);
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
    claimTakenOver: () => takenOver.inc({}),
    error: (code) => errors.inc({ code }),
    unread: (why) => unread.inc({ why }),
    servedFromAdvance: () => served.inc({}),
    decidedLocally: (isAdmitted) => local.inc({ admitted: String(isAdmitted) }),
    planReused: () => reused.inc({}),
    inFlight: () => count,
  };
}

/** The cache of keys: how often it answered, and how much it holds. */
export function observeKeys(metrics: Metrics, authenticator: Pick<Authenticator, 'counts' | 'size'>): void {
  metrics.observed('counter', 'signalbox_edge_keys_presented_total', 'Keys presented, by how they were judged: from the cache, by asking accounts, or for their form.', ['judged'], () => {
    const { cached, lookedUp, malformed } = authenticator.counts();
    return [
      { labels: { judged: 'cached' }, value: cached },
      { labels: { judged: 'looked_up' }, value: lookedUp },
      { labels: { judged: 'malformed' }, value: malformed },
    ];
  });
  metrics.observed('gauge', 'signalbox_edge_keys_cached', 'Keys in the cache.', [], () => [{ labels: {}, value: authenticator.size() }]);
}

export function observePlaces(metrics: Metrics, places: Pick<RequestPlaces, 'arriving'>): void {
  metrics.observed('gauge', 'signalbox_edge_chat_arriving', 'Of the chat completions in work, those whose key is looked up or whose body is not whole yet.', [], () => [{ labels: {}, value: places.arriving() }]);
}
