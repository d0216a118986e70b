import { describe, expect, test } from '@jest/globals';
import { asNanoUsd } from '@signalbox/kernel/money';
import { addAttempt, addOutcome, correctionOf, fold, isWhole, NO_FACTS, STAND_IN_ATTEMPT, type AttemptFact, type Booked, type OutcomeFact, type RequestFacts } from './fold.js';

type Event = { readonly attempt: AttemptFact } | { readonly outcome: OutcomeFact };

const ended = (attempt: number, cost: bigint, retryOf: readonly number[] = [], byok = false): Event => ({ attempt: { attempt, retryOf, costNanoUsd: asNanoUsd(cost), tokens: Number(cost), byok } });
const told = (attempt: number, outcome: OutcomeFact['outcome'], toldByEdge = true): Event => ({ outcome: { attempt, outcome, toldByEdge } });
const apply = (facts: RequestFacts, event: Event): RequestFacts => ('attempt' in event ? addAttempt(facts, event.attempt) : addOutcome(facts, event.outcome));

/** Books row by row as billing does; answers the sum and all sums on the way. */
function book(events: readonly Event[]): { sum: bigint; charges: number; lowest: bigint; sums: readonly bigint[] } {
  const sums: bigint[] = [];
  let facts = NO_FACTS;
  let booked: Booked | undefined;
  let charges = 0;
  let lowest = 0n;
  for (const event of events) {
    facts = apply(facts, event);
    const row = correctionOf(booked, fold(facts));
    if (row === undefined) continue;
    if (row.kind === 'charge') charges += 1;
    booked = { chargeNanoUsd: asNanoUsd((booked?.chargeNanoUsd ?? 0n) + row.amountNanoUsd), tokens: (booked?.tokens ?? 0) + row.tokens, byokTokens: (booked?.byokTokens ?? 0) + row.byokTokens };
    if (booked.chargeNanoUsd < lowest) lowest = booked.chargeNanoUsd;
    sums.push(booked.chargeNanoUsd);
  }
  return { sum: booked?.chargeNanoUsd ?? 0n, charges, lowest, sums };
}

