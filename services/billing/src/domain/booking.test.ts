import { expect, test } from '@jest/globals';
import { cardIdWith } from '@signalbox/kernel/card-fees';
import { asNanoUsd } from '@signalbox/kernel/money';
import { addAttempt, addOutcome, fold, NO_FACTS, type AttemptFact, type OutcomeFact } from '@signalbox/ledger-core/fold';
import { brokenLink, CHAIN_START } from '@signalbox/ledger-core/hash-chain';
import fc from 'fast-check';
import { keptRows } from '../testing/kept-rows.js';
import { book } from './booking.js';
import type { CheckedAttempt, CheckedOutcome } from './check.js';
import { NEW_HEAD, type AccountHead, type LedgerEntry } from './open-account.js';
import { Recount } from './recount.js';
import { ANNOUNCED_WAIT_MS, isSettled, requestsOf, RequestState, ROUND_WAIT_MS, type ChargeDetail } from './request.js';
import type { UsageDelta } from './usage.js';

const periods = { day: '2026-11-21', week: '2026-W47', month: '2026-11', plan: '2026-10' };
const attempt = (requestId: string, fact: AttemptFact): CheckedAttempt => ({
  requestId, accountId: 'acct_1', keyId: 'key_1', fact, source: 'provider', provider: 'sim', flags: [], cardId: 'card', periods, endedAtMs: 5n, usage: { model: 'm', promptTokens: 2, completionTokens: 1, savingsNanoUsd: 4n, totalMs: 9, ttftMs: 3 },
  detail: JSON.stringify({ byok: fact.byok, retry_of: fact.retryOf, rests_on_calls: fact.restsOnCalls, day: periods.day, week: periods.week, plan: periods.plan }),
});
const outcome = (requestId: string, fact: OutcomeFact): CheckedOutcome => ({ requestId, accountId: 'acct_1', fact });

interface Book {
  readonly rows: LedgerEntry[];
  readonly told: CheckedOutcome[];
  readonly totals: Map<string, bigint>;
  head: AccountHead | undefined;
}

const newBook = (): Book => ({ rows: [], told: [], totals: new Map(), head: undefined });

/** Acts as the store: keeps rows and outcomes, and reads states back from them. */
function commit(kept: Book, attempts: readonly CheckedAttempt[], outcomes: readonly CheckedOutcome[]): void {
  const booking = book({ attempts, outcomes, requests: requestsOf(keptRows(kept.rows, kept.told)), heads: new Map(kept.head === undefined ? [] : [['acct_1', kept.head]]), nowMs: 9 });
  expect(booking.refused).toEqual([]);
  kept.rows.push(...booking.rows);
  kept.told.push(...booking.outcomes);
  for (const { head, deltas } of booking.accounts) {
    kept.head = head;
    for (const delta of deltas) kept.totals.set(`${delta.scope}|${delta.periodId}`, (kept.totals.get(`${delta.scope}|${delta.periodId}`) ?? 0n) + delta.chargeNanoUsd);
  }
}

const number = fc.integer({ min: 1, max: 3 });
const anyAttempt = fc.record({ attempt: number, retryOf: fc.uniqueArray(number, { maxLength: 2 }), cost: fc.integer({ min: 0, max: 50 }), tokens: fc.integer({ min: 0, max: 9 }), byok: fc.boolean(), restsOnCalls: fc.boolean() });
const anyOutcome = fc.record({ attempt: number, outcome: fc.constantFrom('DELIVERED', 'SUPERSEDED', 'DISCARDED'), toldByEdge: fc.boolean() });
const anyFact = fc.record({ request: fc.constantFrom('r1', 'r2'), fact: fc.oneof(anyAttempt, anyOutcome) });

