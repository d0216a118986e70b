/** Settings of the whole process, applied once before anything is served. */
import { readdirSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { config as configureZod } from 'zod';
import { systemClock } from './clock.js';
import { collectAfterBodies } from './young-heap.js';

/** 64 KB: batches of a link are a few kilobytes each, and with Node's default pool of 8 KB each would be allocated from the system. */
const BUFFER_POOL_BYTES = 64 * 1024;

/** How far the heap may grow beyond its live objects, in percent, before it is collected. With V8's default, up to 300, an all-in-one process had 240 MB, a third of it garbage; with 60 it had 208. */
const HEAP_GROWING_PERCENT = 40;

/** Points in that growth, in percent, at which marking begins in a task, and immediately. V8's default is when less room is left than the size of the young generation, which is always true for so small a heap. */
const MARKING_SOFT_PERCENT = 60;
const MARKING_HARD_PERCENT = 80;

/** Nice levels of V8's own threads below the main thread: on a full core, helper threads of a collection delayed requests by tens of milliseconds. At 6 and more they fell behind at full load, and the heap grew beyond its limit. */
const BACKGROUND_NICENESS = 3;
const NICENESS_MAX = 19;

/** First Node line known to have V8's flag for this; V8 prints an error for flags that it does not know, as on Node 20, which compiles without Maglev. */
const MAGLEV_MAJOR = 24;

/** Only Linux has a priority per thread; does nothing elsewhere. */
function lowerBackgroundThreads(): void {
  if (process.platform !== 'linux') return;
  try {
    const threads = readdirSync('/proc/self/task').map(Number);
    // The pids do not match ours: /proc belongs to another pid namespace.
    if (!threads.includes(process.pid)) return;
    const niceness = Math.min(NICENESS_MAX, getPriority() + BACKGROUND_NICENESS);
    for (const thread of threads) if (thread !== process.pid) setPriority(thread, niceness);
  } catch {
    // A thread ended, or we lack the right: this costs only some latency.
  }
}

/** For `main` modules only, since it affects every library of the process. */
export function tuneProcess(): void {
  Buffer.poolSize = BUFFER_POOL_BYTES;
  // By default V8 drops the bytecode of functions that were unused for some collections: after a minute of idling, the next requests cost twice as much.
  setFlagsFromString('--no-flush-bytecode');
  // By default V8 allocates objects directly in old space if earlier ones from the same line lived long. After an hour of streams, the objects of each plain request would stay, with all they refer to, until a full collection; they were 58 % of its work.
  setFlagsFromString('--no-allocation-site-pretenuring');
  lowerBackgroundThreads();
  setFlagsFromString(`--heap-growing-percent=${String(HEAP_GROWING_PERCENT)}`);
  setFlagsFromString(`--incremental-marking-soft-trigger=${String(MARKING_SOFT_PERCENT)}`);
  setFlagsFromString(`--incremental-marking-hard-trigger=${String(MARKING_HARD_PERCENT)}`);
  // The single helper thread would share its core with the thread that waits for it.
  setFlagsFromString('--no-parallel-scavenge');
  // By default V8 leaves the memory of Maglev's finished compilations for its helper thread to free, which kept tens of megabytes resident on a busy core (ADR 99).
  if (Number.parseInt(process.versions.node, 10) >= MAGLEV_MAJOR) setFlagsFromString('--no-maglev-destroy-on-background');
  // Zod writes and compiles a function for each schema, which pays after many values. Most schemas here see one, at the start.
  configureZod({ jitless: true });
  collectAfterBodies(systemClock);
}
