/** `npm run sim`: runs seeds, or replays one; exits 1 if an invariant was violated or a mutant was not caught. */
import { readArguments, type Arguments } from './arguments.js';
import { TRANSITIONS } from './coverage.js';
import { MUTANT_NAMES, MUTANTS, type Mutant } from './mutants.js';
import { runSeed } from './run.js';
import { runSeeds, type Total } from './threads.js';

/** With fewer runs, not every transition must occur. */
const COVERED_FROM = 1_000;
const SHOWN_MAX = 10;
/** A mutant's remaining seeds are skipped once this many have caught it. */
const CAUGHT_ENOUGH = 3;

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const seconds = (sinceMs: number): string => ((performance.now() - sinceMs) / 1_000).toFixed(1);

function table(rows: Iterable<readonly [string, number]>): void {
  for (const [name, times] of rows) say(`  ${name.padEnd(34)} ${String(times).padStart(9)}`);
}

function showFailures({ failures }: Total, mutant?: Mutant): void {
  for (const { seed, violation } of failures.slice(0, SHOWN_MAX)) say(`  seed ${seed}: ${violation}`);
  const [first] = failures;
  if (first !== undefined && mutant === undefined) say(`Replay: npm run sim -- --seed ${first.seed}`);
}

async function replay(seed: number): Promise<boolean> {
  const run = await runSeed(seed, undefined, say);
  say(`seed ${seed}: ${run.steps} steps, ${run.faults} faults, ${run.violations.length} violations`);
  for (const violation of run.violations) say(violation);
  return run.violations.length === 0;
}

async function runCorrect({ seed, seeds }: Arguments): Promise<boolean> {
  const startMs = performance.now();
  const total = await runSeeds({ from: seed, count: seeds, mutant: undefined, onProgress: ({ failures }) => failures.length < 100 });
  say(`seeds ${seed} to ${seed + seeds - 1}: ${total.runs} runs in ${seconds(startMs)} s`);
  say(`steps ${total.steps} (at least ${total.stepsMin} a run), faults ${total.faults} (at least ${total.faultsMin} a run)`);
  say('transitions taken:');
  table(TRANSITIONS.map((transition) => [transition, total.coverage.transitions.get(transition) ?? 0]));
  say('faults struck:');
  table([...total.coverage.faults].sort());
  const missing = total.runs >= COVERED_FROM ? total.coverage.missing() : [];
  if (missing.length > 0) say(`Never taken: ${missing.join(', ')}.`);
  say(total.failures.length === 0 ? 'No invariant was violated.' : `${total.failures.length} runs violated an invariant:`);
  showFailures(total);
  return total.failures.length === 0 && missing.length === 0;
}

async function runMutant(mutant: Mutant, { seed, seeds }: Arguments): Promise<boolean> {
  const startMs = performance.now();
  const total = await runSeeds({ from: seed, count: seeds, mutant, onProgress: ({ failures }) => failures.length < CAUGHT_ENOUGH });
  const isCaught = total.failures.length > 0;
  say(`${isCaught ? 'caught' : 'NOT CAUGHT'}  ${mutant}: ${MUTANTS[mutant]}; ${total.failures.length} of ${total.runs} runs, ${seconds(startMs)} s`);
  showFailures({ ...total, failures: total.failures.slice(0, CAUGHT_ENOUGH) }, mutant);
  return isCaught;
}

async function main(): Promise<boolean> {
  const options = readArguments(process.argv.slice(2));
  if (options.mutants) {
    let areCaught = true;
    for (const mutant of MUTANT_NAMES) areCaught = (await runMutant(mutant, options)) && areCaught;
    return areCaught;
  }
  return options.seeds === 1 ? replay(options.seed) : runCorrect(options);
}

main().then(
  (isGood) => {
    process.exitCode = isGood ? 0 : 1;
  },
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : 'unknown reason'}\n`);
    process.exitCode = 1;
  },
);