test('facts in any batches, with any repetition, give the same result as all at once', () => {
  fc.assert(
    fc.property(fc.array(anyFact, { maxLength: 14 }), fc.array(fc.integer({ min: 1, max: 4 })), fc.array(fc.nat()), (facts, sizes, repeats) => {
      const kept = newBook();
      const whole = new Map([['r1', NO_FACTS], ['r2', NO_FACTS]]);
      const queue = [...facts, ...(facts.length === 0 ? [] : repeats.slice(0, 6).map((index) => facts[index % facts.length] ?? facts[0]))];
      for (let at = 0, batch = 0; at < queue.length; batch += 1) {
        const size = sizes[batch % Math.max(1, sizes.length)] ?? 1;
        const attempts: CheckedAttempt[] = [];
        const outcomes: CheckedOutcome[] = [];
        for (const item of queue.slice(at, at + size)) {
          if (item === undefined) continue;
          const known = whole.get(item.request) ?? NO_FACTS;
          if ('cost' in item.fact) {
            const { cost, ...rest } = item.fact;
            const fact = { ...rest, retryOf: rest.retryOf.filter((other) => other !== rest.attempt), costNanoUsd: asNanoUsd(BigInt(cost)) };
            attempts.push(attempt(item.request, fact));
            whole.set(item.request, addAttempt(known, fact));
          } else {
            const fact = item.fact as OutcomeFact;
            outcomes.push(outcome(item.request, fact));
            whole.set(item.request, addOutcome(known, fact));
          }
        }
        commit(kept, attempts, outcomes);
        at += size;
      }
      let total = 0n;
      for (const [requestId, known] of whole) {
        const right = fold(known);
        const mine = kept.rows.filter((row) => row.requestId === requestId && row.kind !== 'attempt');
        expect(mine.reduce((sum, row) => sum + row.amountNanoUsd, 0n)).toBe(right?.chargeNanoUsd ?? 0n);
        expect(mine.filter(({ kind }) => kind === 'charge').length).toBeLessThanOrEqual(1);
        expect(kept.rows.filter((row) => row.requestId === requestId && row.kind === 'attempt').map((row) => row.attempt).sort()).toEqual(known.attempts.map((fact) => fact.attempt).sort());
        total += right?.chargeNanoUsd ?? 0n;
      }
      expect(kept.totals.get('account|total') ?? 0n).toBe(total);
      let prevHash = CHAIN_START;
      expect(brokenLink(kept.rows.map((row) => {
        const linked = { ...row, prevHash };
        prevHash = row.hash;
        return linked;
      }))).toBeUndefined();
    }),
    { numRuns: 500 },
  );
});

test('a new request gets the same rows and sums whether it is booked without a state, as one delivered attempt is, or from its state', () => {
  const anyRequest = fc.record({
    number: fc.constantFrom(1, 1, 1, 2), retryOf: fc.constantFrom([], [], [3]), name: fc.constantFrom('DELIVERED' as const, 'DELIVERED' as const, 'DISCARDED' as const, 'SUPERSEDED' as const), toldOf: fc.constantFrom(0, 0, 1, -1), toldByEdge: fc.constantFrom(true, true, false), isFollowed: fc.constantFrom(false, false, true),
    cost: fc.bigInt({ min: 0n, max: 10n ** 15n }), tokens: fc.nat(), byok: fc.boolean(), flags: fc.constantFrom([], ['suspect']), fees: fc.constantFrom(0n, 30n), told: fc.constantFrom(undefined, 0n, 40n), restsOnCalls: fc.boolean(),
    month: fc.constantFrom('2026-10', '2026-11'), source: fc.constantFrom('provider', 'estimated'), totalMs: fc.nat(), savings: fc.bigInt({ min: -9n, max: 9n }),
  });
  fc.assert(
    fc.property(fc.array(anyRequest, { minLength: 1, maxLength: 4 }), (each) => {
      const attempts = each.map(({ number, retryOf, cost, tokens, byok, flags, fees, told, restsOnCalls, month, source, totalMs, savings }, index): CheckedAttempt => {
        const plain = attempt(`r${index}`, { attempt: number, retryOf, costNanoUsd: asNanoUsd(cost), tokens, byok, ...(restsOnCalls ? { restsOnCalls } : {}) });
        return { ...plain, flags, source, periods: { ...periods, month }, cardId: fees === 0n ? 'card' : cardIdWith('card', { feeNanoUsd: fees, bought: [] }), usage: { ...plain.usage, totalMs, savingsNanoUsd: savings }, ...(told === undefined ? {} : { toldNanoUsd: told }) };
      });
      const outcomes = each.map(({ number, name, toldOf, toldByEdge, isFollowed }, index) => outcome(`r${index}`, { attempt: Math.max(1, number + toldOf), outcome: name, toldByEdge, ...(isFollowed ? { isFollowed } : {}) }));
      const input = { attempts, outcomes, heads: new Map(), nowMs: 9, books: { closed: new Set(['2026-10']), open: '2026-12' } };
      // A state, even an empty one, is booked as any other.
      expect(book({ ...input, requests: new Map() })).toEqual(book({ ...input, requests: new Map(attempts.map(({ requestId, accountId }) => [requestId, new RequestState(accountId)])) }));
    }),
    { numRuns: 500 },
  );
});

