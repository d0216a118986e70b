/** Metrics of one service: base units, counters end in `_total`, labels from small closed sets. */
import { collectDefaultMetrics, Counter as PromCounter, Gauge as PromGauge, Registry } from 'prom-client';
import { systemClock } from './clock.js';
import { lagName, LAGS, systemLoop, watchEventLoopLag } from './event-loop-lag.js';
import { HistogramTally, TalliedHistogram } from './histogram.js';
import { certificateEndMs } from './tls-files.js';

/** Requests update only plain numbers; prom-client, which would hash labels at each update, reads them at the scrape. */
export interface Metrics {
  readonly registry: Registry;
  counter<Label extends string>(name: string, help: string, labelNames: readonly Label[]): Counter<Label>;
  gauge(name: string, help: string): Gauge;
  /** A metric that is read at the scrape and costs nothing in between. `read` returns each combination of labels once; if it throws, the metric is left out of that scrape. */
  observed<Label extends string>(kind: 'gauge' | 'counter', name: string, help: string, labelNames: readonly Label[], read: () => Observed<Label> | Promise<Observed<Label>>): void;
  /** Buckets in the metric's base unit (seconds, bytes), ascending. */
  histogram(name: string, help: string, buckets: readonly number[]): Histogram;
}

export type LabelValues<Label extends string> = Readonly<Record<Label, string>>;

/** Values by their labels. */
export type Observed<Label extends string> = readonly { readonly labels: LabelValues<Label>; readonly value: number }[];

/** Most values per label; later ones are counted as `other`, so that no input can fill a metrics store. */
export const LABEL_VALUES_MAX = 100;
const OTHER = 'other';

/** The count of one combination of labels. */
export interface Tally {
  /** Adds `by` ≥ 0, by default 1. */
  inc(by?: number): void;
}

export interface Counter<Label extends string> {
  inc(labels: LabelValues<Label>, by?: number): void;
  /** Returns the same object for the same labels; keep it where counting is frequent. */
  labels(labels: LabelValues<Label>): Tally;
}

export interface Gauge {
  set(value: number): void;
}

export interface Histogram {
  observe(value: number): void;
}

export interface MetricsOptions {
  readonly service: string;
  /** Process metrics (CPU, memory, event-loop lag), once per process. */
  readonly withProcessMetrics: boolean;
}

export function createMetrics({ service, withProcessMetrics }: MetricsOptions): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ service });
  if (withProcessMetrics) watchProcess(registry);
  return {
    registry,
    counter: (name, help, labelNames) => createCounter(registry, name, help, labelNames),
    gauge: (name, help) => createGauge(registry, name, help),
    observed: (kind, name, help, labelNames, read) => observe(registry, kind, name, help, labelNames, read),
    histogram: (name, help, buckets) => {
      const tally = new HistogramTally(buckets);
      registry.registerMetric(new TalliedHistogram(name, help, tally));
      return tally;
    },
  };
}

/** Longest delay of a timer, in milliseconds. */
const NEVER_MS = 2_147_483_647;

function watchProcess(registry: Registry): void {
  // prom-client's own event-loop check cannot be turned off, only delayed.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: NEVER_MS });
  for (const what of LAGS) registry.removeSingleMetric(lagName(what));
  watchEventLoopLag(registry, systemClock, systemLoop);
  observe(registry, 'gauge', 'signalbox_rpc_certificate_end_timestamp_seconds', 'When the certificate between services ends, or the authority that signed it, in Unix seconds; absent without one.', [], () => {
    const endMs = certificateEndMs();
    return endMs === undefined ? [] : [{ labels: {}, value: endMs / 1_000 }];
  });
}

class Count implements Tally {
  total = 0;

  inc(by = 1): void {
    this.total += by;
  }
}

/** Counts by label values, with one level of maps per label: a joined key would have to be built and hashed each time. */
interface Level {
  readonly count: Count;
  readonly next: Map<string, Level>;
}

const newLevel = (): Level => ({ count: new Count(), next: new Map() }); // kept: by value of a label, of which there are few; none is dropped.

function createCounter<Label extends string>(registry: Registry, name: string, help: string, labelNames: readonly Label[]): Counter<Label> {
  const root = newLevel();
  const shown: { readonly labels: LabelValues<Label>; readonly count: Count }[] = [];
  // A counter without labels shows its zero.
  if (labelNames.length === 0) shown.push({ labels: {} as LabelValues<Label>, count: root.count });
  const newCountOf = (labels: LabelValues<Label>): Count => {
    const kept: Record<string, string> = {};
    let level = root;
    let isNew = false;
    for (const label of labelNames) {
      const isRoomless = !level.next.has(labels[label]) && level.next.size >= LABEL_VALUES_MAX;
      const value = isRoomless ? OTHER : labels[label];
      kept[label] = value;
      let next = level.next.get(value);
      isNew = next === undefined;
      if (next === undefined) level.next.set(value, (next = newLevel()));
      level = next;
    }
    if (isNew) shown.push({ labels: kept as LabelValues<Label>, count: level.count });
    return level.count;
  };
  const countOf = (labels: LabelValues<Label>): Count => {
    let level = root;
    for (const label of labelNames) {
      const next = level.next.get(labels[label]);
      if (next === undefined) return newCountOf(labels);
      level = next;
    }
    return level.count;
  };
  new PromCounter({
    name,
    help,
    labelNames: [...labelNames],
    registers: [registry],
    collect() {
      this.reset();
      for (const { labels, count } of shown) this.inc(labels, count.total);
    },
  });
  return { inc: (labels, by = 1) => countOf(labels).inc(by), labels: countOf };
}

function observe<Label extends string>(registry: Registry, kind: 'gauge' | 'counter', name: string, help: string, labelNames: readonly Label[], read: () => Observed<Label> | Promise<Observed<Label>>): void {
  const collect = async (metric: { reset(): void; remove(): void }, put: (labels: LabelValues<Label>, value: number) => void): Promise<void> => {
    const values = await Promise.resolve().then(read).catch(() => []);
    metric.reset();
    // A reset sets gauges and counters without labels to zero; remove the value instead if it could not be read.
    if (labelNames.length === 0 && values.length === 0) metric.remove();
    for (const { labels, value } of values) put(labels, value);
  };
  const shape = { name, help, labelNames: [...labelNames], registers: [registry] };
  if (kind === 'gauge') {
    new PromGauge({
      ...shape,
      collect() {
        return collect(this, (labels, value) => this.set(labels, value));
      },
    });
    return;
  }
  new PromCounter({
    ...shape,
    collect() {
      return collect(this, (labels, value) => this.inc(labels, value));
    },
  });
}

function createGauge(registry: Registry, name: string, help: string): Gauge {
  let current = 0;
  new PromGauge({
    name,
    help,
    registers: [registry],
    collect() {
      this.set(current);
    },
  });
  return {
    set: (value) => {
      current = value;
    },
  };
}
