/** Edges that stop in an orderly way while replicas of a worker have rounds of their requests. */
import type { SimClient } from './client.js';
import type { Random } from './random.js';
import { roundsTrafficOf } from './traffic.js';
import type { World } from './world.js';

/** First request number. */
const STOPPED_FROM = 600;
/** Requests arrive within this time before the stop; or the other fault strikes as long into the drain. */
const AHEAD_MS = 2_500;

/** Share of these runs in which an edge is killed during rounds at two replicas, without a stop. */
const APART_SHARE = 0.7;
/** Its rounds meet no limits. */
const UNLIMITED_ACCOUNT = 2;
const LOOK_MS = 10;

/** Faults that make it hard to report outcomes to workers. */
const TROUBLES: Readonly<Record<string, (world: World, random: Random, edge: number) => void>> = {
  'replica killed at a stop': (world, random) => random.pick(world.replicas()).kill(),
  'replicas killed at the last answers': (world, _random, edge) => {
    const { onAnswered } = world;
    world.onAnswered = (client) => {
      onAnswered(client);
      if (client.traffic.edge !== edge || world.isOpen(edge)) return;
      // Before the outcome arrives.
      for (const { served, kill } of world.replicas()) if (served.has(client.requestId)) world.scheduler.at(0, kill);
    };
  },
  'links lossy at a stop': ({ network, scheduler }, random) => {
    network.weather = { loss: 0.3 + random.next() * 0.5, copy: 0.2, delayMs: 20 };
    scheduler.at(random.int(200, 1_800), () => network.calm());
  },
};

/** Plans one or two stops within `spanMs`, most of them with another fault. */
export function planStops(world: World, random: Random, spanMs: number): void {
  const { scheduler } = world;
  let number = STOPPED_FROM;
  const strike = (atMs: number, name: string, what: () => void): void =>
    void scheduler.at(atMs, () => {
      world.coverage.struck(name);
      scheduler.say(() => `FAULT ${name}`);
      what();
    });
  for (let left = random.int(1, 2); left > 0; left -= 1) {
    const edge = random.int(0, 1);
    const atMs = AHEAD_MS + random.next() * (spanMs - AHEAD_MS);
    const drainMs = random.chance(0.5) ? random.int(100, 2_000) : random.int(2_000, 12_000);
    for (let asked = random.int(2, 5); asked > 0; asked -= 1) {
      const traffic = roundsTrafficOf(number++, edge, random);
      scheduler.at(atMs - random.next() * AHEAD_MS, () => world.ask(traffic));
    }
    strike(atMs, 'edge stopped', () => world.stopEdge(edge, drainMs));
    if (random.chance(0.8)) {
      const name = random.pick(Object.keys(TROUBLES));
      strike(atMs + random.next() * Math.min(drainMs, AHEAD_MS), name, () => TROUBLES[name]?.(world, random, edge));
    }
  }
  if (random.chance(APART_SHARE)) planApart(world, random, number, spanMs);
}

/** Both replicas have rounds of the request, and its client got text of a round after one that only called tools. */
function isApart(world: World, { requestId, given, isOver }: SimClient): boolean {
  const latest = Math.max(0, ...given);
  const isUnseen = (attempt: number): boolean => !given.has(attempt) && world.workers.some(({ provider }) => provider.bill.get(`${requestId}/${attempt}`)?.isCall === true);
  return !isOver && world.replicas().every(({ served }) => served.has(requestId)) && Array.from({ length: latest }, (_, at) => at + 1).some(isUnseen);
}

/** Plans streams in rounds. Their edge is killed once a client got text of a round that follows calls at the other replica, so that neither log has both. */
function planApart(world: World, random: Random, firstNumber: number, spanMs: number): void {
  const { scheduler } = world;
  const edge = random.int(0, 1);
  const atMs = random.next() * (spanMs - AHEAD_MS);
  const asked = new Set<string>();
  for (let left = random.int(3, 6); left > 0; left -= 1) {
    const traffic = { ...roundsTrafficOf(firstNumber + left, edge, random), account: UNLIMITED_ACCOUNT, stream: true };
    asked.add(traffic.requestId);
    scheduler.at(atMs + random.next() * AHEAD_MS, () => world.ask(traffic));
  }
  const look = (): void => {
    if (world.clients.some((client) => asked.has(client.requestId) && isApart(world, client))) {
      world.coverage.struck('edge killed amid rounds of two replicas');
      scheduler.say(() => `FAULT edge ${edge} killed amid rounds of two replicas`);
      world.killEdge(edge);
    } else if (scheduler.nowMs < atMs + 2 * AHEAD_MS) scheduler.at(LOOK_MS, look);
  };
  scheduler.at(atMs, look);
}
