/** The only real clock and timers. */
import type { Clock, Timer } from '@signalbox/kernel/clock';

class SystemTimer implements Timer {
  constructor(private readonly timeout: NodeJS.Timeout) {}

  cancel(): void {
    clearTimeout(this.timeout);
  }
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer: (delayMs, fire, options) => {
    const timeout = setTimeout(fire, delayMs);
    if (options?.unref === true) timeout.unref();
    return new SystemTimer(timeout);
  },
};
