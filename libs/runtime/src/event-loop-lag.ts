/**
 * Measures event-loop lag, with prom-client's metric names, which dashboards expect. prom-client itself checks every 10 ms,
 * which wakes an idle process a hundred times a second: 1 % of a core per process (measured, Node 20). A check of an idle
 * process costs up to half a millisecond, since its code and data are out of the caches. So a nearly idle process is
 * not woken at all; instead the turns of its loop are measured as they happen.
 */
import type { Clock } from '@signalbox/kernel/clock';
import { createHistogram, performance, type RecordableHistogram } from 'node:perf_hooks';
import { Gauge, type Registry } from 'prom-client';

/** Measurements of the event loop. */
export interface Loop {
  /** Milliseconds since its start in which it did not wait for events. */
  workedMs(): number;
  /** Calls back once in the next turn, after socket events. Does not wake the loop, and does not keep the process alive. */
  inNextTurn(callback: () => void): void;
}

export const systemLoop: Loop = {
  workedMs: () => performance.eventLoopUtilization().active,
  // An immediate runs in every turn, but only a referenced one keeps the loop from waiting.
  inNextTurn: (callback) => void setImmediate(callback).unref(),
};

/** Interval between checks. A loop that was blocked for longer is always noticed; the alert's threshold is the same. */
export const LOOK_MS = 250;
/** With less work than this between two checks, checking stops; after this much work, it resumes. */
export const BUSY_MS = 25;
/** An hour; a longer lag counts as one. */
const LAG_NS_MAX = 3_600_000_000_000;
/** Significant digits of the histogram. Three, with more than an hour, would take 0.4 MB of each process. */
const FIGURES = 2;
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

/**
 * Registers a gauge for each of `LAGS`. They cover the checks since the last scrape, each of which measures how late a timer
 * fired; and, while checking is stopped, the duration of turns that took longer than the check interval. A scrape without
 * a check since the last one repeats the last values, or reports no lag if there was nothing to check.
 */
export function watchEventLoopLag(registry: Registry, clock: Clock, loop: Loop): void {
  const lags = createHistogram({ highest: LAG_NS_MAX, figures: FIGURES });
  let isResting = false;
  // The histogram accepts only whole numbers from 1.
  const note = (lagMs: number): void => lags.record(Math.min(LAG_NS_MAX, Math.max(1, Math.round(lagMs * NS_PER_MS))));

  const look = (): void => {
    isResting = false;
    const dueMs = clock.monotonicMs() + LOOK_MS;
    const beganMs = loop.workedMs();
    clock.setTimer(
      LOOK_MS,
      () => {
        note(clock.monotonicMs() - dueMs);
        if (loop.workedMs() - beganMs < BUSY_MS) rest();
        else look();
      },
      { unref: true },
    );
  };

  const rest = (): void => {
    isResting = true;
    const beganMs = loop.workedMs();
    let turnedMs = beganMs;
    const turn = (): void => {
      const workedMs = loop.workedMs();
      if (workedMs - turnedMs > LOOK_MS) note(workedMs - turnedMs);
      turnedMs = workedMs;
      if (workedMs - beganMs < BUSY_MS) loop.inNextTurn(turn);
      else look();
    };
    loop.inNextTurn(turn);
  };

  look();
  let hasNews = false;
  for (const what of LAGS) {
    const gauge = new Gauge({
      name: lagName(what),
      help: `Delay of the event loop in seconds, ${what}.`,
      registers: [registry],
      // Gauges are collected in the order of registration.
      collect: () => {
        if (what === LAGS[0]) {
          if (isResting && lags.count === 0) note(0);
          hasNews = lags.count > 0;
        }
        if (hasNews) gauge.set(nsOf(lags, what) / NS_PER_SECOND);
        if (what === LAGS.at(-1)) lags.reset();
      },
    });
  }
}
