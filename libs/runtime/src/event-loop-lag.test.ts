import { describe, expect, test } from '@jest/globals';
import type { Clock } from '@signalbox/kernel/clock';
import { spawnSync } from 'node:child_process';
import { Registry } from 'prom-client';
import { systemClock } from './clock.js';
import { BUSY_MS, LOOK_MS, systemLoop, watchEventLoopLag, type Loop } from './event-loop-lag.js';
import { handClock } from './testing/hand-clock.js';

/** A loop that is always busy. */
const busy = (clock: Clock): Loop => ({ workedMs: () => clock.monotonicMs(), inNextTurn: () => undefined });

interface HandLoop extends Loop {
  /** Runs one turn that works for `workMs`. */
  turn(workMs: number): void;
}

/** A loop that is idle except for the turns that the test runs. */
function handLoop(): HandLoop {
  let workedMs = 0;
  let due: (() => void)[] = [];
  return {
    workedMs: () => workedMs,
    inNextTurn: (callback) => void due.push(callback),
    turn: (workMs) => {
      workedMs += workMs;
      const called = due;
      due = [];
      for (const callback of called) callback();
    },
  };
}

function setUpWith(makeLoop: (clock: Clock) => Loop, ...lateMs: number[]) {
  const clock = handClock(lateMs);
  const registry = new Registry();
  const loop = makeLoop(clock);
  watchEventLoopLag(registry, clock, loop);
  const scrape = async (): Promise<Record<string, number>> => {
    const metrics = await registry.getMetricsAsJSON();
    return Object.fromEntries(metrics.map(({ name, values }) => [/^nodejs_eventloop_lag_(\w+)_seconds$/.exec(name)?.[1] ?? name, values[0]?.value ?? Number.NaN]));
  };
  return { clock, scrape };
}
const setUp = (...lateMs: number[]) => setUpWith(busy, ...lateMs);

function setUpIdle(...lateMs: number[]) {
  const loop = handLoop();
  return { loop, ...setUpWith(() => loop, ...lateMs) };
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

describe('a process that has next to nothing to do', () => {
  test('is not woken at all, however long that is', () => {
    const { clock, loop } = setUpIdle();
    clock.advance(LOOK_MS);
    expect(clock.pendingTimers()).toBe(0);
    for (let i = 0; i < 24; i += 1) loop.turn(1);
    expect(clock.pendingTimers()).toBe(0);
  });

  test('is looked at again once it works, and for as long', async () => {
    const { clock, loop, scrape } = setUpIdle(0, 0, 60);
    clock.advance(LOOK_MS);
    loop.turn(BUSY_MS);
    expect(clock.pendingTimers()).toBe(1);
    loop.turn(BUSY_MS);
    clock.advance(LOOK_MS);
    expect(clock.pendingTimers()).toBe(1);
    clock.advance(LOOK_MS + 60);
    expect((await scrape())['max']).toBeCloseTo(0.06, 2);
    expect(clock.pendingTimers()).toBe(0);
  });

  test.each([1, 3])('and stands still for 400 ms is told as that, in turn %i as well', async (which) => {
    const { clock, loop, scrape } = setUpIdle();
    clock.advance(LOOK_MS);
    await scrape();
    for (let turn = 1; turn < which; turn += 1) loop.turn(5);
    loop.turn(400);
    expect((await scrape())['p99']).toBeCloseTo(0.4, 2);
  });

  test('is told as on time at the next scrape, and not as late for as long as it rests', async () => {
    const { clock, scrape } = setUpIdle(400);
    clock.advance(LOOK_MS + 400);
    expect((await scrape())['p99']).toBeCloseTo(0.4, 2);
    expect((await scrape())['p99']).toBeLessThan(1e-6);
  });
});

test("Node's loop counts what it works and calls back in a turn that something else began", async () => {
  const beganMs = systemLoop.workedMs();
  const untilMs = systemClock.monotonicMs() + 20;
  while (systemClock.monotonicMs() < untilMs);
  const turned = new Promise<void>((resolve) => systemLoop.inNextTurn(resolve));
  await new Promise<void>((resolve) => systemClock.setTimer(1, resolve));
  await turned;
  expect(systemLoop.workedMs() - beganMs).toBeGreaterThanOrEqual(19);
});

test("a call back in Node's next turn neither begins one nor keeps a process alive", () => {
  const script = `import { systemLoop } from ${JSON.stringify(new URL('../dist/event-loop-lag.js', import.meta.url).href)};
    let turns = 0;
    const turn = () => { turns += 1; systemLoop.inNextTurn(turn); };
    turn();
    process.on('exit', () => process.stdout.write(String(turns)));
    setTimeout(() => undefined, 100);`;
  const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8', timeout: 20_000 });
  expect(status).toBe(0);
  expect(Number(stdout)).toBeLessThan(20);
});
