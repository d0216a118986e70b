/**
 * What nobody waits for rides along: while calls that somebody waits for follow each other closely, it is held back for the next of them
 * and goes just before it. So whatever is told later is decided after it, as without this, and store and process wake once for both.
 */
import type { Clock } from '@signalbox/kernel/clock';

export interface SharedRide {
  /** Begins `work` with the next departure, at the latest in `waitMs`; at once when the last one was so long ago. Settles as `work` does. */
  board<Answer>(work: () => Promise<Answer>): Promise<Answer>;
  /** Somebody is waited for: begins what is on board, in its order. */
  depart(): void;
}

export function createSharedRide(clock: Pick<Clock, 'monotonicMs' | 'setTimer'>, waitMs: number): SharedRide {
  let boarded: (() => void)[] = [];
  let lastDepartureMs = -Infinity;
  /** When the first on board has waited long enough. */
  let endMs = 0;
  /** Left to fire when a departure comes before it: cancelling wakes the process all the same. */
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
