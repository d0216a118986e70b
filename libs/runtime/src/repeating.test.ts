import { expect, test } from '@jest/globals';
import { repeat } from './repeating.js';
import { handClock } from './testing/hand-clock.js';

const DELAY_MS = 1_000;

const oneTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Rounds whose end the test controls. */
function rig() {
  const clock = handClock();
  const rounds: { readonly end: () => void; readonly fail: () => void }[] = [];
  const failures: unknown[] = [];
  const repeating = repeat({ clock, delayMs: () => DELAY_MS, work: () => new Promise<void>((resolve, reject) => rounds.push({ end: resolve, fail: () => reject(new Error('away')) })), onFailure: (error) => failures.push(error) });
  return { clock, rounds, failures, repeating };
}

test('the next round begins a delay after the one before has ended, or has failed', async () => {
  const { clock, rounds, failures } = rig();
  clock.advance(DELAY_MS - 1);
  expect(rounds).toHaveLength(0);
  clock.advance(1);
  clock.advance(DELAY_MS * 3);
  expect(rounds).toHaveLength(1);
  rounds[0]?.end();
  await oneTurn();
  clock.advance(DELAY_MS);
  rounds[1]?.fail();
  await oneTurn();
  clock.advance(DELAY_MS);
  expect(rounds).toHaveLength(3);
  expect(failures).toHaveLength(1);
});

test('a stop in the middle of a round leaves no timer behind', async () => {
  const { clock, rounds, repeating } = rig();
  clock.advance(DELAY_MS);
  repeating.stop();
  rounds[0]?.end();
  await oneTurn();
  expect(clock.pendingTimers()).toBe(0);
});

test('a stop between two rounds ends it', () => {
  const { clock, rounds, repeating } = rig();
  repeating.stop();
  repeating.stop();
  clock.advance(DELAY_MS);
  expect(rounds).toHaveLength(0);
});
