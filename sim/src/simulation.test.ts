import { describe, expect, test } from '@jest/globals';
import { runBatch } from './batch.js';
import { MUTANT_NAMES, type Mutant } from './mutants.js';
import { FAULTS_MIN, runSeed, STEPS_MIN } from './run.js';

/** Seeds per test: the hundred are split, so that on a slow machine each part has its own time limit. */
const SHARE = 20;
const SHARES = [1, 21, 41, 61, 81];
/** Enough to catch the rarest mutant. */
const MUTANT_SEEDS = 300;
const MUTANT_STEP = 4;
/** Seeds at which rare mutants were caught last; only saves time. */
const MUTANT_FROM: Partial<Record<Mutant, number>> = { 'advance-bottomless': 121, 'draw-lost': 151, 'grow-in-another-life': 51, 'away-is-refused': 51, 'end-early': 61 };

describe('the money protocol under faults', () => {
  test.each(SHARES)('every invariant holds in every run, and every run is long and rough enough (from seed %d)', async (from) => {
    const { failures, stepsMin, faultsMin } = await runBatch({ from, count: SHARE, mutant: undefined });
    expect(failures).toEqual([]);
    expect(stepsMin).toBeGreaterThanOrEqual(STEPS_MIN);
    expect(faultsMin).toBeGreaterThanOrEqual(FAULTS_MIN);
  }, 60_000);

  test('a seed replays step by step', async () => {
    const told = async (): Promise<readonly string[]> => {
      const lines: string[] = [];
      await runSeed(7, undefined, (line) => lines.push(line));
      return lines;
    };
    const first = await told();
    expect(first.length).toBeGreaterThan(50);
    expect(await told()).toEqual(first);
  });

  test('a worker that dies once it is back from an orderly stop dies within 3 s of its return', async () => {
    const lines: string[] = [];
    await runSeed(901_962, undefined, (line) => lines.push(line));
    const [fault = -1] = lines.flatMap((line, index) => (line.includes('FAULT worker killed once it is back') ? [index] : []));
    const name = /KILL (worker \w+)/.exec(lines[fault + 1] ?? '')?.[1];
    const start = lines.slice(0, fault).filter((line) => line.endsWith(`START ${name}`)).at(-1);
    const timeOf = (line = ''): number => Number.parseFloat(line);
    expect(timeOf(lines[fault]) - timeOf(start)).toBeGreaterThan(0);
    expect(timeOf(lines[fault]) - timeOf(start)).toBeLessThan(3_100);
  });

  test.each(MUTANT_NAMES)('the checker catches the broken variant %s', async (mutant) => {
    let caught = 0;
    const first = MUTANT_FROM[mutant] ?? 1;
    for (let from = first; caught === 0 && from < first + MUTANT_SEEDS; from += MUTANT_STEP) caught = (await runBatch({ from, count: MUTANT_STEP, mutant })).failures.length;
    expect(caught).toBeGreaterThan(0);
  }, 60_000);
});
