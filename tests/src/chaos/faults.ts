/** Injects faults into processes and stores, in the order given by the seed. */
import { systemClock } from '@signalbox/runtime/clock';
import type { Random } from '@signalbox/sim/random';
import type { Gateway } from '../harness/gateway.js';
import { ADMINISTERED, PROXIED, type ChaosStores } from './stores.js';

export interface StruckFault {
  readonly kind: string;
  readonly atMs: number;
  readonly endMs: number;
}

export interface Arena {
  readonly gateway: Gateway;
  readonly stores: ChaosStores;
  readonly random: Random;
  /** Called before Redis is wiped. */
  onWipe(): void;
}

const ROLES = ['edge', 'edge', 'quota', 'billing', 'worker-openai', 'worker-openai', 'routing', 'accounts'] as const;
const pause = (ms: number): Promise<void> => new Promise((resolve) => void systemClock.setTimer(ms, resolve));

/** Current pid of a gateway process that this run started. */
function pidOf({ gateway, random }: Arena, role: string): number | undefined {
  const all = gateway.processes().filter((one) => one.role === role && one.pid > 0);
  return all.length === 0 ? undefined : random.pick(all).pid;
}

/** False if the process no longer exists. */
function signal(pid: number | undefined, name: NodeJS.Signals): boolean {
  if (pid === undefined) return false;
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}

async function strikeProcess(arena: Arena): Promise<string> {
  const { random } = arena;
  const role = random.pick(ROLES);
  const pid = pidOf(arena, role);
  if (random.chance(0.6)) {
    signal(pid, 'SIGKILL');
    return `SIGKILL ${role}`;
  }
  signal(pid, 'SIGSTOP');
  await pause(random.int(200, 4_000));
  signal(pid, 'SIGCONT');
  return `SIGSTOP ${role}`;
}

async function strikeStore(arena: Arena): Promise<string> {
  const { random, stores } = arena;
  const name = random.pick(PROXIED);
  const proxy = stores.proxies[name];
  const [kind, strike] = random.pick([
    ['cut', () => proxy.cut()],
    ['cut once', () => proxy.cutOnce()],
    ['frozen', () => proxy.freeze()],
    ['slow', () => proxy.delay(random.int(20, 300))],
    ['replies lost', () => proxy.dropReplies()],
  ] as const);
  strike();
  await pause(random.int(200, 4_000));
  proxy.heal();
  // A lost reply leaves the connection out of sync, so cut it.
  if (kind === 'replies lost') proxy.cutOnce();
  return `${name} ${kind}`;
}

async function strike(arena: Arena): Promise<string> {
  const dice = arena.random.next();
  if (dice < 0.55) return strikeProcess(arena);
  if (dice < 0.85) return strikeStore(arena);
  if (dice < 0.94) {
    const what = arena.random.pick(ADMINISTERED);
    await arena.stores.administer(what, arena.random.int(1_000, 8_000));
    return `postgres ${what}`;
  }
  arena.onWipe();
  await arena.stores.wipeRedis();
  return 'redis wiped';
}

/** Injects one fault after the other, `everyMs` apart on average, until `untilMs` (monotonic). */
export async function strikeUntil(arena: Arena, everyMs: number, untilMs: number): Promise<readonly StruckFault[]> {
  const struck: StruckFault[] = [];
  for (;;) {
    await pause(everyMs * (0.5 + arena.random.next()));
    const atMs = systemClock.monotonicMs();
    if (atMs >= untilMs) return struck;
    const kind = await strike(arena);
    struck.push({ kind, atMs, endMs: systemClock.monotonicMs() });
  }
}
