/**
 * How late the event loop is, under the names that prom-client gives it and its dashboards read. prom-client looks every
 * 10 ms, which wakes an idle process a hundred times a second: 1 % of a core for each of them (measured, Node 20).
 */
import type { Clock } from '@signalbox/kernel/clock';
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { Gauge, type Registry } from 'prom-client';

/** Between two looks. A loop that stood still for longer is always noticed; the alert begins there. */
export const LOOK_MS = 250;
const NS_PER_MS = 1e6;
const NS_PER_SECOND = 1e9;

export const LAGS = ['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99'] as const;
export const lagName = (what: (typeof LAGS)[number]): string => `nodejs_eventloop_lag_${what}_seconds`;

const nsOf = (lags: RecordableHistogram, what: (typeof LAGS)[number]): number => {
  switch (what) {
    case 'min':
    case 'max':
    case 'mean':
    case 'stddev':
      return lags[what];
    case 'p50':
    case 'p90':
    case 'p99':
      return lags.percentile(Number(what.slice(1)));
  }
};

/** Registers a gauge for each of `LAGS`: how much later than due a timer fired, of the looks since the last scrape; a scrape without a look before it repeats the last. */
export function watchEventLoopLag(registry: Registry, clock: Clock): void {
  const lags = createHistogram();
  const look = (): void => {
    const dueMs = clock.monotonicMs() + LOOK_MS;
    clock.setTimer(
      LOOK_MS,
      () => {
        // The histogram takes whole numbers from 1.
        lags.record(Math.max(1, Math.round((clock.monotonicMs() - dueMs) * NS_PER_MS)));
        look();
      },
      { unref: true },
    );
  };
  look();
  let hasNews = false;
  for (const what of LAGS) {
    const gauge = new Gauge({
      name: lagName(what),
      help: `Delay of the event loop in seconds, ${what}.`,
      registers: [registry],
      // Gauges are read in the order in which they were registered.
      collect: () => {
        if (what === LAGS[0]) hasNews = lags.count > 0;
        if (hasNews) gauge.set(nsOf(lags, what) / NS_PER_SECOND);
        if (what === LAGS.at(-1)) lags.reset();
      },
    });
  }
}
