import { expect, test } from '@jest/globals';
import { OwedSince } from './owed-since.js';

test('the age of the oldest unbooked record is exact to a second or 1/64', () => {
  const owed = new OwedSince();
  expect(owed.ageMs(5_000)).toBe(0);
  owed.written(10, 5_000);
  owed.written(20, 5_900);
  owed.written(30, 6_100);
  expect(owed.ageMs(65_000)).toBe(60_000);
  owed.booked(15);
  // In the same second as what is booked.
  expect(owed.ageMs(65_000)).toBe(60_000);
  owed.booked(20);
  expect(owed.ageMs(65_000)).toBe(58_900);
  owed.booked(30);
  expect(owed.ageMs(65_000)).toBe(0);
});

test('a week of writing without a ledger needs few entries, each exact to 1/64', () => {
  const owed = new OwedSince();
  const everyMs = 500;
  const week = 7 * 86_400_000;
  for (let nowMs = 0; nowMs <= week; nowMs += everyMs) owed.written(1 + nowMs / everyMs, nowMs);
  let steps = 0;
  let before = owed.ageMs(week);
  expect(before).toBe(week);
  for (let seq = 1; seq <= 1 + week / everyMs; seq += 997) {
    owed.booked(seq);
    const age = owed.ageMs(week);
    const exact = week - seq * everyMs;
    expect(age).toBeGreaterThanOrEqual(exact);
    expect(age - exact).toBeLessThanOrEqual(Math.max(1_000, week / 64) + everyMs);
    if (age !== before) steps += 1;
    before = age;
  }
  expect(steps).toBeLessThan(1_000);
});
