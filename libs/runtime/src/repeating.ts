/** Periodic background work, for as long as a service runs. */
import type { Clock, Timer } from '@signalbox/kernel/clock';

export interface RepeatingOptions {
  readonly clock: Clock;
  /** Milliseconds from the start, or the end of a round, to the next round; called each time. */
  readonly delayMs: () => number;
  readonly work: () => Promise<unknown>;
  /** Called if a round fails; the next one follows all the same. */
  readonly onFailure: (error: unknown) => void;
}

export interface Repeating {
  /** No further round begins; a running one is left to finish. Safe to call twice. */
  stop(): void;
}

/** Rounds never overlap. Waiting for the next one does not keep the process alive. */
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
