/** Bodies of the operator's door, and what it prints. Amounts come in as decimal text. */
import type { Account, Account__Output } from '@signalbox/contracts/accounts';
import { CAP_NANO_USD_MAX, parseUsd } from '@signalbox/kernel/money';
import { z } from 'zod';
import { usd } from '../api-auth/exact-json.js';

const amount = z.string().transform((text, context) => {
  try {
    const nano = parseUsd(text);
    if (nano >= 0n && nano <= CAP_NANO_USD_MAX) return nano.toString();
  } catch {
    // Said below.
  }
  context.addIssue({ code: 'custom', message: 'must be an amount of US dollars from 0 to 9000000 with at most nine decimals' });
  return z.NEVER;
});

const settings = {
  tier: z.enum(['free', 'team', 'business', 'enterprise', 'pro']),
  cost_cap_usd: amount.optional(),
  cost_cap_period: z.enum(['day', 'week', 'month', 'total']).optional(),
  hard_cap: z.boolean().optional(),
  included_tokens: z.string().regex(/^\d{1,16}$/, 'must be a whole number').optional(),
  overage_usd_per_million: amount.optional(),
  requests_per_minute: z.number().int().min(1).max(10_000_000).optional(),
  burst_per_second: z.number().int().min(1).max(10_000_000).optional(),
  trial_credit_usd: amount.optional(),
  baseline_model: z.string().max(200).optional(),
  variant: z.enum(['A', 'B']).optional(),
};
export const createAccountSchema = z.strictObject({ name: z.string().min(1).max(100), ...settings });
export const setAccountSchema = z.strictObject({ name: z.string().min(1).max(100).optional(), ...settings, tier: settings.tier.optional() });
export const createKeySchema = z.strictObject({ account_id: z.string(), name: z.string(), expires_in: z.number().int().min(1).max(315_360_000).optional(), scopes: z.array(z.string()).optional() });

type Settings = z.infer<typeof setAccountSchema>;

/** The settings as a message, with the names of the fields given. */
export function accountSettings(given: Settings): { readonly account: Account; readonly fields: string[] } {
  const pairs: Record<string, unknown> = {
    name: given.name,
    tier: given.tier,
    hardCap: given.hard_cap,
    includedTokens: given.included_tokens,
    overageNanoUsdPerMillion: given.overage_usd_per_million,
    requestsPerMinute: given.requests_per_minute,
    burstPerSecond: given.burst_per_second,
    trialCreditNanoUsd: given.trial_credit_usd,
    baselineModel: given.baseline_model,
    variant: given.variant,
    costCaps: given.cost_cap_usd === undefined ? undefined : [{ capNanoUsd: given.cost_cap_usd, period: given.cost_cap_period ?? 'month' }],
  };
  const present = Object.entries(pairs).filter(([, value]) => value !== undefined);
  return { account: Object.fromEntries(present), fields: present.map(([name]) => name) };
}

/** For `exactJson`; an absent override is null. */
export function accountBody(account: Account__Output): object {
  return {
    id: account.id,
    name: account.name,
    tier: account.tier,
    variant: account.variant === '' ? null : account.variant,
    suspended: account.suspended,
    requests_per_minute: account.requestsPerMinute ?? null,
    burst_per_second: account.burstPerSecond ?? null,
    included_tokens: account.includedTokens === undefined ? null : Number(account.includedTokens),
    overage_usd_per_million: usd(account.overageNanoUsdPerMillion),
    trial_credit_usd: usd(account.trialCreditNanoUsd),
    hard_cap: account.hardCap,
    cost_caps: account.costCaps.map((cap) => ({ cap_usd: usd(cap.capNanoUsd), period: cap.period })),
    baseline_model: account.baselineModel === '' ? null : account.baselineModel,
    created_at: Number(account.createdAt),
  };
}
