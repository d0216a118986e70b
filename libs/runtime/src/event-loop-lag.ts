/**
 * How late the event loop is, under the names that prom-client gives it and its dashboards read. prom-client looks every
 * 10 ms, which wakes an idle process a hundred times a second: 1 % of a core for each of them (measured, Node 20). A look
 * of an idle process costs it up to half a millisecond, since all it needs is cold: one that has next to nothing to do is
 * not woken at all, and the turns of its loop are measured as they come.
 */
import type { Clock } from '@signalbox/kernel/clock';
import { createHistogram, performance, type RecordableHistogram } from 'node:perf_hooks';
import { Gauge, type Registry } from 'prom-client';

/** What the event loop says of itself. */
export interface Loop {
  /** Milliseconds that it has not waited for something to happen, since it began. */
  workedMs(): number;
  /** Calls back once in the next turn, after what its sockets brought. No turn begins for this, and no process lives on for it. */
  inNextTurn(callback: () => void): void;
}

export const systemLoop: Loop = {
  workedMs: () => performance.eventLoopUtilization().active,
  // Looked at in every turn, but only one that is referenced keeps the loop from waiting.
  inNextTurn: (callback) => void setImmediate(callback).unref(),
};

/** Between two looks. A loop that stood still for longer is always noticed; the alert begins there. */
export const LOOK_MS = 250;
/** Work between two looks with less than which looking ends; and work after which it begins again. */
export const BUSY_MS = 25;
/** An hour: a longer one counts as that. */
const LAG_NS_MAX = 3_600_000_000_000;
/** Three, of more than an hour, are 0.4 MB of every process. */
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
 * Registers a gauge for each of `LAGS`: how much later than due a timer fired, of the looks since the last scrape, and how
 * long the turns took that stood still for longer than from one look to the next while nobody looked. A scrape without a
 * look before it repeats the last, or tells of a loop on time where there was nothing to look at.
 */
export function watchEventLoopLag(registry: Registry, clock: Clock, loop: Loop): void {
  const lags = createHistogram({ highest: LAG_NS_MAX, figures: FIGURES });
  let isResting = false;
  // The histogram takes whole numbers from 1.
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
      // Gauges are read in the order in which they were registered.
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
