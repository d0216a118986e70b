/** One run of one seed: traffic under faults, then rest, then every invariant. */
import { checkBooks } from './check.js';
import { checkCaps, checkEnd, checkHeld } from './check-limits.js';
import type { Coverage } from './coverage.js';
import { planCrowd } from './crowds.js';
import { planDepartures } from './departures.js';
import { planEnds } from './ends.js';
import { plan, planGrowth } from './faults.js';
import { planLateLimits } from './late-limits.js';
import { planLosses } from './losses.js';
import type { Mutant } from './mutants.js';
import { observe } from './observe.js';
import { Random } from './random.js';
import { isAtRest, restlessness } from './rest.js';
import { planStops } from './stops.js';
import { CHANGEABLE, longTrafficOf, trafficOf } from './traffic.js';
import { World } from './world.js';

export interface Run {
  readonly seed: number;
  /** Events fired. */
  readonly steps: number;
  readonly faults: number;
  readonly violations: readonly string[];
  readonly coverage: Coverage;
}

export const STEPS_MIN = 200;
export const FAULTS_MIN = 3;
const LOAD_MS = 9_000;
/** The last faults end by themselves within this time, or are ended then. */
const HEAL_MS = LOAD_MS + 6_000;
/** In some runs faults last longer, and edges are silent so long that workers assume outcomes that edge reports later after all. */
const HEAL_LATE_MS = LOAD_MS + 46_000;
const LATE_SHARE = 0.05;
/** Share of runs in which several holds of one account grow at once. */
const LONG_SHARE = 0.4;
const LONG_SPREAD_MS = 2_500;
/** Share of runs in which edges are stopped, and one worker has two replicas. */
const STOP_SHARE = 0.25;
/** Share of those in which a replica dies with requests that the other one can repeat. */
const LOSS_SHARE = 0.5;
/** Share of runs in which no process survives to report that a client hung up. */
const DEPARTURE_SHARE = 0.25;
/** Makes draws of their own of a seed. */
const DEPARTURE_MARK = 0x2545f491;
/** Share of runs in which many requests of one account arrive at one edge. */
const CROWD_SHARE = 0.4;
/** Makes draws of their own of a seed. */
const CROWD_MARK = 0x3c6ef372;
/** Share of runs in which a worker stops in an orderly way. */
const END_SHARE = 0.3;
/** Makes draws of their own of a seed. */
const END_MARK = 0x1b873593;
/** Share of runs in which accounts' terms change while their requests run. */
const CHANGE_SHARE = 0.35;
/** Share of runs in which an account without limits gets some as the counters are lost. */
const LATE_LIMIT_SHARE = 0.2;
/** Makes draws of their own of a seed. */
const LATE_LIMIT_MARK = 0x5f356495;
/** Share of runs in which a request is repeated under one Idempotency-Key. */
const KEY_SHARE = 0.3;
/** Share of those with a repeat so late that a charge of 0 is final; below, so late that an unknown outcome counts as lost. */
const LATE_KEY_SHARE = 0.1;
const LOST_KEY_SHARE = 0.015;
/** First request number of each kind. */
const PROBES_FROM = 1_000;
const LONG_FROM = 500;
const KEYED_FROM = 700;
/** Time for processes to come back and to ask for announcements that they missed. */
const SETTLE_MS = 40_000;
const LOOK_MS = 5_000;
/** Rounds without a report are concluded after ten minutes; what another log could still report about a request counts as lost after fifteen. */
const REST_MS = 1_020_000;

