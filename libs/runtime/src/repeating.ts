/** Background work that is done again and again for as long as a service runs. */
import type { Clock, Timer } from '@signalbox/kernel/clock';

export interface RepeatingOptions {
  readonly clock: Clock;
  /** Milliseconds from the end of one round, or from the beginning, to the next; asked anew each time. */
  readonly delayMs: () => number;
  readonly work: () => Promise<unknown>;
  /** Hears of a round that failed; the next comes all the same. */
  readonly onFailure: (error: unknown) => void;
}

export interface Repeating {
  /** No further round begins, also where one is in work now: that one is left to end by itself. Safe to call twice. */
  stop(): void;
}

/** Rounds never overlap. Waiting for the next keeps no process alive. */
export function repeat({ clock, delayMs, work, onFailure }: RepeatingOptions): Repeating {
  let isStopped = false;
  let timer: Timer | undefined;
  const round = (): void => {
    void work().catch(onFailure).finally(arm);
  };
  const arm = (): void => {
    if (!isStopped) timer = clock.setTimer(delayMs(), round, { unref: true });
  };
  arm();
  return {
    stop: () => {
      isStopped = true;
      timer?.cancel();
    },
  };
}
