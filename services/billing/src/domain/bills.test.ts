import { expect, test } from '@jest/globals';
import { cardIdWith } from '@signalbox/kernel/card-fees';
import { asNanoUsd } from '@signalbox/kernel/money';
import type { AttemptFact, OutcomeFact } from '@signalbox/ledger-core/fold';
import { statementOf, type SpendSum, type Statement } from '@signalbox/ledger-core/statement';
import fc from 'fast-check';
import { keptRows } from '../testing/kept-rows.js';
import { book } from './booking.js';
import type { CheckedAttempt, CheckedOutcome } from './check.js';
import type { AccountHead, LedgerEntry } from './open-account.js';
import { requestsOf } from './request.js';
import { FURTHER_FLAG, type UsageDelta } from './usage.js';

const MONTHS = ['2026-10', '2026-11', '2026-12'];
/** Requests by the month of their admission. */
const ADMITTED = { r1: '2026-10', r2: '2026-11' } as const;
/** More than a double holds, as a sum of some. */
const MUCH = 2_000_000_000_000_001n;

function attemptOf(requestId: keyof typeof ADMITTED, { fee, model, cost, ...fact }: Omit<AttemptFact, 'costNanoUsd'> & { readonly fee: bigint; readonly model: string; readonly cost: bigint }): CheckedAttempt {
  const periods = { day: '', week: '', month: ADMITTED[requestId], plan: '' };
  return {
    requestId, accountId: 'a', keyId: 'k', fact: { ...fact, costNanoUsd: asNanoUsd(cost + fee) }, source: 'provider', provider: 'p', flags: [], cardId: fee === 0n ? 'c' : cardIdWith('c', { feeNanoUsd: fee, bought: [] }), periods, endedAtMs: 5n,
    usage: { model, promptTokens: 1, completionTokens: 1, savingsNanoUsd: 0n, totalMs: 0, ttftMs: 0 }, detail: JSON.stringify({ model, byok: fact.byok, retry_of: fact.retryOf, rests_on_calls: fact.restsOnCalls }),
  };
}

/** The books of one account without a store: what is booked, and bills made of it as the bookkeeper makes them. */
class Books {
  readonly rows: LedgerEntry[] = [];
  readonly #told: CheckedOutcome[] = [];
  readonly #usage: UsageDelta[] = [];
  readonly monthTotals = new Map<string, bigint>();
  /** Bills of closed months, as sent. */
  readonly sent: Statement[] = [];
  #heads = new Map<string, AccountHead>();

  constructor(private readonly creditNanoUsd: bigint | null) {}

