/** V8 flags of each process of the split. `scripts/bundle.mjs` compiles under the same flags: V8 accepts no other compiled code. */

/** Size of V8's semi-space in MB; a multiple of it is resident. Services that answer in a millisecond keep few objects, and workers and billing pass on what they read. V8's default of 16 costs 10 to 25 MB more per process. */
const semiSpaceMbOf = (role: string): number => (role === 'edge' ? 8 : role === 'billing' ? 2 : 4);

/**
 * Bytes of bytecode that a function runs through, three times, before V8 optimises it; V8's default is a ninth of it. Services that
 * answer a few dozen short questions a second would spend more on compiling than they save (figures in ADR 116). From Node 22 on V8
 * counts calls instead, and does not know the flag.
 */
const RARELY_BUSY_BUDGET = 600_000;
const COUNTS_CALLS_MAJOR = 22;
const budgetOf = (role: string): readonly string[] =>
  role === 'edge' || role.startsWith('worker-') || Number.parseInt(process.versions.node, 10) >= COUNTS_CALLS_MAJOR ? [] : [`--interrupt-budget=${String(RARELY_BUSY_BUDGET)}`];

/**
 * One V8 thread instead of four: on a shared core they disturb each other, and collections cost a third more. Twice V8's
 * default for inlining, since a request runs through many small functions. No baseline code, which costs compile time and
 * memory for functions that are soon optimised (figures in ADR 69).
 */
export const v8FlagsOf = (role: string): readonly string[] => ['--v8-pool-size=1', '--no-memory-reducer', '--max-inlined-bytecode-size=1000', '--max-inlined-bytecode-size-cumulative=2000', '--no-sparkplug', `--max-semi-space-size=${String(semiSpaceMbOf(role))}`, ...budgetOf(role)];
