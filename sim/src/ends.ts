/** Workers that stop in an orderly way and stay away for a while, with losses of the counters meanwhile and after their return. */
import type { Random } from './random.js';
import { LIMITED_ACCOUNTS, trafficOf } from './traffic.js';
import type { World } from './world.js';

/** First request number. */
const ENDED_FROM = 3_000;
/** Requests arrive within this time before the stop. */
const AHEAD_MS = 1_500;
/** And within this time after a loss; accounts are admitted again about two seconds after it. */
const BEHIND_MS = 5_000;
/** Each request costs a large part of what its account may spend. */
const TOKENS_MIN = 500;
const TOKENS_MAX = 1_000;
/** Most drains end earlier by themselves. */
const DRAIN_MS_MAX = 4_000;
const TOLD_MS_MAX = 500;
const AWAY_MS_MIN = 3_000;
const AWAY_MS_MAX = 10_000;
const LOSS_SHARE = 0.7;
const LOSS_MS_MAX = 2_000;
/** Probability of a kill once the worker is back and has running requests again. */
const KILL_SHARE = 0.7;
const KILL_MS_MAX = 3_000;
/** Probability that its log cannot reach the ledger, from before its stop or from its return. */
const BEHIND_SHARE = 0.5;
const BUS_AWAY_MS_MAX = 6_000;
const LOOK_MS = 10;

/** Plans one such worker within `spanMs`, which serves an account near its limits. */
export function planEnds(world: World, random: Random, spanMs: number): void {
  const { scheduler } = world;
  const [index, account] = [random.int(0, 1), random.pick(LIMITED_ACCOUNTS)];
  let number = ENDED_FROM;
  const ask = (count: number, atMs: number, lengthMs: number, route: readonly number[]): void => {
    for (let left = count; left > 0; left -= 1) {
      const traffic = { ...trafficOf(number++, random), account, route, leavesAfterMs: undefined, slowAfterMs: undefined, plugins: undefined, maxTokens: random.int(TOKENS_MIN, TOKENS_MAX) };
      scheduler.at(atMs + random.next() * lengthMs, () => world.ask(traffic));
    }
  };
  const strike = (atMs: number, name: string, what: () => void): void =>
    void scheduler.at(atMs, () => {
      world.coverage.struck(name);
      scheduler.say(() => `FAULT ${name}`);
      what();
    });
  /** Loses the counters; meanwhile the other worker serves. */
  const loseCounters = (atMs: number, name: string): void => {
    strike(atMs, name, () => world.counters.wipe());
    ask(random.int(4, 8), atMs, BEHIND_MS, [1 - index]);
  };
  const loseBus = (atMs: number): void => {
    if (!random.chance(BEHIND_SHARE)) return;
    strike(atMs, 'bus away from a worker that ends', () => void (world.bus.isUp = false));
    scheduler.at(atMs + random.next() * BUS_AWAY_MS_MAX, () => world.bus.calm());
  };
  const stopMs = AHEAD_MS + random.next() * (spanMs - AHEAD_MS - LOSS_MS_MAX);
  const stop = { drainMs: random.int(100, DRAIN_MS_MAX), toldMs: random.int(0, TOLD_MS_MAX), awayMs: random.int(AWAY_MS_MIN, AWAY_MS_MAX) };
  loseBus(stopMs - AHEAD_MS);
  ask(random.int(2, 5), stopMs - AHEAD_MS, AHEAD_MS, [index, 1 - index]);
  if (random.chance(LOSS_SHARE)) loseCounters(stopMs + random.next() * LOSS_MS_MAX, 'counters wiped as a worker ends');
  const [isKilled, isLost] = [random.chance(KILL_SHARE), random.chance(LOSS_SHARE)];
  strike(stopMs, 'worker stopped', () => {
    world.stopWorker(index, stop, () => {
      loseBus(0);
      ask(random.int(2, 5), 0, AHEAD_MS / 2, [index]);
      const atMs = random.next() * KILL_MS_MAX;
      if (isKilled) strike(atMs, 'worker killed once it is back', () => world.killWorker(index, random.int(AWAY_MS_MIN, AWAY_MS_MAX)));
      if (isLost) loseCounters(atMs + LOOK_MS, 'counters wiped once a worker is back');
    });
  });
}
