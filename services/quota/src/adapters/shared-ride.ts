/**
 * Delays work that no client waits for, so that it shares a round trip with work that one does. While awaited calls follow each other
 * closely, the delayed work begins just before the next of them. Order is the same as without the delay, and the store and this process wake once for both.
 */
import type { Clock } from '@signalbox/kernel/clock';

export interface SharedRide {
  /** Begins `work` at the next `depart`, or after `waitMs` at the latest; at once if the last departure was `waitMs` ago or more. Settles as `work` does. */
  board<Answer>(work: () => Promise<Answer>): Promise<Answer>;
  /** Call before work that a client waits for: begins the delayed work, in its order. */
  depart(): void;
}

export function createSharedRide(clock: Pick<Clock, 'monotonicMs' | 'setTimer'>, waitMs: number): SharedRide {
  let boarded: (() => void)[] = [];
  let lastDepartureMs = -Infinity;
  /** When the oldest delayed work must begin. */
  let endMs = 0;
  /** A timer is set. It is not cancelled at a departure: cancelling would not save the wake-up. */
  let isArmed = false;

  const go = (): void => {
    const all = boarded;
    boarded = [];
    for (const begin of all) begin();
  };
  const arm = (delayMs: number): void => {
    isArmed = true;
    clock.setTimer(delayMs, expire, { unref: true });
  };
  const expire = (): void => {
    isArmed = false;
    const restMs = endMs - clock.monotonicMs();
    if (boarded.length > 0 && restMs > 0) arm(restMs);
    else go();
  };

  return {
    board: (work) => {
      const nowMs = clock.monotonicMs();
      if (boarded.length === 0) {
        if (nowMs - lastDepartureMs >= waitMs) return work();
        endMs = nowMs + waitMs;
        if (!isArmed) arm(waitMs);
      }
      return new Promise((resolve, reject) => {
        boarded.push(() => void work().then(resolve, reject));
      });
    },
    depart: () => {
      lastDepartureMs = clock.monotonicMs();
      if (boarded.length > 0) go();
    },
  };
}