/** Deterministic generator of the tests: xorshift32. */
function generator(seed: number): (below: number) => number {
  let state = seed | 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

describe('what stands in for a lost log', () => {
  const standIn = [ended(STAND_IN_ATTEMPT, 25n), told(STAND_IN_ATTEMPT, 'DELIVERED', false)];

  test('is the charge where nothing else is known, and ends a request whose other attempts were superseded', () => {
    expect(book(standIn)).toMatchObject({ sum: 25n, charges: 1 });
    expect(book([ended(1, 9n), told(1, 'SUPERSEDED'), ...standIn])).toMatchObject({ sum: 25n, charges: 1 });
    expect(book([ended(1, 9n), told(1, 'SUPERSEDED')])).toMatchObject({ sum: 0n, charges: 0 });
  });

  test('gives way to the log’s own facts, in whatever order they come', () => {
    const own = [ended(1, 25n), told(1, 'DELIVERED')];
    for (const events of [[...standIn, ...own], [...own, ...standIn], [own[0], ...standIn, own[1]]]) expect(book(events.filter((event) => event !== undefined))).toMatchObject({ sum: 25n, charges: 1, lowest: 0n });
    // It stood for a hold of which nothing more was known than that it was in use.
    expect(book([ended(STAND_IN_ATTEMPT, 0n), told(STAND_IN_ATTEMPT, 'DELIVERED', false), ...own])).toMatchObject({ sum: 25n, charges: 1 });
  });
});

describe('an answer that was kept in reserve', () => {
  const permutations = <T>(items: readonly T[]): T[][] => (items.length <= 1 ? [[...items]] : items.flatMap((item, at) => permutations(items.filter((_, other) => other !== at)).map((rest) => [item, ...rest])));

  test.each<[string, readonly Event[]]>([
    ['gave nothing', [told(2, 'SUPERSEDED')]],
    ['was concluded to have been delivered, by a worker that edge could not tell', [told(2, 'DELIVERED', false)]],
  ])('is charged when edge gave it after all, where the attempt that was to take its place %s', (_case, later) => {
    for (const events of permutations([ended(1, 40n), told(1, 'DELIVERED'), ended(2, 7n, [1]), ...later])) expect(book(events)).toMatchObject({ sum: 40n, charges: 1, lowest: 0n });
  });

  test('is charged from edge’s word on, and never less on the way to the word on the other', () => {
    const given = [ended(1, 40n), told(1, 'DELIVERED')];
    for (const events of permutations([...given, ended(2, 7n, [1])])) expect(book(events)).toMatchObject({ sum: 40n, charges: 1 });
    // The other's log is found after its worker was away: a moment at 0 would let the account spend the same room twice.
    for (const later of permutations([ended(2, 7n, [1]), told(2, 'SUPERSEDED')])) expect(book([...given, ...later]).sums).toEqual([40n]);
  });

  test('is free when another was given in its place, or when nobody but its worker says that it was', () => {
    for (const first of [told(1, 'SUPERSEDED'), told(1, 'DELIVERED', false)]) {
      for (const events of permutations([ended(1, 40n), first, ended(2, 7n, [1]), told(2, 'DELIVERED')])) expect(book(events)).toMatchObject({ sum: 7n, charges: 1 });
    }
    expect(book([ended(1, 40n), told(1, 'DELIVERED', false), ended(2, 7n, [1]), told(2, 'DISCARDED')])).toMatchObject({ sum: 0n });
  });
});

describe('a round that only called tools', () => {
  const called = (attempt: number, cost: bigint): Event => ({ attempt: { attempt, retryOf: [], costNanoUsd: asNanoUsd(cost), tokens: Number(cost), byok: false, restsOnCalls: true } });
  const permutations = <T>(items: readonly T[]): T[][] => (items.length <= 1 ? [[...items]] : items.flatMap((item, at) => permutations(items.filter((_, other) => other !== at)).map((rest) => [item, ...rest])));
  const sumOf = (...events: readonly Event[]): readonly bigint[] => [...new Set(permutations(events).map((ordered) => book(ordered).sum))];

  test('is charged with a later one that is, though its own log knew of none, in whatever order they come', () => {
    expect(sumOf(called(1, 40n), told(1, 'DISCARDED', false), ended(2, 7n), told(2, 'DELIVERED', false))).toEqual([47n]);
    expect(sumOf(called(1, 40n), told(1, 'DISCARDED', false), called(2, 5n), told(2, 'DISCARDED', false), ended(4, 7n, [3]), told(4, 'DELIVERED'))).toEqual([52n]);
  });

  test('is free where none followed, the one that did is free, edge said so, or another took its place', () => {
    expect(sumOf(called(1, 40n), told(1, 'DISCARDED', false))).toEqual([0n]);
    expect(sumOf(called(1, 40n), told(1, 'DISCARDED', false), ended(2, 7n), told(2, 'DISCARDED', false))).toEqual([0n]);
    expect(sumOf(called(1, 40n), told(1, 'DISCARDED'), ended(2, 7n), told(2, 'DELIVERED'))).toEqual([7n]);
    expect(sumOf(called(1, 40n), told(1, 'DISCARDED', false), ended(2, 7n, [1]), told(2, 'DELIVERED'))).toEqual([7n]);
    expect(sumOf(ended(1, 40n), told(1, 'DISCARDED', false), ended(2, 7n), told(2, 'DELIVERED'))).toEqual([7n]);
  });

  test('takes the one after it along where edge said that it is free, whatever a worker that edge could not tell takes for delivered', () => {
    expect(sumOf(called(1, 40n), told(1, 'DISCARDED'), ended(2, 7n), told(2, 'DELIVERED', false))).toEqual([0n]);
    expect(sumOf(called(1, 40n), told(1, 'DISCARDED'), ended(3, 7n, [2]), told(3, 'DELIVERED', false))).toEqual([0n]);
    // Of a round that failed after words edge says so, too: those before it are paid.
    expect(sumOf(ended(1, 40n), told(1, 'DELIVERED', false), ended(2, 7n), told(2, 'DISCARDED'))).toEqual([40n]);
    expect(sumOf(called(1, 40n), told(1, 'DISCARDED', false), ended(2, 7n), told(2, 'DELIVERED'), ended(3, 5n), told(3, 'DISCARDED'))).toEqual([47n]);
  });

  test('may be followed in a log that is not known yet', () => {
    const wholeAfter = (...events: readonly Event[]): boolean => isWhole(events.reduce(apply, NO_FACTS));
    expect(wholeAfter(called(1, 40n), told(1, 'DISCARDED', false))).toBe(false);
    expect(wholeAfter(called(1, 40n), told(1, 'DISCARDED'))).toBe(true);
    expect(wholeAfter(called(1, 40n), told(1, 'DISCARDED', false), ended(2, 7n), told(2, 'DELIVERED'))).toBe(true);
  });
});

describe('a round before one that edge gave, whose own worker was told nothing', () => {
  const permutations = <T>(items: readonly T[]): T[][] => (items.length <= 1 ? [[...items]] : items.flatMap((item, at) => permutations(items.filter((_, other) => other !== at)).map((rest) => [item, ...rest])));
  const sumsOf = (...events: readonly Event[]): readonly bigint[] => [...new Set(permutations(events).map((ordered) => book(ordered).sum))];
  const highestOf = (...events: readonly Event[]): bigint => permutations(events).flatMap((ordered) => book(ordered).sums).reduce((a, b) => (a > b ? a : b), 0n);

  test('is charged with it at once, and nothing changes once its worker hears so', () => {
    expect(sumsOf(ended(1, 40n), ended(2, 7n), told(2, 'DELIVERED'))).toEqual([47n]);
    expect(sumsOf(ended(1, 40n), ended(2, 7n), told(2, 'DELIVERED'), told(1, 'DELIVERED'))).toEqual([47n]);
    expect(sumsOf(ended(1, 40n), ended(2, 9n), ended(3, 7n, [2]), told(3, 'DELIVERED'))).toEqual([47n]);
    // Of a round over own credentials likewise, in tokens.
    expect(fold([ended(1, 40n, [], true), ended(2, 7n, [], true), told(2, 'DELIVERED')].reduce(apply, NO_FACTS))).toMatchObject({ byokTokens: 47, chargedAttempts: [1, 2] });
  });

  test('is charged on a worker’s word alone neither, nor where it was superseded, nor after edge gave the request up', () => {
    expect(sumsOf(ended(1, 40n), ended(2, 7n), told(2, 'DELIVERED', false))).toEqual([7n]);
    expect(sumsOf(ended(1, 40n), ended(2, 7n, [1]), told(2, 'DELIVERED'))).toEqual([7n]);
    expect(sumsOf(ended(1, 40n), told(1, 'DISCARDED'), ended(2, 9n), ended(3, 7n), told(3, 'DELIVERED'))).toEqual([7n]);
  });

  test('is never charged for a moment while the attempt that took its place is not known', () => {
    expect(highestOf(ended(1, 40n), ended(2, 7n, [1]), told(2, 'DELIVERED'))).toBe(7n);
    expect(highestOf(ended(1, 40n), ended(2, 9n, [1]), ended(3, 7n), told(3, 'DELIVERED'))).toBe(16n);
  });
});

describe('a request is whole', () => {
  const isWholeAfter = (...events: readonly Event[]): boolean => isWhole(events.reduce(apply, NO_FACTS));
  const rounds = [ended(1, 40n), told(1, 'DELIVERED'), ended(2, 5n), told(2, 'SUPERSEDED')];

  test('once the attempt that took the place of its latest is known, in whatever log that stands', () => {
    expect(isWholeAfter(...rounds)).toBe(false);
    expect(isWholeAfter(...rounds, ended(3, 7n, [2]))).toBe(false);
    expect(isWholeAfter(...rounds, ended(3, 7n, [2]), told(3, 'DELIVERED'))).toBe(true);
  });

  test('where its latest was given up for an answer that had been kept in reserve', () => {
    expect(isWholeAfter(ended(1, 40n), told(1, 'DELIVERED'), ended(2, 7n, [1]), told(2, 'SUPERSEDED'))).toBe(true);
  });
});

describe('the charge of a request', () => {
  test('is open until an ended attempt has a last word', () => {
    expect(fold(apply(NO_FACTS, ended(1, 5n)))).toBeUndefined();
    expect(fold(apply(NO_FACTS, told(1, 'DELIVERED')))).toBeUndefined();
    expect(fold([ended(1, 5n), told(1, 'SUPERSEDED')].reduce(apply, NO_FACTS))).toBeUndefined();
  });

  test('is the delivered attempt only when a fallback worked', () => {
    expect(book([ended(1, 5n), told(1, 'SUPERSEDED'), ended(2, 7n, [1]), told(2, 'DELIVERED')])).toMatchObject({ sum: 7n, charges: 1, lowest: 0n });
  });

  test('is brought down by an adjustment when the superseding fact arrives late', () => {
    expect(book([ended(1, 5n), told(1, 'DELIVERED', false), ended(2, 3n, [1]), told(2, 'DELIVERED')]).sum).toBe(3n);
  });

  test('is not lost to an attempt that names itself among those it supersedes', () => {
    expect(book([ended(1, 5n), told(1, 'SUPERSEDED'), ended(2, 7n, [1, 2]), told(2, 'DELIVERED')]).sum).toBe(7n);
  });

  test('adds rounds up', () => {
    expect(book([ended(1, 5n), ended(2, 7n), told(1, 'DELIVERED'), told(2, 'DELIVERED')]).sum).toBe(12n);
  });

  test('is 0 for discarded attempts and for own keys, whose tokens still count', () => {
    expect(book([ended(1, 5n), told(1, 'DISCARDED')]).sum).toBe(0n);
    const charge = fold([ended(1, 5n, [], true), told(1, 'DELIVERED')].reduce(apply, NO_FACTS));
    expect(charge).toEqual({ chargeNanoUsd: 0n, tokens: 0, byokTokens: 5, chargedAttempts: [1] });
  });

  test('does not move by an attempt that nothing is told of', () => {
    for (const outcome of ['DELIVERED', 'SUPERSEDED', 'DISCARDED'] as const) {
      for (const byok of [false, true]) {
        const facts = [ended(1, 5n, [], byok), told(1, outcome)].reduce(apply, NO_FACTS);
        expect(fold(apply(facts, ended(2, 7n)))).toEqual(fold(facts));
      }
    }
  });

  test('is the same for any order and duplication of the facts, with one charge row and never below 0', () => {
    for (let seed = 1; seed <= 2_000; seed += 1) {
      const draw = generator(seed * 7919);
      const events: Event[] = [];
      const attempts = 1 + draw(4);
      for (let n = 1; n <= attempts; n += 1) {
        const earlier = Array.from({ length: n - 1 }, (_, i) => i + 1).filter(() => draw(2) === 0);
        events.push(ended(n, BigInt(draw(1_000)), earlier, draw(5) === 0));
        const outcomes = ['DELIVERED', 'SUPERSEDED', 'DISCARDED'] as const;
        events.push(told(n, outcomes[draw(3)] ?? 'DELIVERED', draw(2) === 0));
        if (draw(4) === 0) events.push(told(n, outcomes[draw(3)] ?? 'DELIVERED', draw(2) === 0));
      }
      const right = book(events);
      const shuffled = [...events, ...events.filter(() => draw(2) === 0)];
      for (let i = shuffled.length - 1; i > 0; i -= 1) {
        const j = draw(i + 1);
        const [a, b] = [shuffled[i], shuffled[j]];
        if (a !== undefined && b !== undefined) [shuffled[i], shuffled[j]] = [b, a];
      }
      const other = book(shuffled);
      expect([seed, other.sum]).toEqual([seed, right.sum]);
      expect(other.charges).toBeLessThanOrEqual(1);
      expect(other.lowest).toBe(0n);
    }
  });
});

describe('whether a round of the request is still to be told of', () => {
  const wholeAfter = (...events: readonly Event[]): boolean => isWhole(events.reduce(apply, NO_FACTS));
  const followed: Event = { outcome: { attempt: 1, outcome: 'DELIVERED', toldByEdge: true, isFollowed: true } };

  test('one attempt with an outcome is all there is, and so is a fallback, which names those before it', () => {
    expect(wholeAfter(ended(1, 5n), told(1, 'DELIVERED'))).toBe(true);
    expect(wholeAfter(ended(1, 5n), ended(2, 7n, [1]), told(2, 'DELIVERED'))).toBe(true);
    expect(wholeAfter(ended(3, 7n, [1, 2]), told(3, 'DELIVERED'))).toBe(true);
  });

  test('an attempt without an outcome, an earlier round that is not known, and a later one that was announced are waited for', () => {
    expect(wholeAfter()).toBe(false);
    expect(wholeAfter(ended(1, 5n), ended(2, 7n), told(2, 'DELIVERED', false))).toBe(false);
    expect(wholeAfter(ended(1, 5n), ended(3, 7n), told(3, 'DELIVERED'))).toBe(false);
    expect(wholeAfter(ended(1, 5n), ended(2, 7n), told(2, 'DISCARDED'))).toBe(false);
    expect(wholeAfter(ended(2, 7n), told(2, 'DELIVERED'))).toBe(false);
    expect(wholeAfter(ended(3, 7n, [2]), told(3, 'DELIVERED'))).toBe(false);
    expect(wholeAfter(ended(1, 5n), followed)).toBe(false);
    expect(wholeAfter(ended(1, 5n), followed, ended(2, 7n))).toBe(false);
    expect(wholeAfter(ended(1, 5n), followed, ended(2, 7n), told(2, 'DELIVERED'))).toBe(true);
  });

  test('nothing is waited for of a round before one that edge gave: it was followed', () => {
    expect(wholeAfter(ended(1, 5n), ended(2, 7n), told(2, 'DELIVERED'))).toBe(true);
    expect(wholeAfter(ended(1, 5n), ended(2, 3n), ended(3, 7n, [2]), told(3, 'DELIVERED'))).toBe(true);
  });

  test('nothing is waited for where a log is lost', () => {
    expect(wholeAfter(ended(2, 7n), ended(STAND_IN_ATTEMPT, 1n), told(STAND_IN_ATTEMPT, 'DELIVERED', false))).toBe(true);
  });
});
