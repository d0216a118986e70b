import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { countDuration, percentileMs, type DurationCounts } from './latency.js';

const countsOf = (durations: readonly number[]): DurationCounts => {
  const counts: DurationCounts = [];
  for (const ms of durations) countDuration(counts, ms);
  return counts;
};

test('a percentile is within 8 %, or half a millisecond, of the exact duration', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 4_000_000 }), { minLength: 1, maxLength: 200 }), fc.constantFrom(0.5, 0.75, 0.95), (durations, share) => {
      const exact = [...durations].sort((a, b) => a - b)[Math.ceil(durations.length * share) - 1] ?? 0;
      expect(Math.abs(percentileMs(countsOf(durations), share) - exact)).toBeLessThanOrEqual(exact * 0.08 + 0.5);
    }),
  );
});

test('unknown durations are not counted, and absurd ones count in the last bucket', () => {
  expect(countsOf([0, -1, NaN])).toEqual([]);
  expect(percentileMs([], 0.5)).toBe(0);
  expect(countsOf([4_294_967_295]).length).toBe(110);
  expect(percentileMs(countsOf([4_294_967_295]), 0.5)).toBeGreaterThan(3_600_000);
});
