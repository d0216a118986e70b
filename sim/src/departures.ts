/** Clients that hang up, followed by the deaths of the only processes that know: the worker as it records the end, and the edge that reported it. */
import type { KillAt } from './disk.js';
import type { Random } from './random.js';
import { trafficOf } from './traffic.js';
import type { World } from './world.js';

/** First request number. */
const HUNG_UP_FROM = 900;
/** Share of clients that leave when the status has arrived; the others leave at any time. */
const AT_HEAD_SHARE = 0.7;
const HEAD_MS_MAX = 30;
/** Share of streams that are silent for a while after their status. */
const SILENT_SHARE = 0.7;
const SILENT_MS_MAX = 400;
const WHENEVER_MS_MAX = 1_500;
/** Usually too soon for the worker to be back. */
const EDGE_MS_MAX = 60;
const WHERE: readonly KillAt[] = ['after', 'after', 'after', 'torn', 'before'];

/** Plans 2 to 5 requests within `spanMs`; each one's worker is killed as it records that the client left. */
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
