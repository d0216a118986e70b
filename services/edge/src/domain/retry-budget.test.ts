import { expect, test } from '@jest/globals';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createRetryBudget } from './retry-budget.js';

/** Of `requests` in `seconds` that all want a retry, how many got one. */
function retriesOf(requests: number, seconds: number): number {
  const clock = createFakeClock();
  const budget = createRetryBudget(clock);
  let taken = 0;
  for (let n = 0; n < requests; n += 1) {
    budget.noteRequest();
    if (budget.take()) taken += 1;
    clock.advance((seconds * 1_000) / requests);
  }
  return taken;
}

test('small traffic always fails over', () => {
  expect(retriesOf(600, 60)).toBe(600);
});

test('of busy traffic a fifth may be tried again, and the reserve', () => {
  const taken = retriesOf(60_000, 60);
  expect(taken).toBeGreaterThanOrEqual(12_000);
  expect(taken).toBeLessThanOrEqual(12_000 + 60 * 10 + 200);
});

test('what is used up comes back with time', () => {
  const clock = createFakeClock();
  const budget = createRetryBudget(clock);
  while (budget.take());
  expect(budget.hasRoom()).toBe(false);
  clock.advance(100);
  expect([budget.take(), budget.take()]).toEqual([true, false]);
});
