import { createFakeClock } from '@signalbox/testkit/clock';
import { beforeEach, expect, test } from '@jest/globals';
import { Hearing } from './hearing.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
let clock = createFakeClock();
let hearing = new Hearing(clock);
const behindMs = (): number => clock.nowMs() - hearing.until(clock.nowMs());
/** As while workers report. */
const listen = (ms: number): void => {
  for (let left = ms; left > 0; left -= 15_000) {
    clock.advance(15_000);
    hearing.until(clock.nowMs());
  }
};

beforeEach(() => {
  clock = createFakeClock();
  hearing = new Hearing(clock);
});

test('time in which writers could report counts as it passes', () => {
  expect(behindMs()).toBe(0);
  listen(HOUR);
  expect(behindMs()).toBe(0);
});

test('time by which the ledger’s clock is set ahead does not count until live writers have reported', () => {
  listen(MINUTE);
  clock.jumpWall(HOUR);
  expect(behindMs()).toBe(HOUR);
  listen(45_000);
  expect(behindMs()).toBe(HOUR);
  listen(15_000);
  expect(behindMs()).toBe(0);
});

test('nor do two jumps, nor one that is reversed', () => {
  listen(MINUTE);
  clock.jumpWall(HOUR);
  hearing.until(clock.nowMs());
  clock.jumpWall(HOUR);
  expect(behindMs()).toBe(2 * HOUR);
  listen(MINUTE);
  clock.jumpWall(-HOUR);
  expect(behindMs()).toBe(0);
  clock.jumpWall(HOUR);
  clock.advance(1_000);
  hearing.until(clock.nowMs());
  clock.jumpWall(-HOUR);
  expect(behindMs()).toBe(0);
});

test('nor does the time in which the database was away, except for a minute', () => {
  listen(MINUTE);
  clock.advance(HOUR);
  expect(behindMs()).toBe(HOUR - MINUTE);
  listen(MINUTE);
  expect(behindMs()).toBe(0);
});

test('nor the time before this process began in which nobody could report', () => {
  hearing.begin([clock.nowMs() - 2 * HOUR, clock.nowMs() - HOUR]);
  expect(behindMs()).toBe(HOUR);
  listen(MINUTE);
  expect(behindMs()).toBe(0);
});

test('if the clock was set ahead, a period is over a quarter of an hour after the clock says so', () => {
  const passedMs = (): number => hearing.passedUntil(clock.nowMs()) - clock.nowMs();
  listen(MINUTE);
  clock.jumpWall(HOUR);
  expect(passedMs()).toBe(-HOUR);
  listen(14 * MINUTE);
  expect(passedMs()).toBe(-HOUR);
  listen(MINUTE);
  expect(passedMs()).toBe(0);
});

test('without any writer, all time counts', () => {
  hearing.begin([]);
  expect(behindMs()).toBe(0);
});
