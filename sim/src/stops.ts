/** Edges that are stopped in an orderly way while replicas of a worker hold rounds of their requests. */
import type { Random } from './random.js';
import { roundsTrafficOf } from './traffic.js';
import type { World } from './world.js';

/** Numbers of the requests. */
const STOPPED_FROM = 600;
/** Requests come so long before the stop, or as long into the drain before its other trouble. */
const AHEAD_MS = 2_500;

/** What makes it hard to tell workers what became of their attempts. */
const TROUBLES: Readonly<Record<string, (world: World, random: Random, edge: number) => void>> = {
  'replica killed at a stop': (world, random) => random.pick(world.replicas()).kill(),
  'replicas killed at the last answers': (world, _random, edge) => {
    const { onAnswered } = world;
    world.onAnswered = (client) => {
      onAnswered(client);
      if (client.traffic.edge !== edge || world.isOpen(edge)) return;
      // Before the word of it arrives.
      for (const { served, kill } of world.replicas()) if (served.has(client.requestId)) world.scheduler.at(0, kill);
    };
  },
  'links lossy at a stop': ({ network, scheduler }, random) => {
    network.weather = { loss: 0.3 + random.next() * 0.5, copy: 0.2, delayMs: 20 };
    scheduler.at(random.int(200, 1_800), () => network.calm());
  },
};

/** One or two stops within `spanMs`, most of them in some other trouble. */
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
}