test('a charge row contains what it was computed from', () => {
  const kept = newBook();
  const fact = { costNanoUsd: asNanoUsd(20n), tokens: 3, byok: false };
  const told = (number: number, name: OutcomeFact['outcome']) => outcome('r1', { attempt: number, outcome: name, toldByEdge: true });
  commit(kept, [attempt('r1', { ...fact, attempt: 1, retryOf: [] }), attempt('r1', { ...fact, attempt: 2, retryOf: [1] })], [told(2, 'DELIVERED'), told(1, 'SUPERSEDED')]);
  expect(JSON.parse(String(kept.rows.at(-1)?.detail)) as ChargeDetail).toEqual({ charged: [2], outcomes: [[1, 'SUPERSEDED', true], [2, 'DELIVERED', true]] });
});

test('a correction has the time of its booking, and moves each figure from what was booked to what is right', () => {
  const kept = newBook();
  const tried = (number: number, retryOf: readonly number[], cost: bigint): CheckedAttempt => attempt('r1', { attempt: number, retryOf, costNanoUsd: asNanoUsd(cost), tokens: 3, byok: false });
  commit(kept, [tried(1, [], 20n)], [outcome('r1', { attempt: 1, outcome: 'DELIVERED', toldByEdge: false })]);
  const late = book({
    attempts: [tried(2, [1], 50n)], outcomes: [outcome('r1', { attempt: 2, outcome: 'DELIVERED', toldByEdge: true })], requests: requestsOf(keptRows(kept.rows, kept.told)), heads: new Map(kept.head === undefined ? [] : [['acct_1', kept.head]]), nowMs: 9,
  });
  expect(late.rows.map(({ kind, amountNanoUsd, atMs }) => [kind, amountNanoUsd, atMs])).toEqual([['attempt', 50n, 5n], ['adjustment', 30n, 9n]]);
  expect(late.accounts[0]?.usage).toMatchObject([{ requests: 0, tokens: 0, chargeNanoUsd: 0n, adjustedNanoUsd: 30n, costNanoUsd: 30n }]);
});

test('rounds whose logs come later are further spend; what takes back from a charge, or comes after its period was closed, is a correction', () => {
  const round = (number: number, cost: bigint, retryOf: readonly number[] = [], cardId = 'card'): CheckedAttempt => ({ ...attempt('r1', { attempt: number, retryOf, costNanoUsd: asNanoUsd(cost), tokens: 3, byok: false }), cardId });
  const told = (number: number, toldByEdge = true): CheckedOutcome => outcome('r1', { attempt: number, outcome: 'DELIVERED', toldByEdge });
  const withFee = round(2, 50n, [], cardIdWith('card', { feeNanoUsd: 30n, bought: [] }));
  const cases = [
    ['the last round later', [round(1, 20n)], [withFee], undefined, ['further'], 5n, { chargeNanoUsd: 50n, feesNanoUsd: 30n, adjustedNanoUsd: 0n }],
    ['the last round first', [withFee], [round(1, 20n)], undefined, ['further'], 5n, { chargeNanoUsd: 20n, feesNanoUsd: 0n, adjustedNanoUsd: 0n }],
    ['another answer instead', [round(1, 20n)], [round(2, 50n, [1])], undefined, [], 9n, { chargeNanoUsd: 0n, feesNanoUsd: 0n, adjustedNanoUsd: 30n }],
    ['after the close', [round(1, 20n)], [withFee], { closed: new Set(['2026-11']), open: '2026-12' }, ['late'], 9n, { chargeNanoUsd: 0n, feesNanoUsd: 0n, adjustedNanoUsd: 50n }],
  ] as const;
  for (const [name, early, late, books, flags, atMs, usage] of cases) {
    const kept = newBook();
    commit(kept, early, early.map(({ fact }) => told(fact.attempt, false)));
    const booking = book({ attempts: late, outcomes: late.map(({ fact }) => told(fact.attempt)), requests: requestsOf(keptRows(kept.rows, kept.told)), heads: new Map(kept.head === undefined ? [] : [['acct_1', kept.head]]), nowMs: 9, books });
    expect([name, booking.rows.filter(({ kind }) => kind === 'adjustment').map((row) => [row.flags, row.atMs])]).toEqual([name, [[flags, atMs]]]);
    expect([name, booking.accounts[0]?.usage]).toMatchObject([name, [{ requests: 0, ...usage }]]);
  }
});

