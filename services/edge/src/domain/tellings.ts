/** Tells workers that edge is alive, and waits until they have written down an outcome before its client gets the answer. */
import type { Clock, Timer } from '@signalbox/kernel/clock';
import type { Answer } from './answer.js';

/** A client waits at most this long for the end of its answer; a worker that is away is told again later. */
const WAIT_MS_MAX = 2_000;
/** 10 s: after 30 s without a message a worker concludes that edge is lost, and ends the hold. */
export const TEND_MS = 10_000;

/** Calls `tend` now and every 10 s. Returns the function that stops it. */
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
 * Waits until workers have written down what they were told, for 2 s at most. True = all have; never rejects. If edge and
 * worker were killed before that, nobody would know the outcome, and the worker's log would decide: an attempt that is not
 * marked as discarded is charged, a round that is not marked as delivered is not. `onWait` gets a function that ends the
 * wait early.
 */
export function written(tellings: readonly Promise<boolean>[], clock: Clock, onWait?: (giveUp: () => void) => void): Promise<boolean> {
  if (tellings.length === 0) return Promise.resolve(true);
  return new Promise((resolve) => {
    const end = (isHeard: boolean): void => {
      patience.cancel();
      resolve(isHeard);
    };
    const patience = clock.setTimer(WAIT_MS_MAX, () => end(false));
    void Promise.all(tellings).then((heard) => end(heard.every(Boolean)));
    onWait?.(() => end(false));
  });
}

/**
 * As `written`, for a complete answer that the client gets after the wait. The wait ends early when the client has left, and
 * when a drain is over: the request would otherwise be refused with the statement that nothing is charged.
 */
export function writtenAsGiven(answer: Answer, tellings: readonly Promise<boolean>[], clock: Clock): Promise<boolean> {
  return written(tellings, clock, (giveUp) => {
    const onStop = (): boolean => {
      giveUp();
      return true;
    };
    answer.attend({ onSlow: () => undefined, onDrain: () => undefined, onGone: giveUp, isGiving: true, onStop });
  });
}
