/** What workers are told beside outcomes: that edge lives; and waiting until they have written down what they would not conclude by themselves, before a client is told so. */
import type { Clock, Timer } from '@signalbox/kernel/clock';
import type { Answer } from './answer.js';

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
 * Resolves when each telling has resolved, at most two seconds later; with true where each was heard; never rejects. Until
 * then a kill of edge and worker together would leave nobody who knows: what a log does not know to be discarded is
 * charged, and rounds that it does not know to be delivered are not. `onWait` is given what ends the wait sooner.
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
 * As `written`, of an answer that is complete, is told as delivered, and is given then. At the end of a drain it is given
 * at once: its client would else be told that it costs nothing. A client that left is not waited for either.
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
