/** Settings of the whole process, made once before anything is served. */

/** 64 KB: batches of a link are a few kilobytes each, and Node's own pool of 8 KB sends them to the system's allocator one by one. */
const BUFFER_POOL_BYTES = 64 * 1024;

/** For `main` modules only: it changes what every library of the process does. */
export function tuneProcess(): void {
  Buffer.poolSize = BUFFER_POOL_BYTES;
}
