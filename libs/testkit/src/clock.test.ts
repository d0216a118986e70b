import { expect, test } from '@jest/globals';
import { createFakeClock } from './clock.js';

test('fires timers in order of their moment, each at its own moment', () => {
  const clock = createFakeClock(1_000);
  const seen: string[] = [];
  clock.setTimer(20, () => seen.push(`b${clock.nowMs()}`));
  clock.setTimer(10, () => {
    seen.push(`a${clock.nowMs()}`);
    clock.setTimer(5, () => seen.push(`nested${clock.nowMs()}`));
  });
  clock.setTimer(10, () => seen.push('cancelled')).cancel();
  clock.advance(30);
  expect(seen).toEqual(['a1010', 'nested1015', 'b1020']);
  expect(clock.monotonicMs()).toBe(30);
  expect(clock.pendingTimers()).toBe(0);
});

test('lets promises settle between timers', async () => {
  const clock = createFakeClock();
  const wait = (ms: number): Promise<void> => new Promise((resolve) => void clock.setTimer(ms, resolve));
  let done = false;
  const work = (async () => {
    await wait(10);
    await wait(10);
    done = true;
  })();
  await clock.advanceAsync(20);
  expect(done).toBe(true);
  await work;
});
