/** Waiting until workers have written down that an attempt is not charged, before its client is told so. */
import type { Clock } from '@signalbox/kernel/clock';

/** A client waits no longer for its error: a worker that is away is told again later. */
const WAIT_MS_MAX = 2_000;

/**
 * Resolves when each telling has resolved, at most two seconds later; never rejects. Until then a kill of edge and worker
 * together would leave nobody who knows, and what a log does not know to be discarded is charged.
 */
export function written(tellings: readonly Promise<void>[], clock: Clock): Promise<void> {
  if (tellings.length === 0) return Promise.resolve();
  return new Promise((resolve) => {
    const patience = clock.setTimer(WAIT_MS_MAX, resolve);
    void Promise.all(tellings).finally(() => {
      patience.cancel();
      resolve();
    });
  });
}
