/** What an account owes for a period: a pure function of the ledger's sums and the terms that held at its end. */
import { asNanoUsd, attemptCost, ZERO_NANO_USD, type NanoUsd } from '@signalbox/kernel/money';

/** Terms of one account, written when a period ends. */
export interface BillingTerms {
  readonly tier: string;
  readonly variant: string;
  /** null = agreed with the customer, not billed from here. */
  readonly subscriptionNanoUsd: bigint | null;
  /** Tokens included in a period; null = no allotment, so no overage. */
  readonly includedTokens: bigint | null;
  /** Price of 1,000,000 tokens beyond the allotment; null = none is sold. */
  readonly overageNanoUsdPerMillion: bigint | null;
  /** The allotment is a wall. */
  readonly hardCap: boolean;
  /** Under a wall: no more than these beyond it are not billed. Absent in terms written before 2026-11-28, whose bills stay: none beyond it are. */
  readonly overshootTokens?: bigint;
  /** One-time credit against model spend; null = none. */
  readonly trialCreditNanoUsd: bigint | null;
}

/** One account's sums of one period for one model at one provider; all but the adjustments ≥ 0. */
export interface SpendSum {
  readonly model: string;
  readonly provider: string;
  readonly requests: bigint;
  /** Tokens over the gateway's credentials and over the account's own keys; adjustments included, so they may be negative for one model. */
  readonly tokens: bigint;
  readonly byokTokens: bigint;
  /** Σ charge rows. */
  readonly chargeNanoUsd: bigint;
  /** The part of it that are fees of plugins. */
  readonly feesNanoUsd: bigint;
}

/** An adjustment row that changes what the account is charged; its amount may be negative. */
export interface AdjustmentRow {
  /** Empty: the sum of all that are not told one by one. */
  readonly requestId: string;
  readonly amountNanoUsd: bigint;
  /** Period of the reservation when that was closed already, else empty. */
  readonly latePeriod: string;
}

/** What an account was charged in one period, adjustments included (so it may be negative), and the credit among its terms; null = none. */
export interface ChargedPeriod {
  readonly chargeNanoUsd: bigint;
  readonly trialCreditNanoUsd: bigint | null;
}

export interface StatementInput {
  readonly terms: BillingTerms;
  readonly sums: readonly SpendSum[];
  readonly adjustments: readonly AdjustmentRow[];
  /** Oldest first: what the trial credit has paid already. */
  readonly earlier: readonly ChargedPeriod[];
}

const LINE_KINDS = ['subscription', 'included', 'overage', 'model_spend', 'plugin', 'adjustment', 'trial_credit'] as const;
export type LineKind = (typeof LINE_KINDS)[number];

export interface StatementLine {
  readonly kind: LineKind;
  readonly description: string;
  readonly model: string;
  readonly provider: string;
  readonly requestId: string;
  /** Tokens, where the line counts any. */
  readonly tokens: bigint;
  readonly requests: bigint;
  readonly amountNanoUsd: NanoUsd;
}

export interface Statement {
  readonly subscriptionNanoUsd: NanoUsd;
  readonly includedTokens: bigint | null;
  readonly usedTokens: bigint;
  readonly overageTokens: bigint;
  readonly overageNanoUsd: NanoUsd;
  readonly modelSpendNanoUsd: NanoUsd;
  readonly pluginsNanoUsd: NanoUsd;
  readonly adjustmentsNanoUsd: NanoUsd;
  /** Above 0 where corrections took back spend that the credit had paid. */
  readonly trialCreditNanoUsd: NanoUsd;
  /** Σ lines. */
  readonly totalNanoUsd: NanoUsd;
  readonly lines: readonly StatementLine[];
}

/** What running requests may pass a wall by (docs/caps.md): 64 tokens each, for 1,024 streams of one account at once. */
export const OVERSHOOT_TOKENS = 65_536n;

/** Where months of the allotment begin on another day than bills, two of them may be used up within one bill. */
export function overshootOf(includedTokens: bigint | null, billingAnchorDay: number): bigint {
  return billingAnchorDay > 1 ? OVERSHOOT_TOKENS + (includedTokens ?? 0n) : OVERSHOOT_TOKENS;
}

/**
 * Tokens beyond the allotment and their price, rounded once, half up. Never incremental: the same sums give the same bill.
 * A wall that stands at the end of a period may have been asked for on its last day: where more is beyond it than it may
 * be passed by, that was sold before.
 */
export function overageOf(tokens: bigint, { includedTokens, overageNanoUsdPerMillion, hardCap, overshootTokens }: Pick<BillingTerms, 'includedTokens' | 'overageNanoUsdPerMillion' | 'hardCap' | 'overshootTokens'>): { readonly tokens: bigint; readonly amountNanoUsd: NanoUsd } {
  if (includedTokens === null || tokens <= includedTokens) return { tokens: 0n, amountNanoUsd: ZERO_NANO_USD };
  const beyond = tokens - includedTokens;
  const isUnsold = hardCap && (overshootTokens === undefined || beyond <= overshootTokens);
  return { tokens: beyond, amountNanoUsd: isUnsold || overageNanoUsdPerMillion === null ? ZERO_NANO_USD : attemptCost(beyond * overageNanoUsdPerMillion) };
}

