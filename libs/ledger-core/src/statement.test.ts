import { describe, expect, test } from '@jest/globals';
import { tierTerms, type Tier, type Variant } from '@signalbox/kernel/tiers';
import fc from 'fast-check';
import { OVERSHOOT_TOKENS, overageOf, overshootOf, statementOf, type BillingTerms, type ChargedPeriod, type SpendSum, type Statement } from './statement.js';

const termsOf = (variant: Variant, tier: Tier, over: Partial<BillingTerms> = {}): BillingTerms => ({ ...tierTerms(variant, tier), tier, variant, hardCap: false, ...over });
const sum = (over: Partial<SpendSum> = {}): SpendSum => ({ model: 'm', provider: 'p', requests: 1n, tokens: 0n, byokTokens: 0n, chargeNanoUsd: 0n, feesNanoUsd: 0n, ...over });
const of = (terms: BillingTerms, sums: readonly SpendSum[], more: { readonly earlier?: readonly ChargedPeriod[]; readonly adjusted?: bigint } = {}) =>
  statementOf({ terms, sums, adjustments: more.adjusted === undefined ? [] : [{ requestId: 'r', amountNanoUsd: more.adjusted, latePeriod: '' }], earlier: more.earlier ?? [] });

/** One period of an account under a credit: Σ charges (≥ 0) and Σ corrections. */
interface Month {
  readonly charged: bigint;
  readonly adjusted: bigint;
  readonly credit: bigint | null;
}
/** Bills of consecutive periods. */
function billsOf(months: readonly Month[]): readonly Statement[] {
  const earlier: ChargedPeriod[] = [];
  return months.map(({ charged, adjusted, credit }) => {
    const statement = of(termsOf('A', 'free', { trialCreditNanoUsd: credit }), [sum({ chargeNanoUsd: charged })], { earlier: [...earlier], adjusted });
    earlier.push({ chargeNanoUsd: charged + adjusted, trialCreditNanoUsd: credit });
    return statement;
  });
}
const sumOf = (amounts: readonly bigint[]): bigint => amounts.reduce((all, each) => all + each, 0n);
const owedOf = (months: readonly Month[]): bigint => sumOf(billsOf(months).map(({ totalNanoUsd }) => totalNanoUsd));

describe('overage', () => {
  test.each<readonly [Variant, Tier, bigint, bigint, bigint]>([
    ['A', 'team', 9_999_999n, 0n, 0n],
    ['A', 'team', 10_000_000n, 0n, 0n],
    ['A', 'team', 10_000_001n, 1n, 400n],
    ['A', 'team', 11_000_000n, 1_000_000n, 400_000_000n],
    ['A', 'business', 50_000_001n, 1n, 300n],
    ['A', 'business', 60_500_000n, 10_500_000n, 3_150_000_000n],
    ['A', 'free', 10n ** 12n, 0n, 0n],
    ['A', 'enterprise', 10n ** 12n, 0n, 0n],
    ['B', 'team', 10n ** 12n, 0n, 0n],
    ['B', 'pro', 10n ** 12n, 0n, 0n],
  ])('variant %s, %s, %s tokens: %s beyond, %s nano-dollars', (variant, tier, tokens, beyond, amount) => {
    expect(overageOf(tokens, termsOf(variant, tier))).toEqual({ tokens: beyond, amountNanoUsd: amount });
  });

  test('is rounded once, half up', () => {
    const terms = { includedTokens: 0n, hardCap: false };
    expect(overageOf(1n, { ...terms, overageNanoUsdPerMillion: 499_999n }).amountNanoUsd).toBe(0n);
    expect(overageOf(1n, { ...terms, overageNanoUsdPerMillion: 500_000n }).amountNanoUsd).toBe(1n);
    expect(overageOf(3n, { ...terms, overageNanoUsdPerMillion: 500_000n }).amountNanoUsd).toBe(2n);
  });

  test.each<readonly [string, Partial<BillingTerms>, bigint, bigint]>([
    ['no wall, a token beyond', {}, 1n, 400n],
    ['no wall, what walls are passed by', {}, OVERSHOOT_TOKENS, 26_214_400n],
    ['a wall, what running requests passed it by', { hardCap: true, overshootTokens: OVERSHOOT_TOKENS }, OVERSHOOT_TOKENS, 0n],
    ['a wall, a token more: it was used before the wall stood', { hardCap: true, overshootTokens: OVERSHOOT_TOKENS }, OVERSHOOT_TOKENS + 1n, 26_214_800n],
    ['a wall that was asked for on the last day', { hardCap: true, overshootTokens: OVERSHOOT_TOKENS }, 1_000_000_000n, 400_000_000_000n],
    ['a wall whose months begin on another day', { hardCap: true, overshootTokens: overshootOf(10_000_000n, 15) }, 10_000_000n + OVERSHOOT_TOKENS, 0n],
    ['and a token more', { hardCap: true, overshootTokens: overshootOf(10_000_000n, 15) }, 10_000_001n + OVERSHOOT_TOKENS, 4_026_214_800n],
    ['terms written before there was a bound', { hardCap: true }, 1_000_000_000n, 0n],
  ])('%s: %j, %s beyond', (_name, over, beyond, amount) => {
    expect(overageOf(10_000_000n + beyond, termsOf('A', 'team', over))).toEqual({ tokens: beyond, amountNanoUsd: amount });
  });

  test('a wall never makes a bill dearer, and takes nothing from one that is larger than it may be passed by', () => {
    fc.assert(
      fc.property(fc.bigInt(0n, 40_000_000n), fc.integer({ min: 0, max: 28 }), (tokens, anchorDay) => {
        const open = termsOf('A', 'team');
        const bound = overshootOf(10_000_000n, anchorDay);
        const walled = overageOf(tokens, { ...open, hardCap: true, overshootTokens: bound }).amountNanoUsd;
        expect(walled).toBe(tokens - 10_000_000n > bound ? overageOf(tokens, open).amountNanoUsd : 0n);
      }),
    );
  });

  test('counts both meters: tokens over own keys are routed too', () => {
    expect(of(termsOf('A', 'team'), [sum({ tokens: 9_000_000n }), sum({ provider: 'q', byokTokens: 2_000_000n })])).toMatchObject({ usedTokens: 11_000_000n, overageNanoUsd: 400_000_000n });
  });
});

