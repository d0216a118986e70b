/** Accounts without limits that get some just as the counters are lost: their earlier usage must count all the same. */
import type { Random } from './random.js';
import { UNLIMITED_ACCOUNTS, trafficOf, withLimits, withoutLimits } from './traffic.js';
import type { World } from './world.js';

/** First request number. */
const LATE_FROM = 800;
/** Requests arrive within this time before the loss, and as long after the limits are set. */
const AHEAD_MS = 2_500;
const BEHIND_MS = 3_500;

/** Plans one such account within `spanMs`. */
export function planLateLimits(world: World, random: Random, spanMs: number): void {
  const { scheduler } = world;
  const account = random.pick(UNLIMITED_ACCOUNTS);
  world.changeTerms(account, withoutLimits);
  let number = LATE_FROM;
  const ask = (atMs: number): void => {
    const traffic = { ...trafficOf(number++, random), account };
    scheduler.at(atMs, () => world.ask(traffic));
  };
  const lossMs = AHEAD_MS + random.next() * (spanMs - AHEAD_MS);
  for (let asked = random.int(2, 4); asked > 0; asked -= 1) ask(lossMs - random.next() * AHEAD_MS);
  scheduler.at(lossMs, () => {
    world.coverage.struck('counters wiped before a limit');
    scheduler.say(() => 'FAULT counters wiped before a limit');
    world.counters.wipe();
  });
  // Sometimes the limits are set before the loss is noticed.
  const limitMs = lossMs + random.int(-200, random.chance(0.5) ? 200 : 2_000);
  scheduler.at(limitMs, () => world.changeTerms(account, (caller) => withLimits(caller, random)));
  for (let asked = random.int(3, 6); asked > 0; asked -= 1) ask(limitMs + random.next() * BEHIND_MS);
}
