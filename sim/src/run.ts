/** One run of one seed: traffic under faults, then rest, then every invariant. */
import { checkBooks, checkCaps, checkEnd, checkHeld, isAtRest, observe, restlessness } from './check.js';
import type { Coverage } from './coverage.js';
import { plan, planGrowth } from './faults.js';
import type { Mutant } from './mutants.js';
import { Random } from './random.js';
import { longTrafficOf, trafficOf } from './traffic.js';
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
/** What was struck last ends by itself within this, or is ended then. */
const HEAL_MS = LOAD_MS + 6_000;
/** In some runs faults last longer, and edges are silent for so long that workers conclude outcomes which edge tells after all. */
const HEAL_LATE_MS = LOAD_MS + 46_000;
const LATE_SHARE = 0.05;
/** In some runs several answers of one account grow at once. */
const LONG_SHARE = 0.4;
const LONG_SPREAD_MS = 2_500;
/** Numbers of the requests of either kind. */
const PROBES_FROM = 1_000;
const LONG_FROM = 500;
/** Processes come back, and what was announced to nobody is asked for. */
const SETTLE_MS = 40_000;
const LOOK_MS = 5_000;
/** Two windows of the bus for message ids, and some. */
const REST_MS = 600_000;

/** Never rejects for a violation; `trace` hears what happens. The same seed and mutant give the same run. */
export async function runSeed(seed: number, mutant?: Mutant, trace?: (line: string) => void): Promise<Run> {
  const random = new Random(seed);
  const world = new World(random, mutant, trace);
  const { scheduler } = world;
  world.ledger.onCommit = () => checkCaps(world);
  world.onHeld = (accountId) => checkHeld(world, accountId);
  world.onAnswered = (client) => checkEnd(world, client);
  plan(world, random, LOAD_MS);
  const requests = random.int(8, 14);
  for (let i = 0; i < requests; i += 1) {
    const traffic = trafficOf(i, random);
    // Several at once now and then: caps are broken by those who come together.
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
  const isLate = random.chance(LATE_SHARE);
  const healMs = isLate ? HEAL_LATE_MS : HEAL_MS;
  if (isLate) scheduler.at(random.next() * LOAD_MS, () => world.freezeEdges());
  await scheduler.runUntil(healMs);
  world.heal();
  const probeMs = healMs + SETTLE_MS;
  await scheduler.runUntil(probeMs);
  world.isCalm = true;
  // After the faults the gateway serves: one plain request for each account opens whatever is still closed.
  for (const account of world.callers.keys()) {
    const traffic = { ...trafficOf(PROBES_FROM + account, random), account, leavesAfterMs: undefined, slowAfterMs: undefined };
    scheduler.at(0, () => world.ask(traffic));
  }
  for (let atMs = probeMs + LOOK_MS; atMs <= probeMs + REST_MS; atMs += LOOK_MS) {
    await scheduler.runUntil(atMs);
    if (isAtRest(world)) break;
    scheduler.say(() => `RESTLESS ${restlessness(world) ?? ""}`);
  }
  const restless = restlessness(world);
  if (restless !== undefined) world.violate(`no rest: ${restless}`);
  for (const probe of world.clients.slice(-world.callers.length)) if (probe.refusal?.kind === 'fault') world.violate(`${probe.requestId} got a ${probe.refusal.fault.code} after all faults had ended`);
  checkBooks(world);
  observe(world);
  const faults = [...world.coverage.faults.values()].reduce((a, b) => a + b, 0);
  if (scheduler.steps < STEPS_MIN || faults < FAULTS_MIN) world.violate(`too short: ${scheduler.steps} steps, ${faults} faults`);
  return { seed, steps: scheduler.steps, faults, violations: world.violations, coverage: world.coverage };
}
