/** Replicas of a worker that die while they wait for the first word of an answer, so that another replica may repeat the attempt. */
import type { Random } from './random.js';
import { trafficOf } from './traffic.js';
import type { World } from './world.js';

/** First request number. */
const LOST_FROM = 650;
/** Its requests meet no limits. */
const UNLIMITED_ACCOUNT = 2;
const LOOK_MS = 5;
/** By then the worker has the request, and the provider may have it. */
const HELD_MS_MAX = 60;
/** Share in which both replicas die one after the other. */
const BOTH_SHARE = 0.2;

/** Plans 1 to 3 requests within `spanMs` that only the first provider may answer; each one's replica is killed before the first word. */
export function planLosses(world: World, random: Random, spanMs: number): void {
  const { scheduler } = world;
  for (let number = LOST_FROM + random.int(1, 3); number > LOST_FROM; number -= 1) {
    const traffic = { ...trafficOf(number, random), account: UNLIMITED_ACCOUNT, route: [0], leavesAfterMs: undefined };
    const { requestId } = traffic;
    const endMs = spanMs + LOOK_MS;
    const heldMs = random.next() * HELD_MS_MAX;
    let losses = random.chance(BOTH_SHARE) ? 2 : 1;
    const lost = new Set<ReadonlySet<string>>();
    const kill = (): void => {
      const client = world.clients.find((one) => one.requestId === requestId);
      const holder = world.replicas().find(({ served }) => served.has(requestId) && !lost.has(served));
      if (client?.isOver === true || client?.state === 'streaming') return;
      if (holder !== undefined) {
        world.coverage.struck('replica killed before a word');
        scheduler.say(() => `FAULT replica killed before a word of ${requestId}`);
        lost.add(holder.served);
        holder.kill();
        losses -= 1;
      }
      if (losses > 0 && scheduler.nowMs < endMs) scheduler.at(LOOK_MS, kill);
    };
    scheduler.at(random.next() * spanMs, () => {
      world.ask(traffic);
      scheduler.at(heldMs, kill);
    });
  }
}