  commit(attempts: readonly CheckedAttempt[], outcomes: readonly CheckedOutcome[]): void {
    const closed = new Set(MONTHS.slice(0, this.sent.length));
    const booking = book({ attempts, outcomes, requests: requestsOf(keptRows(this.rows, this.#told)), heads: this.#heads, nowMs: 9, books: { closed, open: MONTHS[this.sent.length] ?? '' } });
    expect(booking.rows.filter(({ period }) => closed.has(period))).toEqual([]);
    this.rows.push(...booking.rows);
    this.#told.push(...booking.outcomes);
    for (const { accountId, head, usage, deltas } of booking.accounts) {
      this.#heads.set(accountId, head);
      this.#usage.push(...usage);
      for (const { scope, periodId, chargeNanoUsd } of deltas) if (scope === 'account') this.monthTotals.set(periodId, (this.monthTotals.get(periodId) ?? 0n) + chargeNanoUsd);
    }
  }

  close(): void {
    if (this.sent.length < MONTHS.length - 1) this.sent.push(this.bill(this.sent.length));
  }

  bill(month: number): Statement {
    const usageOf = (of: string | undefined): readonly UsageDelta[] => this.#usage.filter(({ period }) => period === of);
    const sums = new Map<string, SpendSum>();
    for (const { model, provider, requests, tokens, byokTokens, chargeNanoUsd, feesNanoUsd } of usageOf(MONTHS[month])) {
      const known = sums.get(model) ?? { model, provider, requests: 0n, tokens: 0n, byokTokens: 0n, chargeNanoUsd: 0n, feesNanoUsd: 0n };
      sums.set(model, { ...known, requests: known.requests + BigInt(requests), tokens: known.tokens + BigInt(tokens), byokTokens: known.byokTokens + BigInt(byokTokens), chargeNanoUsd: known.chargeNanoUsd + chargeNanoUsd, feesNanoUsd: known.feesNanoUsd + feesNanoUsd });
    }
    const corrections = this.rows.filter(({ appliesTo, period, flags }) => appliesTo === 'charge' && period === MONTHS[month] && !flags.includes(FURTHER_FLAG));
    return statementOf({
      terms: { tier: 't', variant: 'A', subscriptionNanoUsd: null, includedTokens: null, overageNanoUsdPerMillion: null, hardCap: false, trialCreditNanoUsd: this.creditNanoUsd },
      sums: [...sums.values()], adjustments: corrections.map(({ requestId, amountNanoUsd }) => ({ requestId, amountNanoUsd, latePeriod: '' })),
      earlier: MONTHS.slice(0, month).map((each) => ({ chargeNanoUsd: usageOf(each).reduce((sum, { chargeNanoUsd, adjustedNanoUsd }) => sum + chargeNanoUsd + adjustedNanoUsd, 0n), trialCreditNanoUsd: this.creditNanoUsd })),
    });
  }

  /** What all requests are charged. */
  charged(): bigint {
    let sum = 0n;
    for (const { booked } of requestsOf(keptRows(this.rows, this.#told)).values()) sum += booked?.chargeNanoUsd ?? 0n;
    return sum;
  }
}

const request = fc.constantFrom('r1' as const, 'r2' as const);
const attempt = fc.integer({ min: 1, max: 3 });
const anyAttempt = fc.record({
  attempt, cost: fc.constantFrom(0n, 7n, 100n, MUCH), fee: fc.constantFrom(0n, 0n, 5n, 1_500n), model: fc.constantFrom('m', 'n'), tokens: fc.integer({ min: 0, max: 9 }), byok: fc.constantFrom(false, false, true), restsOnCalls: fc.boolean(),
  retryOf: fc.constantFrom<readonly number[]>([], [], [1], [2]),
});
const anyOutcome: fc.Arbitrary<OutcomeFact> = fc.record({ attempt, outcome: fc.constantFrom('DELIVERED' as const, 'DELIVERED' as const, 'SUPERSEDED' as const, 'DISCARDED' as const), toldByEdge: fc.boolean() });
const anyStep = fc.oneof({ weight: 6, arbitrary: fc.record({ request, ended: anyAttempt }) }, { weight: 8, arbitrary: fc.record({ request, outcome: anyOutcome }) }, { weight: 1, arbitrary: fc.constant('close' as const) });

test('in whatever order facts come and months close, bills have what is charged, each once and for ever, and the credit pays no more than it has', () => {
  const seen = { further: 0, late: 0, credited: 0 };
  fc.assert(
    fc.property(fc.array(anyStep, { minLength: 8, maxLength: 30 }), fc.constantFrom(null, 0n, 90n, MUCH), (steps, credit) => {
      const books = new Books(credit);
      // An attempt is told the same each time.
      const ended = new Map<string, CheckedAttempt>();
      for (const step of steps) {
        if (step === 'close') books.close();
        else if ('outcome' in step) books.commit([], [{ requestId: step.request, accountId: 'a', fact: step.outcome }]);
        else {
          const name = `${step.request}/${step.ended.attempt}`;
          const told = ended.get(name) ?? attemptOf(step.request, step.ended);
          ended.set(name, told);
          books.commit([told], []);
        }
      }
      const bills = MONTHS.map((_, month) => books.bill(month));
      expect(bills.slice(0, books.sent.length)).toEqual(books.sent);
      let [charged, credited] = [0n, 0n];
      for (const [month, { lines, totalNanoUsd, modelSpendNanoUsd, pluginsNanoUsd, adjustmentsNanoUsd, trialCreditNanoUsd }] of bills.entries()) {
        const spend = modelSpendNanoUsd + pluginsNanoUsd + adjustmentsNanoUsd;
        expect(books.monthTotals.get(`month:${MONTHS[month]}`) ?? 0n).toBe(spend);
        expect(lines.reduce((sum, { amountNanoUsd }) => sum + amountNanoUsd, 0n)).toBe(totalNanoUsd);
        expect(lines.filter(({ kind, amountNanoUsd }) => kind !== 'adjustment' && kind !== 'trial_credit' && amountNanoUsd < 0n)).toEqual([]);
        expect(lines.filter(({ kind, requests, amountNanoUsd }) => kind === 'model_spend' && requests === 0n && amountNanoUsd !== 0n)).toEqual([]);
        charged += spend;
        credited -= trialCreditNanoUsd;
        expect(credited >= 0n && credited <= (credit ?? 0n) && credited <= charged).toBe(true);
      }
      expect(charged).toBe(books.charged());
      for (const { flags } of books.rows) {
        if (flags.includes(FURTHER_FLAG)) seen.further += 1;
        if (flags.includes('late')) seen.late += 1;
      }
      if (credited > 0n) seen.credited += 1;
    }),
    { numRuns: 600 },
  );
  expect(Math.min(seen.further, seen.late, seen.credited)).toBeGreaterThan(20);
});
