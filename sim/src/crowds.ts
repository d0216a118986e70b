/** Crowds: many requests of one account at one edge, so that edge serves them from advances; with a death in the middle. */
import type { Random } from './random.js';
import { CROWDED_ACCOUNTS, trafficOf } from './traffic.js';
import type { World } from './world.js';

/** First request number. */
const CROWD_FROM = 2_000;
const CROWD_MS_MAX = 1_600;
/** Share of crowds in which a process that knows the draws dies, before quota learns of them or soon after. */
const DEATH_SHARE = 0.6;

/** One crowd of 12 to 30 requests within `spanMs`. */
export function planCrowd(world: World, random: Random, spanMs: number): void {
  const { scheduler } = world;
  const account = random.pick(CROWDED_ACCOUNTS);
  const edge = random.int(0, 1);
  const beginMs = random.next() * (spanMs - CROWD_MS_MAX);
  const lengthMs = random.int(100, CROWD_MS_MAX);
  for (let number = CROWD_FROM + random.int(12, 30); number > CROWD_FROM; number -= 1) {
    const traffic = { ...trafficOf(number, random), account, edge };
    scheduler.at(beginMs + random.next() * lengthMs, () => world.ask(traffic));
  }
  if (!random.chance(DEATH_SHARE)) return;
  const [name, strike] = random.pick<readonly [string, () => void]>([
    ['edge killed in a crowd', () => world.killEdge(edge)],
    ['worker killed in a crowd', () => world.killWorker(random.int(0, 1))],
    ['counters wiped in a crowd', () => world.counters.wipe()],
  ]);
  scheduler.at(beginMs + lengthMs * (0.3 + random.next() * 0.7), () => {
    world.coverage.struck(name);
    scheduler.say(() => `FAULT ${name}`);
    strike();
  });
}
