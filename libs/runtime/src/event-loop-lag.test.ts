import { expect, test } from '@jest/globals';
import type { Clock } from '@signalbox/kernel/clock';
import { Registry } from 'prom-client';
import { LOOK_MS, watchEventLoopLag } from './event-loop-lag.js';

interface HandClock extends Clock {
  advance(ms: number): void;
  pendingTimers(): number;
}

/** Moves by hand; each timer fires so much later than due as `lateMs` has next, 0 when it has no more. */
function handClock(lateMs: number[]): HandClock {
  let nowMs = 0;
  const timers = new Map<number, { readonly atMs: number; readonly fire: () => void }>();
  let made = 0;
  return {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    setTimer: (delayMs, fire) => {
      const id = (made += 1);
      timers.set(id, { atMs: nowMs + delayMs + (lateMs.shift() ?? 0), fire });
      return { cancel: () => void timers.delete(id) };
    },
    advance: (ms) => {
      const untilMs = nowMs + ms;
      for (;;) {
        const next = [...timers].filter(([, { atMs }]) => atMs <= untilMs).sort(([, a], [, b]) => a.atMs - b.atMs)[0];
        if (next === undefined) break;
        timers.delete(next[0]);
        nowMs = next[1].atMs;
        next[1].fire();
      }
      nowMs = untilMs;
    },
    pendingTimers: () => timers.size,
  };
}

function setUp(...lateMs: number[]) {
  const clock = handClock(lateMs);
  const registry = new Registry();
  watchEventLoopLag(registry, clock);
  const scrape = async (): Promise<Record<string, number>> => {
    const metrics = await registry.getMetricsAsJSON();
    return Object.fromEntries(metrics.map(({ name, values }) => [/^nodejs_eventloop_lag_(\w+)_seconds$/.exec(name)?.[1] ?? name, values[0]?.value ?? Number.NaN]));
  };
  return { clock, scrape };
}

test('a loop that is on time has no lag', async () => {
  const { clock, scrape } = setUp();
  clock.advance(50 * LOOK_MS);
  const lag = await scrape();
  expect(Object.keys(lag).sort()).toEqual(['max', 'mean', 'min', 'p50', 'p90', 'p99', 'stddev']);
  for (const value of Object.values(lag)) expect(value).toBeLessThan(1e-6);
});

test('one that stood still for 400 ms is told as that, in seconds and without the time between two looks', async () => {
  const { clock, scrape } = setUp(0, 400, 0, 0);
  clock.advance(4 * LOOK_MS + 400);
  const lag = await scrape();
  expect(lag['max']).toBeCloseTo(0.4, 2);
  expect(lag['p99']).toBeCloseTo(0.4, 2);
  expect(lag['mean']).toBeCloseTo(0.1, 2);
  expect(lag['p50']).toBeLessThan(1e-6);
});

test('each scrape tells of what came since the last; one without a look between them repeats it', async () => {
  const { clock, scrape } = setUp(200);
  clock.advance(LOOK_MS + 200);
  expect((await scrape())['max']).toBeCloseTo(0.2, 2);
  expect((await scrape())['max']).toBeCloseTo(0.2, 2);
  clock.advance(LOOK_MS);
  expect((await scrape())['max']).toBeLessThan(1e-6);
});

test('nobody is woken more than four times a second for it', () => {
  const { clock } = setUp();
  expect(LOOK_MS).toBeGreaterThanOrEqual(250);
  clock.advance(LOOK_MS);
  expect(clock.pendingTimers()).toBe(1);
});
