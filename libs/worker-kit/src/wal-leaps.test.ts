import { expect, test } from '@jest/globals';
import { LEAP, Leaps } from './wal-leaps.js';

test.each([
  [0, 3, 3],
  [1, 3, 2],
  [3, 3, 0],
  [5, 3, 0],
  [1, LEAP + 4, 3],
  [3, LEAP + 4, 1],
  [3, 3 + LEAP, 0],
  [LEAP, LEAP + 4, 1],
  [LEAP + 4, LEAP + 9, 5],
  [0, 2 * LEAP + 20, 3 + 7 + 10],
])('between %d and %d there are %d records if numbers were skipped twice', (after, upTo, count) => {
  const leaps = new Leaps();
  leaps.note(2, 3);
  leaps.note(3, LEAP + 4);
  leaps.note(LEAP + 10, 2 * LEAP + 11);
  expect(leaps.between(after, upTo)).toBe(count);
});
