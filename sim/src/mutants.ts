/** Broken variants of the protocol, each of which the checker must catch: a proof of the checker, not of the code. */

export const MUTANTS = {
  'no-unique-key': 'the ledger books what it is sent, without unique keys',
  counters: 'quota adds and subtracts (INCR) instead of keeping what belongs to a request',
  'no-write-ahead': 'the start of an attempt is written down only when it has ended',
  'cut-at-bus': 'the log forgets what the bus has acknowledged',
  'no-rebuild': 'quota opens after a loss without asking the ledger',
  'check-then-spend': 'quota looks at what was spent and reserves nothing',
  'grow-unlooked': 'quota lets a hold grow without looking at the limits of its admission',
  'grow-in-another-life': 'a worker takes growth for granted that was given in another life of the counters than the hold was admitted in',
  'growth-kept': 'what a hold grew by stays counted when the hold ends',
  'away-is-refused': 'a worker takes a quota that does not answer for one that refuses',
} as const;
export type Mutant = keyof typeof MUTANTS;

export const MUTANT_NAMES = Object.keys(MUTANTS) as readonly Mutant[];
