/** Plans the faults of a run: which, when, and for how long. */
import type { KillAt } from './disk.js';
import type { Life } from './life.js';
import type { Random } from './random.js';
import type { World } from './world.js';

type Strike = (world: World, random: Random) => () => void;

const NOTHING = (): void => undefined;
const WHERE: readonly KillAt[] = ['before', 'torn', 'after'];

/** Each returns a function that ends the fault; some end by themselves. */
const FAULTS: Readonly<Record<string, Strike>> = {
  'kill edge': (world, random) => {
    world.killEdge(random.int(0, 1));
    return NOTHING;
  },
  'kill worker': (world, random) => {
    world.killWorker(random.int(0, 1));
    return NOTHING;
  },
  'kill worker at a write': (world, random) => {
    world.disk(random.int(0, 1)).killAtWrite = { left: random.int(1, 6), where: random.pick(WHERE) };
    return NOTHING;
  },
  'kill quota': (world, random) => {
    world.killQuota(random.int(0, 1));
    return NOTHING;
  },
  'kill billing': (world) => {
    world.killBilling();
    return NOTHING;
  },
  'kill accounts': (world) => {
    world.killAccounts();
    return NOTHING;
  },
  'freeze a process': (world, random) => {
    const life = random.pick(world.lives());
    life.freeze();
    return () => life.thaw();
  },
  'cut the links of a worker': (world, random) => {
    world.cutWorker(random.int(0, 1));
    return NOTHING;
  },
  'lossy links': ({ network }, random) => {
    network.weather = { loss: 0.05 + random.next() * 0.4, copy: 0.2, delayMs: 20 };
    return () => network.calm();
  },
  'slow links': ({ network }, random) => {
    network.weather = { loss: 0, copy: 0.1, delayMs: random.int(50, 600) };
    return () => network.calm();
  },
  'counters away': ({ counters }) => {
    counters.isUp = false;
    return () => counters.calm();
  },
  'counters lose replies': ({ counters }) => {
    counters.lostReply = 0.4;
    return () => counters.calm();
  },
  'counters wiped': ({ counters }) => {
    counters.wipe();
    return NOTHING;
  },
  'counters rolled back': ({ counters }) => {
    counters.rollBack();
    return NOTHING;
  },
  'bus away': ({ bus }) => {
    bus.isUp = false;
    return () => bus.calm();
  },
  'bus wiped': ({ bus }) => {
    bus.wipe();
    return NOTHING;
  },
  'bus doubles and forgets': ({ bus }) => {
    bus.copy = 0.4;
    bus.lostAcknowledgement = 0.3;
    bus.lostAnnouncement = 0.4;
    return () => bus.calm();
  },
  'ledger away': ({ ledger }) => {
    ledger.isUp = false;
    return () => ledger.calm();
  },
  'ledger loses replies': ({ ledger }) => {
    ledger.lostReply = 0.5;
    return () => ledger.calm();
  },
  'ledger restored from a backup': (world) => {
    world.restoreLedger();
    return NOTHING;
  },
  'disk full': (world, random) => {
    const disk = world.disk(random.int(0, 1));
    disk.isFull = true;
    return () => {
      disk.isFull = false;
    };
  },
};
const FAULT_NAMES = Object.keys(FAULTS);

/** A fault that strikes after a hold has grown and before the answer arrives. */
const atGrowth = (strike: (world: World, random: Random, asker: Life, writer: string) => boolean): Strike => (world, random) => {
  world.counters.atGrowth = (asker, writer) => strike(world, random, asker, writer);
  return () => {
    world.counters.atGrowth = undefined;
  };
};

/** Faults for growing holds, with their durations in milliseconds: an answer waits for 5 s at the end of its hold. */
const GROWTH_FAULTS: Readonly<Record<string, { readonly strike: Strike; readonly lastsMs: (random: Random) => number }>> = {
  'quota killed at a growth': { strike: atGrowth((world, _random, asker) => (world.killQuotaOf(asker), true)), lastsMs: () => 5_000 },
  'worker killed at a growth': { strike: atGrowth((world, _random, _asker, writer) => (world.killWriter(writer), true)), lastsMs: () => 5_000 },
  'counters wiped at a growth': { strike: atGrowth(({ counters }, random) => (counters.wipe(), random.chance(0.5))), lastsMs: () => 5_000 },
  'word of a growth lost': { strike: atGrowth(() => true), lastsMs: () => 5_000 },
  'counters wiped': { strike: (world) => (world.counters.wipe(), NOTHING), lastsMs: () => 1 },
  'counters away for less than an answer waits': { strike: FAULTS['counters away'] ?? (() => NOTHING), lastsMs: (random) => random.int(200, 4_000) },
  'counters away for longer than an answer waits': { strike: FAULTS['counters away'] ?? (() => NOTHING), lastsMs: (random) => random.int(5_500, 9_000) },
};

/** Plans 1 to 3 of these faults, while holds grow. */
export function planGrowth(world: World, random: Random, spanMs: number): void {
  for (let left = random.int(1, 3); left > 0; left -= 1) {
    const name = random.pick(Object.keys(GROWTH_FAULTS));
    const fault = GROWTH_FAULTS[name];
    world.scheduler.at(400 + random.next() * spanMs, () => {
      world.coverage.struck(name);
      world.scheduler.say(() => `FAULT ${name}`);
      const end = fault?.strike(world, random) ?? NOTHING;
      world.scheduler.at(fault?.lastsMs(random) ?? 0, end);
    });
  }
}

/** Plans 3 to 9 faults within `spanMs`, most of them short. */
export function plan(world: World, random: Random, spanMs: number): void {
  const count = random.int(3, 9);
  for (let i = 0; i < count; i += 1) {
    const name = random.pick(FAULT_NAMES);
    const lastsMs = random.chance(0.15) ? random.int(5_000, 45_000) : random.int(20, 3_000);
    world.scheduler.at(random.next() * spanMs, () => {
      world.coverage.struck(name);
      world.scheduler.say(() => `FAULT ${name} for ${lastsMs} ms`);
      const end = FAULTS[name]?.(world, random) ?? NOTHING;
      world.scheduler.at(lastsMs, end);
    });
  }
  // The snapshot that a roll-back restores.
  world.scheduler.at(random.next() * spanMs, () => world.counters.save());
  world.scheduler.at(random.next() * spanMs, () => world.ledger.takeBackup());
}
