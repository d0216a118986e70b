/** The only real clock and timers. */
import type { Clock } from '@signalbox/kernel/clock';

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer: (delayMs, fire, options) => {
    const timer = setTimeout(fire, delayMs);
    if (options?.unref === true) timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
};
