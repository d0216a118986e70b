/** Metrics of one service: base units, counters end in `_total`, labels from small closed sets. */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

export interface Metrics {
  readonly registry: Registry;
  counter<Label extends string>(name: string, help: string, labelNames: readonly Label[]): Counter<Label>;
  gauge<Label extends string>(name: string, help: string, labelNames: readonly Label[]): Gauge<Label>;
  /** Buckets in the metric's base unit (seconds, bytes). */
  histogram<Label extends string>(name: string, help: string, labelNames: readonly Label[], buckets: readonly number[]): Histogram<Label>;
}

export interface MetricsOptions {
  readonly service: string;
  /** Process metrics (CPU, memory, event-loop lag): once a process. */
  readonly withProcessMetrics: boolean;
}

export function createMetrics({ service, withProcessMetrics }: MetricsOptions): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ service });
  if (withProcessMetrics) collectDefaultMetrics({ register: registry });
  return {
    registry,
    counter: (name, help, labelNames) => new Counter({ name, help, labelNames: [...labelNames], registers: [registry] }),
    gauge: (name, help, labelNames) => new Gauge({ name, help, labelNames: [...labelNames], registers: [registry] }),
    histogram: (name, help, labelNames, buckets) => new Histogram({ name, help, labelNames: [...labelNames], buckets: [...buckets], registers: [registry] }),
  };
}
