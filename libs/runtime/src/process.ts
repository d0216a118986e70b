/** Settings of the whole process, made once before anything is served. */
import { setFlagsFromString } from 'node:v8';

/** 64 KB: batches of a link are a few kilobytes each, and Node's own pool of 8 KB sends them to the system's allocator one by one. */
const BUFFER_POOL_BYTES = 64 * 1024;

/** How far the heap may grow beyond what lives in it, in percent, before it is collected. V8's own choice, up to 300, held an all-in-one at 240 MB of which a third was garbage; this costs some 3 % of CPU. */
const HEAP_GROWING_PERCENT = 40;

/** For `main` modules only: it changes what every library of the process does. */
export function tuneProcess(): void {
  Buffer.poolSize = BUFFER_POOL_BYTES;
  // V8 forgets what it compiled of functions that some collections found unused: a gateway that was idle for a minute met the next requests cold, at twice their cost.
  setFlagsFromString('--no-flush-bytecode');
  setFlagsFromString(`--heap-growing-percent=${String(HEAP_GROWING_PERCENT)}`);
}
