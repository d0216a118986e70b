/** Broken variants of the protocol, each of which the checker must catch: a proof of the checker, not of the code. */

export const MUTANTS = {
  'no-unique-key': 'the ledger books what it is sent, without unique keys',
  counters: 'quota adds and subtracts (INCR) instead of keeping what belongs to a request',
  'no-write-ahead': 'the start of an attempt is written down only when it has ended',
  'cut-at-bus': 'the log forgets what the bus has acknowledged',
  'no-rebuild': 'quota opens after a loss without asking the ledger',
  'check-then-spend': 'quota looks at what was spent and reserves nothing',
} as const;
export type Mutant = keyof typeof MUTANTS;

export const MUTANT_NAMES = Object.keys(MUTANTS) as readonly Mutant[];
