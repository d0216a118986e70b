import { expect, test } from '@jest/globals';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createHeapWatch } from './heap-watch.js';

test('a full heap is noticed within a second, and counts as healthy again only with some room', () => {
  const clock = createFakeClock();
  let share = 0.5;
  const watch = createHeapWatch(clock, () => share);
  const seen: boolean[] = [];
  for (share of [0.5, 0.94, 0.96, 0.93, 0.91, 0.94]) {
    clock.advance(1_000);
    seen.push(watch.isHealthy());
  }
  expect(seen).toEqual([true, true, false, false, true, true]);
});

test('the heap is read at most once a second, and not by a timer', () => {
  const clock = createFakeClock();
  let looks = 0;
  const watch = createHeapWatch(clock, () => (looks += 1) / 1e6);
  for (let i = 0; i < 30; i += 1) {
    watch.isHealthy();
    clock.advance(100);
  }
  expect(looks).toBe(3);
  expect(clock.pendingTimers()).toBe(0);
});
