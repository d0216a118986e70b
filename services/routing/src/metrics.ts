/** Metrics of the routing service. */
import type { BreakerState } from '@signalbox/router-core/catalog';
import type { OutlierReason } from '@signalbox/router-core/outliers';
import type { Metrics } from '@signalbox/runtime/metrics';

export interface RoutingMetrics {
  /** `result`: plan, or the kind of refusal. */
  decided(result: string, seconds: number): void;
  reloaded(result: 'loaded' | 'refused'): void;
  /** A decision was not recorded, since the rate limit of records was reached. */
  unrecorded(): void;
}

/** Gauges for the endpoints in the live statistics. The labels, endpoint and provider, come from the catalog. */
export function observeEndpoints(metrics: Metrics, read: () => Iterable<{ readonly provider: string; readonly breaker: BreakerState; readonly ejectedFor: OutlierReason | undefined; readonly latencyMsP75: number | undefined }>): void {
  metrics.observed('gauge', 'signalbox_routing_endpoints', 'Endpoints with attempts in the last minutes, by provider and breaker.', ['provider', 'breaker'], () => {
    const counts = new Map<string, Record<BreakerState, number>>();
    for (const { provider, breaker } of read()) {
      let own = counts.get(provider);
      if (own === undefined) counts.set(provider, (own = { closed: 0, 'half-open': 0, open: 0 }));
      own[breaker] += 1;
    }
    return [...counts].flatMap(([provider, own]) => Object.entries(own).map(([breaker, value]) => ({ labels: { provider, breaker }, value })));
  });
  metrics.observed('gauge', 'signalbox_routing_ejected_endpoints', 'Endpoints left out for a while as outliers of their model, by provider and reason.', ['provider', 'reason'], () => {
    const counts = new Map<string, Record<OutlierReason, number>>();
    for (const { provider, ejectedFor } of read()) {
      let own = counts.get(provider);
      if (own === undefined) counts.set(provider, (own = { failures: 0, latency: 0 }));
      if (ejectedFor !== undefined) own[ejectedFor] += 1;
    }
    return [...counts].flatMap(([provider, own]) => Object.entries(own).map(([reason, value]) => ({ labels: { provider, reason }, value })));
  });
  metrics.observed('gauge', 'signalbox_routing_latency_p75_seconds', 'Time to the first token, P75 of five minutes, of the fastest endpoint of each provider.', ['provider'], () => {
    const fastest = new Map<string, number>();
    for (const { provider, latencyMsP75 } of read()) if (latencyMsP75 !== undefined) fastest.set(provider, Math.min(fastest.get(provider) ?? Infinity, latencyMsP75 / 1_000));
    return [...fastest].map(([provider, value]) => ({ labels: { provider }, value }));
  });
}

export function observeCatalog(metrics: Metrics, read: () => { readonly models: number; readonly endpoints: number }): void {
  metrics.observed('gauge', 'signalbox_routing_catalog_entries', 'What the catalog in use holds.', ['kind'], () => {
    const { models, endpoints } = read();
    return [
      { labels: { kind: 'models' }, value: models },
      { labels: { kind: 'endpoints' }, value: endpoints },
    ];
  });
}

const DECISION_BUCKETS_SECONDS = [0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.01];

export function createRoutingMetrics(metrics: Metrics): RoutingMetrics {
  const decisions = metrics.counter('signalbox_routing_decisions_total', 'Decisions by result.', ['result']);
  const duration = metrics.histogram('signalbox_routing_decision_seconds', 'Time a decision took.', DECISION_BUCKETS_SECONDS);
  const reloads = metrics.counter('signalbox_routing_catalog_reloads_total', 'Catalog loads by result.', ['result']);
  // Create the series at zero: otherwise Prometheus does not see the first event as an increase, and the alert would miss it.
  for (const result of ['loaded', 'refused']) reloads.labels({ result });
  const unrecorded = metrics.counter('signalbox_routing_decisions_unrecorded_total', 'Decisions left unrecorded because too many were recorded of late.', []);
  return {
    unrecorded: () => unrecorded.inc({}),
    decided: (result, seconds) => {
      decisions.inc({ result });
      duration.observe(seconds);
    },
    reloaded: (result) => reloads.inc({ result }),
  };
}
