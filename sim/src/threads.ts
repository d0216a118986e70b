/** Spreads seeds over threads. */
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { BatchRequest, BatchResult } from './batch.js';
import { Coverage } from './coverage.js';
import type { Mutant } from './mutants.js';

const BATCH = 250;

export interface Total {
  runs: number;
  steps: number;
  stepsMin: number;
  faults: number;
  faultsMin: number;
  readonly failures: { readonly seed: number; readonly violation: string }[];
  readonly coverage: Coverage;
}

/** Runs seeds `from` to `from + count - 1`. `onProgress` is called after each batch; if it returns false, the rest is skipped. */
export async function runSeeds({ from, count, mutant, onProgress }: { readonly from: number; readonly count: number; readonly mutant: Mutant | undefined; onProgress(total: Total): boolean }): Promise<Total> {
  const total: Total = { runs: 0, steps: 0, stepsMin: Infinity, faults: 0, faultsMin: Infinity, failures: [], coverage: new Coverage() };
  let next = from;
  let goesOn = true;
  const size = Math.max(1, Math.min(BATCH, Math.ceil(count / availableParallelism())));
  const take = (): BatchRequest | undefined => {
    if (!goesOn || next >= from + count) return undefined;
    const request = { from: next, count: Math.min(size, from + count - next), mutant };
    next += request.count;
    return request;
  };
  const add = (result: BatchResult): void => {
    total.runs += result.runs;
    total.steps += result.steps;
    total.faults += result.faults;
    total.stepsMin = Math.min(total.stepsMin, result.stepsMin);
    total.faultsMin = Math.min(total.faultsMin, result.faultsMin);
    total.failures.push(...result.failures);
    total.coverage.add({ transitions: result.transitions, faults: result.struck });
    goesOn = onProgress(total);
  };
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), Math.ceil(count / size)) }, () => work(take, add)));
  total.failures.sort((a, b) => a.seed - b.seed);
  return total;
}

function work(take: () => BatchRequest | undefined, add: (result: BatchResult) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const thread = new Worker(new URL('thread.js', import.meta.url));
    const go = (): void => {
      const request = take();
      if (request === undefined) void thread.terminate().then(() => resolve());
      else thread.postMessage(request);
    };
    thread.on('message', (result: BatchResult) => {
      add(result);
      go();
    });
    thread.on('error', reject);
    go();
  });
}
