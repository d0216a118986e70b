/** Settings of the whole process, made once before anything is served. */
import { readdirSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { config as configureZod } from 'zod';
import { systemClock } from './clock.js';
import { collectAfterBodies } from './young-heap.js';

/** 64 KB: batches of a link are a few kilobytes each, and Node's own pool of 8 KB sends them to the system's allocator one by one. */
const BUFFER_POOL_BYTES = 64 * 1024;

/** How far the heap may grow beyond what lives in it, in percent, before it is collected. V8's own choice, up to 300, held an all-in-one at 240 MB of which a third was garbage; 60 held 208. */
const HEAP_GROWING_PERCENT = 40;

/** Where in that growth marking begins, in percent: by a task, and at once. V8 begins when less is left than new objects have space, which with so small a heap is always. */
const MARKING_SOFT_PERCENT = 60;
const MARKING_HARD_PERCENT = 80;

/** Nice levels that V8's own threads stand below the one that answers: on a full core a collection's helpers held a request up for tens of milliseconds. At 6 and more they fell behind at full load, and the heap grew beyond its limit. */
const BACKGROUND_NICENESS = 3;
const NICENESS_MAX = 19;

/** Linux alone has a priority for each thread; elsewhere nothing happens. */
function lowerBackgroundThreads(): void {
  if (process.platform !== 'linux') return;
  try {
    const threads = readdirSync('/proc/self/task').map(Number);
    // Other numbers than the system knows us by: a foreign /proc.
    if (!threads.includes(process.pid)) return;
    const niceness = Math.min(NICENESS_MAX, getPriority() + BACKGROUND_NICENESS);
    for (const thread of threads) if (thread !== process.pid) setPriority(thread, niceness);
  } catch {
    // A thread ended, or the system does not let us: nothing but time is lost.
  }
}

/** For `main` modules only: it changes what every library of the process does. */
export function tuneProcess(): void {
  Buffer.poolSize = BUFFER_POOL_BYTES;
  // V8 forgets what it compiled of functions that some collections found unused: a gateway that was idle for a minute met the next requests cold, at twice their cost.
  setFlagsFromString('--no-flush-bytecode');
  // Where objects lived long, V8 puts all later ones from the same line among the old: one hour of streams, and what each plain request makes is kept with all it points to until a full collection. It was 58 % of what those had to do.
  setFlagsFromString('--no-allocation-site-pretenuring');
  lowerBackgroundThreads();
  setFlagsFromString(`--heap-growing-percent=${String(HEAP_GROWING_PERCENT)}`);
  setFlagsFromString(`--incremental-marking-soft-trigger=${String(MARKING_SOFT_PERCENT)}`);
  setFlagsFromString(`--incremental-marking-hard-trigger=${String(MARKING_HARD_PERCENT)}`);
  // The one helper thread shares the core with the thread that would wait for it.
  setFlagsFromString('--no-parallel-scavenge');
  // Zod writes and compiles a function for each schema, which pays after many values. Most schemas here see one, at the start.
  configureZod({ jitless: true });
  collectAfterBodies(systemClock);
}
