/** Runs many seeds in one thread, a few at a time, since each run waits for turns of the event loop, which they share. */
import { Coverage, type Transition } from './coverage.js';
import type { Mutant } from './mutants.js';
import { runSeed } from './run.js';

export interface BatchRequest {
  readonly from: number;
  readonly count: number;
  readonly mutant: Mutant | undefined;
}

export interface BatchResult {
  readonly runs: number;
  readonly steps: number;
  readonly stepsMin: number;
  readonly faults: number;
  readonly faultsMin: number;
  /** Seeds that violated an invariant, each with its first violation. */
  readonly failures: readonly { readonly seed: number; readonly violation: string }[];
  readonly transitions: readonly (readonly [Transition, number])[];
  readonly struck: readonly (readonly [string, number])[];
}

const AT_ONCE = 16;

export async function runBatch({ from, count, mutant }: BatchRequest): Promise<BatchResult> {
  const coverage = new Coverage();
  const failures: { seed: number; violation: string }[] = [];
  let next = from;
  let steps = 0;
  let faults = 0;
  let stepsMin = Infinity;
  let faultsMin = Infinity;
  const work = async (): Promise<void> => {
    while (next < from + count) {
      const run = await runSeed(next++, mutant);
      steps += run.steps;
      faults += run.faults;
      stepsMin = Math.min(stepsMin, run.steps);
      faultsMin = Math.min(faultsMin, run.faults);
      coverage.add(run.coverage);
      const [violation] = run.violations;
      if (violation !== undefined) failures.push({ seed: run.seed, violation });
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, count) }, work));
  failures.sort((a, b) => a.seed - b.seed);
  return { runs: count, steps, stepsMin, faults, faultsMin, failures, transitions: [...coverage.transitions], struck: [...coverage.faults] };
}
