/** What V8 is told on the command line of each process of the split. `scripts/bundle.mjs` compiles under the same: V8 takes no other code. */

/** MB for new objects, of which V8 has a multiple resident: a service that answers in a millisecond keeps few, and a worker and billing hand on what they read. V8's own 16 cost 10 to 25 MB a process. */
const semiSpaceMbOf = (role: string): number => (role === 'edge' ? 8 : role === 'billing' ? 2 : 4);

/**
 * One thread of V8's own instead of four: on a shared core they get in each other's way, and collections cost a third more.
 * Twice what V8 puts into one function, since a request's way is many small ones; and no baseline code, which is compiled
 * and held for what soon has better (figures in ADR 69).
 */
export const v8FlagsOf = (role: string): readonly string[] => ['--v8-pool-size=1', '--no-memory-reducer', '--max-inlined-bytecode-size=1000', '--max-inlined-bytecode-size-cumulative=2000', '--no-sparkplug', `--max-semi-space-size=${String(semiSpaceMbOf(role))}`];