/** Does not reject for a violation; `trace` receives a line per event. The same seed and mutant give the same run. */
export async function runSeed(seed: number, mutant?: Mutant, trace?: (line: string) => void): Promise<Run> {
  const random = new Random(seed);
  // A separate random source, so that runs without stops do not depend on it.
  const stops = new Random(~seed);
  const hasStops = stops.chance(STOP_SHARE);
  const world = new World(random, mutant, trace, hasStops);
  const { scheduler } = world;
  world.ledger.onCommit = () => checkCaps(world);
  world.onHeld = (requestId, grown) => checkHeld(world, requestId, grown);
  world.onAnswered = (client) => checkEnd(world, client);
  plan(world, random, LOAD_MS);
  if (hasStops) {
    planStops(world, stops, LOAD_MS);
    if (stops.chance(LOSS_SHARE)) planLosses(world, stops, LOAD_MS);
  }
  const late = new Random(seed ^ LATE_LIMIT_MARK);
  if (late.chance(LATE_LIMIT_SHARE)) planLateLimits(world, late, LOAD_MS);
  const requests = random.int(7, 12);
  for (let i = 0; i < requests; i += 1) {
    const traffic = trafficOf(i, random);
    // Often several at the same time, since concurrent requests are the risk for caps.
    scheduler.at(200 + Math.floor(random.next() * 12) * (LOAD_MS / 12) + random.next() * 30, () => world.ask(traffic));
  }
  if (random.chance(LONG_SHARE)) {
    world.answerLong();
    planGrowth(world, random, LOAD_MS);
    const beginMs = 200 + random.next() * LONG_SPREAD_MS;
    for (let i = random.int(2, 5); i > 0; i -= 1) {
      const traffic = longTrafficOf(LONG_FROM + i, random);
      scheduler.at(beginMs + random.next() * LONG_SPREAD_MS, () => world.ask(traffic));
    }
  }
  const departures = new Random(seed ^ DEPARTURE_MARK);
  if (departures.chance(DEPARTURE_SHARE)) planDepartures(world, departures, LOAD_MS);
  const crowds = new Random(seed ^ CROWD_MARK);
  if (crowds.chance(CROWD_SHARE)) planCrowd(world, crowds, LOAD_MS);
  const ends = new Random(seed ^ END_MARK);
  if (ends.chance(END_SHARE)) planEnds(world, ends, LOAD_MS);
  if (random.chance(CHANGE_SHARE)) {
    for (let i = random.int(1, 4); i > 0; i -= 1) {
      const index = random.pick(CHANGEABLE);
      scheduler.at(random.next() * LOAD_MS, () => world.change(index, random));
    }
  }
  const lastAskMs = random.chance(KEY_SHARE) ? planKeyed(world, random) : 0;
  const isLate = random.chance(LATE_SHARE);
  const healMs = isLate ? HEAL_LATE_MS : HEAL_MS;
  if (isLate) scheduler.at(random.next() * LOAD_MS, () => world.freezeEdges());
  await scheduler.runUntil(healMs);
  world.heal();
  const probeMs = healMs + SETTLE_MS;
  await scheduler.runUntil(probeMs);
  world.isCalm = true;
  // After the faults the gateway must serve: one plain request per account resets whatever is still blocked.
  for (const account of world.callers.keys()) {
    const traffic = { ...trafficOf(PROBES_FROM + account, random), account, leavesAfterMs: undefined, slowAfterMs: undefined, plugins: undefined };
    scheduler.at(0, () => world.ask(traffic, true));
  }
  const restMs = Math.max(probeMs, lastAskMs) + REST_MS;
  for (let atMs = probeMs + LOOK_MS; atMs <= restMs; atMs += LOOK_MS) {
    await scheduler.runUntil(atMs);
    if (atMs > lastAskMs && isAtRest(world)) break;
    scheduler.say(() => `RESTLESS ${restlessness(world) ?? ''}`);
  }
  const restless = restlessness(world);
  if (restless !== undefined) world.violate(`no rest: ${restless}`);
  for (const probe of world.clients.filter(({ isProbe }) => isProbe)) if (probe.refusal?.kind === 'fault') world.violate(`${probe.requestId} got a ${probe.refusal.fault.code} after all faults had ended`);
  checkBooks(world);
  observe(world);
  const faults = [...world.coverage.faults.values()].reduce((a, b) => a + b, 0);
  if (scheduler.steps < STEPS_MIN || faults < FAULTS_MIN) world.violate(`too short: ${scheduler.steps} steps, ${faults} faults`);
  return { seed, steps: scheduler.steps, faults, violations: world.violations, coverage: world.coverage };
}

/** Plans one request and its repeats; returns when the last one is sent. */
function planKeyed(world: World, random: Random): number {
  const first = { ...trafficOf(KEYED_FROM, random), key: 'key 1' };
  const firstMs = 200 + random.next() * LOAD_MS;
  world.scheduler.at(firstMs, () => world.ask(first));
  const waits = [() => random.int(1, 400), () => random.int(400, 5_000), () => random.int(5_000, 40_000)];
  const laters = Array.from({ length: random.int(1, 3) }, () => random.pick(waits)());
  if (random.chance(LATE_KEY_SHARE)) laters.push(random.int(100_000, 200_000));
  if (random.chance(LOST_KEY_SHARE)) laters.push(random.int(960_000, 1_000_000));
  for (const [index, laterMs] of laters.entries()) {
    const { requestId, edge, leavesAfterMs } = trafficOf(KEYED_FROM + 1 + index, random);
    world.scheduler.at(firstMs + laterMs, () => world.ask({ ...first, requestId, edge, leavesAfterMs }));
  }
  return firstMs + Math.max(...laters);
}
