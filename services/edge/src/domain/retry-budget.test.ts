import { expect, test } from '@jest/globals';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createRetryBudget, type RetryBudget } from './retry-budget.js';

/** How many of `requests` in `seconds`, which all want a retry, got one. */
function retriesOf(requests: number, seconds: number): number {
  const clock = createFakeClock();
  const budget = createRetryBudget(clock);
  let taken = 0;
  for (let n = 0; n < requests; n += 1) {
    budget.noteRequest('acct_1', false);
    if (budget.take('acct_1', false)) taken += 1;
    clock.advance((seconds * 1_000) / requests);
  }
  return taken;
}

test('with little traffic every request can fail over', () => {
  expect(retriesOf(600, 60)).toBe(600);
});

test('with much traffic a fifth of it can be retried, plus the reserve', () => {
  const taken = retriesOf(60_000, 60);
  expect(taken).toBeGreaterThanOrEqual(12_000);
  expect(taken).toBeLessThanOrEqual(12_000 + 60 * 10 + 200);
});

test('a used budget refills with time', () => {
  const clock = createFakeClock();
  const budget = createRetryBudget(clock);
  while (budget.take('acct_1', false));
  expect(budget.hasRoom('acct_1', false)).toBe(false);
  clock.advance(100);
  expect([budget.take('acct_1', false), budget.take('acct_1', false)]).toEqual([true, false]);
});

/** How many retries in a row the account gets. */
function spend(budget: RetryBudget, accountId: string, isOwn = false): number {
  let taken = 0;
  while (budget.take(accountId, isOwn)) taken += 1;
  return taken;
}

test('retries on an account’s own credentials take nothing from others and are bounded, too', () => {
  const clock = createFakeClock();
  const budget = createRetryBudget(clock);
  const before = spend(createRetryBudget(clock), 'acct_b');
  expect([budget.hasRoom('acct_a', true), spend(budget, 'acct_a', true), budget.hasRoom('acct_a', true)]).toEqual([true, 100, false]);
  expect([budget.hasRoom('acct_a', false), budget.hasRoom('acct_b', true), spend(budget, 'acct_b')]).toEqual([true, true, before]);
  for (let n = 0; n < 5; n += 1) budget.noteRequest('acct_a', true);
  clock.advance(100);
  expect(spend(budget, 'acct_a', true)).toBe(2);
});

test('an account that retries as often as it can leaves others at least as many retries as it has taken', () => {
  const clock = createFakeClock();
  const budget = createRetryBudget(clock);
  let taken = 0;
  let refused = 0;
  for (let n = 0; n < 6_000; n += 1) {
    budget.noteRequest('acct_a', false);
    taken += spend(budget, 'acct_a');
    // Another account, which wants one retry a second.
    if (n % 100 === 0 && !budget.take('acct_b', false)) refused += 1;
    clock.advance(10);
  }
  expect(refused).toBe(0);
  // Nothing is lost: a fifth of its requests and ten a second, less what the other took.
  expect(taken).toBeGreaterThan(1_200 + 600 - 60);
  expect(spend(budget, 'acct_b')).toBeGreaterThan(20);
});

test('several such accounts leave room for one that takes less than its share', () => {
  const clock = createFakeClock();
  const budget = createRetryBudget(clock);
  let refused = 0;
  for (let n = 0; n < 600; n += 1) {
    for (let account = 0; account < 5; account += 1) spend(budget, `acct_${String(account)}`);
    // Each gets one a second: ten are divided among six.
    if (n % 10 === 0 && !budget.take('acct_quiet', false)) refused += 1;
    clock.advance(100);
  }
  expect(refused).toBe(0);
});