describe('a statement', () => {
  test('has its lines in their order, and every total is the sum of its lines', () => {
    const statement = of(termsOf('A', 'team'), [sum({ model: 'z', chargeNanoUsd: 5n }), sum({ model: 'a', tokens: 10_000_005n, chargeNanoUsd: 10n, feesNanoUsd: 3n })], { adjusted: -2n });
    expect(statement.lines.map(({ kind, model, amountNanoUsd }) => [kind, model, amountNanoUsd])).toEqual([
      ['subscription', '', 99_000_000_000n], ['included', '', 0n], ['overage', '', 2_000n], ['model_spend', 'a', 7n], ['model_spend', 'z', 5n], ['plugin', 'a', 3n], ['adjustment', '', -2n],
    ]);
    expect(statement).toMatchObject({ modelSpendNanoUsd: 12n, pluginsNanoUsd: 3n, adjustmentsNanoUsd: -2n, totalNanoUsd: 99_000_002_013n });
  });

  test('trial credit pays what is left of it, and no more', () => {
    const free = termsOf('A', 'free');
    expect(of(free, [sum({ chargeNanoUsd: 1_000n })])).toMatchObject({ trialCreditNanoUsd: -1_000n, totalNanoUsd: 0n });
    const before = (chargeNanoUsd: bigint): { readonly earlier: readonly ChargedPeriod[] } => ({ earlier: [{ chargeNanoUsd, trialCreditNanoUsd: free.trialCreditNanoUsd }] });
    expect(of(free, [sum({ chargeNanoUsd: 1_000n })], before(4_999_999_400n))).toMatchObject({ trialCreditNanoUsd: -600n, totalNanoUsd: 400n });
    expect(of(free, [sum({ chargeNanoUsd: 1_000n })], before(6_000_000_000n))).toMatchObject({ trialCreditNanoUsd: 0n, totalNanoUsd: 1_000n });
  });

  describe('and trial credit that corrections take back', () => {
    const FIVE = 5_000_000_000n;
    const anyMonth = fc.record({ charged: fc.bigInt(0n, 4_000_000_000n), adjusted: fc.bigInt(-6_000_000_000n, 1_000_000_000n) });
    /** A correction never takes more than was charged until then. */
    const possible = (months: readonly Month[]): readonly Month[] => {
      let charged = 0n;
      return months.map((month) => {
        const adjusted = charged + month.charged + month.adjusted < 0n ? -charged - month.charged : month.adjusted;
        charged += month.charged + adjusted;
        return { ...month, adjusted };
      });
    };

    test('pay nothing out: what the credit had paid goes back to it', () => {
      const months = [{ charged: 4_000_000_000n, adjusted: 0n, credit: FIVE }, { charged: 0n, adjusted: -4_000_000_000n, credit: FIVE }, { charged: 6_000_000_000n, adjusted: 0n, credit: FIVE }];
      expect(billsOf(months).map(({ trialCreditNanoUsd, totalNanoUsd }) => [trialCreditNanoUsd, totalNanoUsd])).toEqual([[-4_000_000_000n, 0n], [4_000_000_000n, 0n], [-FIVE, 1_000_000_000n]]);
    });

    test('pay out first what was paid in money', () => {
      expect(billsOf([{ charged: 6_000_000_000n, adjusted: 0n, credit: FIVE }, { charged: 0n, adjusted: -2_000_000_000n, credit: FIVE }]).map(({ totalNanoUsd }) => totalNanoUsd)).toEqual([1_000_000_000n, -1_000_000_000n]);
      expect(owedOf([{ charged: 6_000_000_000n, adjusted: 0n, credit: FIVE }, { charged: 0n, adjusted: -2_000_000_000n, credit: FIVE }])).toBe(0n);
    });

    test('a credit kept under a dearer tier pays what is left of it, and the subscription stays', () => {
      const team = termsOf('A', 'team', { trialCreditNanoUsd: FIVE });
      expect(of(team, [sum({ chargeNanoUsd: 2_448_000_000n })])).toMatchObject({ trialCreditNanoUsd: -2_448_000_000n, totalNanoUsd: 99_000_000_000n });
      expect(of(team, [], { earlier: [{ chargeNanoUsd: 4_000_000_000n, trialCreditNanoUsd: FIVE }], adjusted: -4_000_000_000n }).totalNanoUsd).toBe(99_000_000_000n);
    });

    test.each([null, 9_000_000_000n])('pay nothing out where the credit is %s by then', (credit) => {
      expect(owedOf([{ charged: 4_000_000_000n, adjusted: 0n, credit: FIVE }, { charged: 0n, adjusted: -4_000_000_000n, credit }])).toBe(0n);
      expect(owedOf([{ charged: 7_000_000_000n, adjusted: 0n, credit: FIVE }, { charged: 0n, adjusted: -7_000_000_000n, credit }])).toBe(0n);
    });

    test('all bills together ask for what was charged in all, less the credit, whatever came in which order', () => {
      fc.assert(
        fc.property(fc.array(anyMonth, { maxLength: 8 }), fc.bigInt(0n, 6_000_000_000n), (drawn, credit) => {
          const months = drawn.map((month) => ({ ...month, credit }));
          const net = sumOf(months.map(({ charged, adjusted }) => charged + adjusted));
          const used = net <= 0n ? 0n : net < credit ? net : credit;
          expect([owedOf(months), owedOf([...months].reverse())]).toEqual([net - used, net - used]);
        }),
      );
    });

    test('under any credits, no bills ask for less than nothing, and the credit pays no more than the largest', () => {
      const anyCredit = fc.constantFrom<bigint | null>(null, 0n, 2_000_000_000n, FIVE);
      fc.assert(
        fc.property(fc.array(fc.tuple(anyMonth, anyCredit), { minLength: 1, maxLength: 8 }), (drawn) => {
          const months = possible(drawn.map(([month, credit]) => ({ ...month, credit })));
          const bills = billsOf(months);
          const largest = months.reduce((most, { credit }) => ((credit ?? 0n) > most ? (credit ?? 0n) : most), 0n);
          for (let count = 1; count <= bills.length; count += 1) {
            const past = bills.slice(0, count);
            expect(sumOf(past.map(({ totalNanoUsd }) => totalNanoUsd)) >= 0n).toBe(true);
            const used = -sumOf(past.map(({ trialCreditNanoUsd }) => trialCreditNanoUsd));
            expect(used >= 0n && used <= largest).toBe(true);
          }
        }),
      );
    });
  });

  test('is the same however the sums are cut and ordered, to the nano', () => {
    const anySum = fc.record({ model: fc.constantFrom('a', 'b'), provider: fc.constantFrom('p', 'q'), requests: fc.constant(1n), tokens: fc.bigInt(0n, 10_000_000n), byokTokens: fc.bigInt(0n, 1_000n), chargeNanoUsd: fc.bigInt(10n ** 6n, 10n ** 12n), feesNanoUsd: fc.bigInt(0n, 10n ** 6n) });
    fc.assert(
      fc.property(fc.array(anySum, { maxLength: 12 }), (sums) => {
        const forth = of(termsOf('A', 'team'), sums);
        const back = of(termsOf('A', 'team'), [...sums].reverse());
        expect([back.totalNanoUsd, back.overageNanoUsd, back.usedTokens]).toEqual([forth.totalNanoUsd, forth.overageNanoUsd, forth.usedTokens]);
        expect(forth.lines.reduce((all, line) => all + line.amountNanoUsd, 0n)).toBe(forth.totalNanoUsd);
      }),
    );
  });
});