test('a request counts once and whole: rounds at another provider, of another model or after midnight are added where its charge counts', () => {
  const midnight = BigInt(Date.UTC(2026, 10, 22));
  const round = (number: number, more: Partial<CheckedAttempt> & { readonly model: string }, retryOf: readonly number[] = []): CheckedAttempt => {
    const plain = attempt('r1', { attempt: number, retryOf, costNanoUsd: asNanoUsd(20n), tokens: 3, byok: false });
    return { ...plain, ...more, usage: { ...plain.usage, model: more.model }, detail: JSON.stringify({ model: more.model, retry_of: retryOf, tokens: { inputUncached: 2, outputText: 1 }, savings: '4' }) };
  };
  const first = round(1, { provider: 'p1', model: 'm1', cardId: 'card_1', endedAtMs: midnight - 9n });
  const last = round(2, { provider: 'p2', model: 'm2', cardId: 'card_2', endedAtMs: midnight + 9n });
  const instead = round(2, { provider: 'p2', model: 'm2', endedAtMs: midnight + 9n }, [1]);
  const likewise = round(2, { provider: 'p1', model: 'm1', endedAtMs: midnight + 9n }, [1]);
  const told = (number: number, name: OutcomeFact['outcome'] = 'DELIVERED'): CheckedOutcome => outcome('r1', { attempt: number, outcome: name, toldByEdge: false });
  const [before, after] = [['2026-11-21', 'm1', 'p1'], ['2026-11-22', 'm2', 'p2']];
  const cases = [
    ['the first round first', [first], told(1), last, ['further'], { requests: 1, charge: 40n, places: [before] }],
    ['the last round first', [last], told(2), first, ['further'], { requests: 1, charge: 40n, places: [after] }],
    ['a failed attempt first, then an answer from the same place', [first], told(1, 'DISCARDED'), likewise, ['further'], { requests: 1, charge: 20n, places: [before] }],
    // What another provider answered is no spend at the one that failed.
    ['a failed attempt first, then an answer from elsewhere', [first], told(1, 'DISCARDED'), instead, [], { requests: 1, charge: 0n, places: [before, after] }],
  ] as const;
  for (const [name, early, outcomeOfEarly, late, flags, counted] of cases) {
    const kept = newBook();
    const recount = new Recount();
    const usage: UsageDelta[] = [];
    const bookAll = (attempts: readonly CheckedAttempt[], outcomes: readonly CheckedOutcome[]): void => {
      const { rows, outcomes: unrecorded, accounts } = book({ attempts, outcomes, requests: requestsOf(keptRows(kept.rows, kept.told)), heads: new Map(kept.head === undefined ? [] : [['acct_1', kept.head]]), nowMs: Number(midnight) + 20 });
      kept.rows.push(...rows);
      kept.told.push(...unrecorded);
      for (const account of accounts) {
        kept.head = account.head;
        usage.push(...account.usage);
      }
    };
    bookAll(early, [outcomeOfEarly]);
    bookAll([late], [told(late.fact.attempt)]);
    const placeOf = ({ day, model, provider }: UsageDelta): string => `${day} ${model} ${provider}`;
    expect([name, kept.rows.filter(({ kind }) => kind === 'adjustment').map((row) => row.flags)]).toEqual([name, [flags]]);
    expect([name, [...new Set(usage.map(placeOf))]]).toEqual([name, counted.places.map((place) => place.join(' '))]);
    expect([name, usage.reduce((sum, { requests }) => sum + requests, 0), usage.reduce((sum, { chargeNanoUsd }) => sum + chargeNanoUsd, 0n)]).toEqual([name, counted.requests, counted.charge]);
    // Where it counts can be read from the rows: verification finds nothing to mend.
    const stored = keptRows(kept.rows, kept.told);
    const state = requestsOf(stored).get('r1');
    if (state !== undefined) recount.add(stored, state);
    expect([name, recount.usageDeltas().map(({ requests, chargeNanoUsd, adjustedNanoUsd, ...place }) => [placeOf(place as UsageDelta), requests, chargeNanoUsd, adjustedNanoUsd])]).toEqual([name, [...new Set(usage.map(placeOf))].map((place) => {
      const own = usage.filter((delta) => placeOf(delta) === place);
      return [place, own.reduce((sum, { requests }) => sum + requests, 0), own.reduce((sum, { chargeNanoUsd }) => sum + chargeNanoUsd, 0n), own.reduce((sum, { adjustedNanoUsd }) => sum + adjustedNanoUsd, 0n)];
    })]);
  }
});