const atLeastZero = (amount: bigint): bigint => (amount > 0n ? amount : 0n);
const lesser = (a: bigint, b: bigint): bigint => (a < b ? a : b);

/**
 * What the trial credit has paid by the end of the last of these periods, oldest first. It pays the first dollars that an
 * account is ever charged; a period whose terms have none adds nothing. Corrections take from what was paid in money first:
 * what the credit has paid is never more than what the account was charged in all.
 */
function creditUsed(periods: readonly ChargedPeriod[]): bigint {
  let charged = 0n;
  let used = 0n;
  for (const { chargeNanoUsd, trialCreditNanoUsd } of periods) {
    const credit = trialCreditNanoUsd ?? 0n;
    const before = lesser(credit, atLeastZero(charged));
    charged += chargeNanoUsd;
    used += atLeastZero(lesser(credit, atLeastZero(charged)) - before);
    used = lesser(used, atLeastZero(charged));
  }
  return used;
}

const NO_LINE = { model: '', provider: '', requestId: '', tokens: 0n, requests: 0n };

const total = (lines: readonly StatementLine[], ...kinds: readonly LineKind[]): NanoUsd =>
  asNanoUsd(lines.reduce((sum, line) => (kinds.length === 0 || kinds.includes(line.kind) ? sum + line.amountNanoUsd : sum), 0n));

/** Lines in the order of LINE_KINDS, spend by model and provider. Every total is the sum of its lines. */
export function statementOf({ terms, sums, adjustments, earlier }: StatementInput): Statement {
  const lines: StatementLine[] = [];
  const add = (kind: LineKind, description: string, amountNanoUsd: bigint, more: Partial<StatementLine> = {}): void => {
    lines.push({ ...NO_LINE, ...more, kind, description, amountNanoUsd: asNanoUsd(amountNanoUsd) });
  };
  const usedTokens = sums.reduce((sum, { tokens, byokTokens }) => sum + tokens + byokTokens, 0n);
  const overage = overageOf(usedTokens, terms);
  if (terms.subscriptionNanoUsd !== null) add('subscription', `Subscription ${terms.tier}`, terms.subscriptionNanoUsd);
  if (terms.includedTokens !== null) {
    add('included', 'Tokens included', 0n, { tokens: usedTokens < terms.includedTokens ? usedTokens : terms.includedTokens });
    add('overage', 'Tokens beyond those included', overage.amountNanoUsd, { tokens: overage.tokens });
  }
  const sorted = sums.filter(({ requests, chargeNanoUsd }) => requests !== 0n || chargeNanoUsd !== 0n).sort((a, b) => (a.model === b.model ? (a.provider < b.provider ? -1 : 1) : a.model < b.model ? -1 : 1));
  for (const { model, provider, requests, tokens, byokTokens, chargeNanoUsd, feesNanoUsd } of sorted) {
    add('model_spend', model === '' ? 'Requests without an answer' : model, chargeNanoUsd - feesNanoUsd, { model, provider, requests, tokens: tokens + byokTokens });
  }
  for (const { model, provider, feesNanoUsd } of sorted) if (feesNanoUsd !== 0n) add('plugin', `Plugins with ${model}`, feesNanoUsd, { model, provider });
  for (const { requestId, amountNanoUsd, latePeriod } of adjustments) {
    add('adjustment', requestId === '' ? 'Further corrections of charges' : latePeriod === '' ? 'Correction of a charge' : `Correction of a charge of ${latePeriod}`, amountNanoUsd, { requestId });
  }
  const charged = total(lines, 'model_spend', 'plugin', 'adjustment');
  const paid = creditUsed([...earlier, { chargeNanoUsd: charged, trialCreditNanoUsd: terms.trialCreditNanoUsd }]) - creditUsed(earlier);
  if (paid !== 0n) add('trial_credit', paid > 0n ? 'Trial credit' : 'Trial credit taken back by corrections', -paid);
  return {
    subscriptionNanoUsd: total(lines, 'subscription'),
    includedTokens: terms.includedTokens,
    usedTokens,
    overageTokens: overage.tokens,
    overageNanoUsd: overage.amountNanoUsd,
    modelSpendNanoUsd: total(lines, 'model_spend'),
    pluginsNanoUsd: total(lines, 'plugin'),
    adjustmentsNanoUsd: total(lines, 'adjustment'),
    trialCreditNanoUsd: total(lines, 'trial_credit'),
    totalNanoUsd: total(lines),
    lines,
  };
}
