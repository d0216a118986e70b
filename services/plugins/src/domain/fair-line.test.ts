import { expect, test } from '@jest/globals';
import { createFairLine } from './fair-line.js';

const { signal } = new AbortController();

test('an account that has no place goes before those of one that fills the line', async () => {
  const line = createFairLine({ placesMax: 2, waitingOfAccountMax: 20 });
  const order: string[] = [];
  const asked = ['greedy', 'greedy', 'greedy', 'greedy', 'modest'].map((accountId) => line.enter(accountId, signal).then(() => order.push(accountId)));
  await Promise.all(asked.slice(0, 2));
  line.leave('greedy');
  await asked[4];
  expect(order).toEqual(['greedy', 'greedy', 'modest']);
  line.leave('greedy');
  line.leave('modest');
  await Promise.all(asked);
  expect(order).toHaveLength(5);
});
