/** A histogram with plain counts, in the format that prom-client scrapes. */
import { Histogram } from 'prom-client';

export class HistogramTally {
  sum = 0;
  /** Observations per bucket, not cumulative; the last one is for values above all bounds. */
  readonly counts: number[];

  /** `bounds` are ascending; an observation counts in the first bucket whose bound is not below it. */
  constructor(readonly bounds: readonly number[]) {
    this.counts = new Array<number>(bounds.length + 1).fill(0);
  }

  observe(value: number): void {
    let bucket = 0;
    while (bucket < this.bounds.length && value > (this.bounds[bucket] ?? Infinity)) bucket += 1;
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1;
    this.sum += value;
  }
}

interface ScrapedValue {
  readonly metricName: string;
  readonly labels: { readonly le?: number | '+Inf' };
  readonly sharedLabels: object;
  readonly value: number;
}

export class TalliedHistogram extends Histogram {
  constructor(
    private readonly metric: string,
    private readonly help: string,
    private readonly tally: HistogramTally,
  ) {
    super({ name: metric, help, buckets: [...tally.bounds], registers: [] });
  }

  /** Called by the registry; returns our counts in place of prom-client's own. */
  getForPromString(): Promise<{ readonly name: string; readonly help: string; readonly type: 'histogram'; readonly values: readonly ScrapedValue[] }> {
    const { metric, help, tally } = this;
    const values: ScrapedValue[] = [];
    let total = 0;
    tally.counts.forEach((count, bucket) => {
      total += count;
      values.push({ metricName: `${metric}_bucket`, labels: { le: tally.bounds[bucket] ?? '+Inf' }, sharedLabels: {}, value: total });
    });
    values.push({ metricName: `${metric}_sum`, labels: {}, sharedLabels: {}, value: tally.sum }, { metricName: `${metric}_count`, labels: {}, sharedLabels: {}, value: total });
    return Promise.resolve({ name: metric, help, type: 'histogram', values });
  }
}
