/** Clients that hang up, and the deaths of those who alone know of it: of the worker as it writes the end, and of the edge that told it. */
import type { KillAt } from './disk.js';
import type { Random } from './random.js';
import { trafficOf } from './traffic.js';
import type { World } from './world.js';

/** Numbers of the requests. */
const HUNG_UP_FROM = 900;
/** Most leave once the status has come, the others whenever. */
const AT_HEAD_SHARE = 0.7;
const HEAD_MS_MAX = 30;
/** Most streams say nothing for a while after their status. */
const SILENT_SHARE = 0.7;
const SILENT_MS_MAX = 400;
const WHENEVER_MS_MAX = 1_500;
/** Soon enough that no worker is back, as a rule. */
const EDGE_MS_MAX = 60;
const WHERE: readonly KillAt[] = ['after', 'after', 'after', 'torn', 'before'];

/** From 2 to 5 requests within `spanMs`, the worker of each killed as it writes that its client left. */
export function planDepartures(world: World, random: Random, spanMs: number): void {
  const { scheduler } = world;
  const atHead = new Set<string>();
  const hungUp = new Map<string, number>();
  for (let number = HUNG_UP_FROM + random.int(2, 5); number > HUNG_UP_FROM; number -= 1) {
    const isAtHead = random.chance(AT_HEAD_SHARE);
    const traffic = { ...trafficOf(number, random), stream: random.chance(0.9), isCutOff: random.chance(0.1), leavesAfterMs: isAtHead ? undefined : random.int(1, WHENEVER_MS_MAX) };
    if (isAtHead) atHead.add(traffic.requestId);
    hungUp.set(traffic.requestId, traffic.edge);
    scheduler.at(random.next() * spanMs, () => world.ask(traffic));
  }
  world.onHeaded = (requestId) => {
    if (atHead.delete(requestId)) scheduler.at(random.next() * HEAD_MS_MAX, () => world.leave(requestId));
    return random.chance(SILENT_SHARE) ? random.int(1, SILENT_MS_MAX) : 0;
  };
  world.onLeft = (requestId, worker) => {
    const edge = hungUp.get(requestId);
    if (edge === undefined || !hungUp.delete(requestId)) return;
    world.coverage.struck('worker and edge killed at a hang-up');
    scheduler.say(() => `FAULT worker and edge killed at the hang-up of ${requestId}`);
    world.disk(worker).killAtWrite = { left: 1, where: random.pick(WHERE) };
    scheduler.at(random.next() * EDGE_MS_MAX, () => world.killEdge(edge));
  };
}
