/** What workers are told beside outcomes: that edge lives; and waiting until they have written down what they would not conclude by themselves, before a client is told so. */
import type { Clock, Timer } from '@signalbox/kernel/clock';

/** A client waits no longer for its end: a worker that is away is told again later. */
const WAIT_MS_MAX = 2_000;
/** 10 s: workers wait for 30 before they take edge for dead, and free the hold. */
export const TEND_MS = 10_000;

/** Calls `tend` now and every ten seconds, until what it answers is called. */
export function tending(clock: Clock, tend: () => void): () => void {
  let timer: Timer | undefined;
  const again = (): void => {
    tend();
    timer = clock.setTimer(TEND_MS, again);
  };
  again();
  return () => timer?.cancel();
}

/**
 * Resolves when each telling has resolved, at most two seconds later; with true where each was heard; never rejects. Until then a kill of edge and worker
 * together would leave nobody who knows: what a log does not know to be discarded is charged, and rounds that it does not
 * know to be delivered are not.
 */
export function written(tellings: readonly Promise<boolean>[], clock: Clock): Promise<boolean> {
  if (tellings.length === 0) return Promise.resolve(true);
  return new Promise((resolve) => {
    const patience = clock.setTimer(WAIT_MS_MAX, () => resolve(false));
    void Promise.all(tellings).then((heard) => {
      patience.cancel();
      resolve(heard.every(Boolean));
    });
  });
}
