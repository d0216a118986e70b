import { expect, test } from '@jest/globals';
import { createFakeClock } from '@signalbox/testkit/clock';
import { ReservationAge } from './reservation-age.js';

const NOW = Date.UTC(2026, 10, 21);
const MINUTE_MS = 60_000;

test.each([0, 20_000])('with a clock that is right or ahead by %d ms: what the clock says', (aheadMs) => {
  const clock = createFakeClock(NOW + aheadMs);
  const ages = new ReservationAge(clock);
  expect([ages.ageMs(NOW), ages.ageMs(NOW - 40_000)]).toEqual([aheadMs, aheadMs + 40_000]);
});

test('with a clock that is behind: never too little, from the first request that shows the lag', () => {
  const clock = createFakeClock(NOW - 20_000);
  const ages = new ReservationAge(clock);
  // The age of this one is unknown.
  expect(ages.ageMs(NOW - 5_000)).toBe(Infinity);
  expect(ages.ageMs(NOW)).toBe(Infinity);
  expect([ages.ageMs(NOW), ages.ageMs(NOW - 32_000)]).toEqual([0, 32_000]);
});

test('a lag is remembered for at least ten minutes, and forgotten once the clock was right for twenty', () => {
  const clock = createFakeClock(NOW - 20_000);
  const ages = new ReservationAge(clock);
  ages.ageMs(NOW);
  clock.advance(9 * MINUTE_MS);
  expect(ages.ageMs(NOW + 9 * MINUTE_MS - 1_000)).toBe(1_000);
  clock.advance(2 * MINUTE_MS);
  // Remembered from before and not seen again: the clock was corrected.
  expect(ages.ageMs(clock.nowMs() - 1_000)).toBe(21_000);
  clock.advance(10 * MINUTE_MS);
  ages.ageMs(clock.nowMs());
  clock.advance(10 * MINUTE_MS);
  expect(ages.ageMs(clock.nowMs() - 1_000)).toBe(1_000);
});
