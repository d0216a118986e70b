/** Metrics of the routing service. */
import type { Metrics } from '@signalbox/runtime/metrics';

export interface RoutingMetrics {
  /** `result`: plan, or the kind of refusal. */
  decided(result: string, seconds: number): void;
  reloaded(result: 'loaded' | 'refused'): void;
}

const DECISION_BUCKETS_SECONDS = [0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.01];

export function createRoutingMetrics(metrics: Metrics): RoutingMetrics {
  const decisions = metrics.counter('signalbox_routing_decisions_total', 'Decisions by result.', ['result']);
  const duration = metrics.histogram('signalbox_routing_decision_seconds', 'Time a decision took.', DECISION_BUCKETS_SECONDS);
  const reloads = metrics.counter('signalbox_routing_catalog_reloads_total', 'Catalog loads by result.', ['result']);
  return {
    decided: (result, seconds) => {
      decisions.inc({ result });
      duration.observe(seconds);
    },
    reloaded: (result) => reloads.inc({ result }),
  };
}