test('a fact that names a different account than its request has is refused, and books nothing to either account', () => {
  const kept = newBook();
  const one = attempt('r1', { attempt: 1, retryOf: [], costNanoUsd: asNanoUsd(20n), tokens: 3, byok: false });
  commit(kept, [one], []);
  const [other, told] = [{ ...one, accountId: 'acct_2', fact: { ...one.fact, attempt: 2 } }, { ...outcome('r1', { attempt: 1, outcome: 'DELIVERED', toldByEdge: true }), accountId: 'acct_2' }];
  const booking = book({ attempts: [other], outcomes: [told], requests: requestsOf(keptRows(kept.rows, kept.told)), heads: new Map(), nowMs: 9 });
  expect([booking.refused, booking.rows, booking.outcomes]).toEqual([[other, told], [], []]);
});

test('a request is reported as settled when all its rounds are in the sums, whichever of two logs is first', () => {
  const round = (number: number): CheckedAttempt => attempt('r1', { attempt: number, retryOf: [], costNanoUsd: asNanoUsd(20n), tokens: 3, byok: false });
  const first = { attempts: [round(1)], outcomes: [outcome('r1', { attempt: 1, outcome: 'DELIVERED', toldByEdge: true, isFollowed: true })] };
  const last = { attempts: [round(2)], outcomes: [outcome('r1', { attempt: 2, outcome: 'DELIVERED', toldByEdge: true })] };
  for (const [early, late, waitMs] of [[first, last, ANNOUNCED_WAIT_MS], [last, first, ROUND_WAIT_MS]] as const) {
    const { rows, outcomes, accounts } = book({ ...early, requests: new Map(), heads: new Map(), nowMs: 9 });
    expect(accounts).toMatchObject([{ chargedRequestIds: ['r1'], settledRequestIds: [] }]);
    const kept = requestsOf(keptRows(rows, outcomes));
    expect([...kept.values()].map((state) => [isSettled(state, 5 + waitMs - 1), isSettled(state, 5 + waitMs)])).toEqual([[false, true]]);
    expect(book({ ...late, requests: kept, heads: new Map(), nowMs: 9 }).accounts).toMatchObject([{ chargedRequestIds: ['r1'], settledRequestIds: ['r1'] }]);
  }
});

test('a request whose last facts change no charge is reported as settled with the totals that contain it, and counts in none of them twice', () => {
  const free: AttemptFact = { attempt: 2, retryOf: [], costNanoUsd: asNanoUsd(0n), tokens: 0, byok: false };
  const first: AttemptFact = { attempt: 1, retryOf: [], costNanoUsd: asNanoUsd(20n), tokens: 9, byok: false };
  const kept = newBook();
  commit(kept, [attempt('r1', first)], [outcome('r1', { attempt: 1, outcome: 'DELIVERED', toldByEdge: true, isFollowed: true })]);
  const last = { attempts: [attempt('r1', free)], outcomes: [outcome('r1', { attempt: 2, outcome: 'DELIVERED', toldByEdge: true })] };
  const { rows, accounts, outcomes } = book({ ...last, requests: requestsOf(keptRows(kept.rows, kept.told)), heads: new Map([['acct_1', kept.head ?? NEW_HEAD]]), nowMs: 9 });
  expect(rows.map(({ kind, attempt: number }) => `${kind} ${number}`)).toEqual(['attempt 2']);
  expect(outcomes).toHaveLength(1);
  expect(accounts).toMatchObject([{ settledRequestIds: ['r1'], chargedRequestIds: [], usage: [], previousTotalsSeq: 2n, head: { seq: 3n, totalsSeq: 3n } }]);
  const [account] = accounts;
  expect(new Set(account?.deltas.map(({ chargeNanoUsd, tokens, byokTokens }) => chargeNanoUsd + tokens + byokTokens))).toEqual(new Set([0n]));
  expect(account?.deltas.map(({ scope, periodId }) => `${scope} ${periodId}`)).toContain('account total');
});
