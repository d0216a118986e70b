/** Tiers of both contract variants: rates, allotments, overage. */

export type Variant = 'A' | 'B';
export type Tier = 'free' | 'team' | 'business' | 'enterprise' | 'pro';

export interface TierTerms {
  /** null = unlimited until set on the account. */
  readonly requestsPerMinute: number | null;
  readonly burstPerSecond: number | null;
  /** Fee per calendar month; null = agreed with the customer, not billed by the gateway. */
  readonly subscriptionNanoUsd: bigint | null;
  /** Tokens included per calendar month; null = no allotment. */
  readonly includedTokens: bigint | null;
  /** Price of tokens beyond the allotment, nano-USD per 1,000,000; null = not offered. */
  readonly overageNanoUsdPerMillion: bigint | null;
  /** One-time credit for managed keys; null = none. */
  readonly trialCreditNanoUsd: bigint | null;
  /** Tokens per month over the customer's own provider keys; null = unlimited. */
  readonly byokTokens: bigint | null;
  /** May use paid plugins. */
  readonly isPaid: boolean;
}

const NONE = { subscriptionNanoUsd: null, includedTokens: null, overageNanoUsdPerMillion: null, trialCreditNanoUsd: null, byokTokens: null } as const;

const TERMS: Record<Variant, Record<Tier, TierTerms>> = {
  A: {
    free: { ...NONE, subscriptionNanoUsd: 0n, requestsPerMinute: 60, burstPerSecond: 5, trialCreditNanoUsd: 5_000_000_000n, byokTokens: 100_000n, isPaid: false },
    team: { ...NONE, subscriptionNanoUsd: 99_000_000_000n, requestsPerMinute: 600, burstPerSecond: 30, includedTokens: 10_000_000n, overageNanoUsdPerMillion: 400_000_000n, isPaid: true },
    business: { ...NONE, subscriptionNanoUsd: 499_000_000_000n, requestsPerMinute: 3_000, burstPerSecond: 150, includedTokens: 50_000_000n, overageNanoUsdPerMillion: 300_000_000n, isPaid: true },
    enterprise: { ...NONE, requestsPerMinute: null, burstPerSecond: null, isPaid: true },
    // `pro` exists in variant B only; an account of that tier served under variant A keeps B's rates.
    pro: { ...NONE, requestsPerMinute: 1_000, burstPerSecond: 50, isPaid: true },
  },
  B: {
    free: { ...NONE, requestsPerMinute: 100, burstPerSecond: 5, isPaid: false },
    pro: { ...NONE, requestsPerMinute: 1_000, burstPerSecond: 50, isPaid: true },
    enterprise: { ...NONE, requestsPerMinute: null, burstPerSecond: null, isPaid: true },
    // `team` and `business` exist in variant A only; under variant B they keep A's rates, without an allotment.
    team: { ...NONE, requestsPerMinute: 600, burstPerSecond: 30, isPaid: true },
    business: { ...NONE, requestsPerMinute: 3_000, burstPerSecond: 150, isPaid: true },
  },
};

export function tierTerms(variant: Variant, tier: Tier): TierTerms {
  return TERMS[variant][tier];
}

export function isTier(text: string): text is Tier {
  return Object.hasOwn(TERMS.A, text);
}
