/** Broken variants of the protocol. The checker must catch each of them: this tests the checker, not the code. */

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
  'tokens-unlooked': 'quota does not look at limits in tokens',
  'advance-bottomless': 'edge serves more from an advance than was taken',
  'draw-lost': 'what a request was served with leaves its advance and is held no more',
  'rounds-superseded': 'each round of a request takes the place of those before',
  'rounds-apart': 'the ledger is not told which rounds only called tools',
  'rounds-unheld': 'edge takes room for another round for granted',
  'fees-forgotten': 'workers are given cards without the fees of plugins',
  'reserve-forgotten': 'an answer in reserve that is given after all is told as superseded',
  'own-charged': 'workers write down what runs on own credentials as what runs on ours',
  'keys-forgotten': 'accounts forgets each claim of an Idempotency-Key at once',
  'begun-unwritten': 'accounts gives an Idempotency-Key away as if nothing under it had been dispatched',
  'left-unpaid': 'a worker books nothing for a client that hangs up before the head of its answer',
  'leaving-unwritten': 'a worker does not write down that a client hung up',
  'cut-off-paid': 'a worker takes a client that edge cuts off for one that hangs up',
  'unsent-paid': 'a worker takes a request that waits for its connection for one that the provider has',
  'end-early': 'a worker that is told to stop says that it has ended before it has',
  'away-is-refused': 'a worker takes a quota that does not answer for one that refuses',
} as const;
export type Mutant = keyof typeof MUTANTS;

export const MUTANT_NAMES = Object.keys(MUTANTS) as readonly Mutant[];
