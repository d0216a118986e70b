/** V8 flags of each process of the split. `scripts/bundle.mjs` compiles under the same flags: V8 accepts no other compiled code. */

/** Size of V8's semi-space in MB; a multiple of it is resident. Services that answer in a millisecond keep few objects, and workers and billing pass on what they read. V8's default of 16 costs 10 to 25 MB more per process. */
const semiSpaceMbOf = (role: string): number => (role === 'edge' ? 8 : role === 'billing' ? 2 : 4);

/**
 * One V8 thread instead of four: on a shared core they disturb each other, and collections cost a third more. Twice V8's
 * default for inlining, since a request runs through many small functions. No baseline code, which costs compile time and
 * memory for functions that are soon optimised (figures in ADR 69).
 */
export const v8FlagsOf = (role: string): readonly string[] => ['--v8-pool-size=1', '--no-memory-reducer', '--max-inlined-bytecode-size=1000', '--max-inlined-bytecode-size-cumulative=2000', '--no-sparkplug', `--max-semi-space-size=${String(semiSpaceMbOf(role))}`];
