import { describe, expect, test } from '@jest/globals';
import { tierTerms, type Tier, type Variant } from '@signalbox/kernel/tiers';
import fc from 'fast-check';
import { overageOf, statementOf, type BillingTerms, type SpendSum } from './statement.js';

const termsOf = (variant: Variant, tier: Tier, over: Partial<BillingTerms> = {}): BillingTerms => ({ ...tierTerms(variant, tier), tier, variant, hardCap: false, ...over });
const sum = (over: Partial<SpendSum> = {}): SpendSum => ({ model: 'm', provider: 'p', requests: 1n, tokens: 0n, byokTokens: 0n, chargeNanoUsd: 0n, ...over });
const of = (terms: BillingTerms, sums: readonly SpendSum[], more: { readonly before?: bigint; readonly adjusted?: bigint } = {}) =>
  statementOf({ terms, sums, adjustments: more.adjusted === undefined ? [] : [{ requestId: 'r', amountNanoUsd: more.adjusted, latePeriod: '' }], chargedBeforeNanoUsd: more.before ?? 0n });

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

  test('nothing is sold beyond a wall', () => {
    expect(overageOf(11_000_000n, termsOf('A', 'team', { hardCap: true })).amountNanoUsd).toBe(0n);
  });

  test('counts both meters: tokens over own keys are routed too', () => {
    expect(of(termsOf('A', 'team'), [sum({ tokens: 9_000_000n }), sum({ provider: 'q', byokTokens: 2_000_000n })])).toMatchObject({ usedTokens: 11_000_000n, overageNanoUsd: 400_000_000n });
  });
});

describe('a statement', () => {
  test('has its lines in their order, and every total is the sum of its lines', () => {
    const statement = of(termsOf('A', 'team'), [sum({ model: 'z', chargeNanoUsd: 5n }), sum({ model: 'a', tokens: 10_000_005n, chargeNanoUsd: 7n }), sum({ model: 'plugin/x', chargeNanoUsd: 3n })], { adjusted: -2n });
    expect(statement.lines.map(({ kind, model, amountNanoUsd }) => [kind, model, amountNanoUsd])).toEqual([
      ['subscription', '', 99_000_000_000n], ['included', '', 0n], ['overage', '', 2_000n], ['model_spend', 'a', 7n], ['model_spend', 'z', 5n], ['plugin', 'plugin/x', 3n], ['adjustment', '', -2n],
    ]);
    expect(statement).toMatchObject({ modelSpendNanoUsd: 12n, pluginsNanoUsd: 3n, adjustmentsNanoUsd: -2n, totalNanoUsd: 99_000_002_013n });
  });

  test('trial credit pays what is left of it, and no more', () => {
    const free = termsOf('A', 'free');
    expect(of(free, [sum({ chargeNanoUsd: 1_000n })])).toMatchObject({ trialCreditNanoUsd: -1_000n, totalNanoUsd: 0n });
    expect(of(free, [sum({ chargeNanoUsd: 1_000n })], { before: 4_999_999_400n })).toMatchObject({ trialCreditNanoUsd: -600n, totalNanoUsd: 400n });
    expect(of(free, [sum({ chargeNanoUsd: 1_000n })], { before: 6_000_000_000n })).toMatchObject({ trialCreditNanoUsd: 0n, totalNanoUsd: 1_000n });
  });

  test('is the same however the sums are cut and ordered, to the nano', () => {
    const anySum = fc.record({ model: fc.constantFrom('a', 'b'), provider: fc.constantFrom('p', 'q'), requests: fc.constant(1n), tokens: fc.bigInt(0n, 10_000_000n), byokTokens: fc.bigInt(0n, 1_000n), chargeNanoUsd: fc.bigInt(0n, 10n ** 12n) });
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
