/** The command line of `npm run sim`. */

export interface Arguments {
  readonly seeds: number;
  /** First seed; with `seeds` 1 the run is printed step by step. */
  readonly seed: number;
  readonly mutants: boolean;
}

export const USAGE = 'npm run sim -- [--seeds N] [--seed S] [--mutants]';

/** Throws an Error for a person if an argument is unknown or not a whole number. */
export function readArguments(given: readonly string[]): Arguments {
  const numbers = new Map<string, number>();
  let mutants = false;
  for (let i = 0; i < given.length; i += 1) {
    const name = given[i];
    if (name === '--mutants') {
      mutants = true;
      continue;
    }
    if (name !== '--seeds' && name !== '--seed') throw new Error(`Unknown argument ${name ?? ''}. ${USAGE}`);
    i += 1;
    const value = Number(given[i]);
    if (!Number.isSafeInteger(value) || value < 1) throw new Error(`${name} takes a whole number from 1. ${USAGE}`);
    numbers.set(name, value);
  }
  const seed = numbers.get('--seed');
  return { seeds: numbers.get('--seeds') ?? (seed === undefined ? (mutants ? 2_000 : 1_000) : 1), seed: seed ?? 1, mutants };
}
