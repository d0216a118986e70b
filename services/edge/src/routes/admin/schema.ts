/** Bodies of admin requests and answers. Amounts are sent as decimal text. */
import type { Account, Account__Output, CostCapSetting, KeyLimits } from '@signalbox/contracts/accounts';
import { isBlank } from '@signalbox/kernel/blank';
import { CAP_NANO_USD_MAX, parseUsd } from '@signalbox/kernel/money';
import { z } from 'zod';
import { usd } from '../api-auth/exact-json.js';
import { capBodies, GRACE_SECONDS_MAX } from '../api-auth/schema.js';
import { QueryError } from '../query-fields.js';
import { strictFields } from '../strict-fields.js';

const amount = z.string().transform((text, context) => {
  try {
    const nano = parseUsd(text);
    if (nano >= 0n && nano <= CAP_NANO_USD_MAX) return nano.toString();
  } catch {
    // Reported below.
  }
  context.addIssue({ code: 'custom', message: 'must be an amount of US dollars from 0 to 9000000 with at most nine decimals' });
  return z.NEVER;
});

const capPeriod = z.enum(['day', 'week', 'month', 'total']);
const caps = z
  .array(strictFields({ cap_usd: amount, period: capPeriod }))
  .max(4)
  .refine((given) => new Set(given.map((cap) => cap.period)).size === given.length, 'must name each period once');

/** Blank names could not be told apart, and a name with line breaks could imitate further rows of a list. */
const accountName = z.string().min(1).max(100).refine((name) => !isBlank(name) && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(name), 'must be one line that is not blank, without control characters');

/** Null = back to the tier's own term. */
const settings = {
  tier: z.enum(['free', 'team', 'business', 'enterprise', 'pro']),
  cost_cap_usd: amount.nullish(),
  cost_cap_period: capPeriod.optional(),
  /** Several caps, instead of the two fields above. */
  cost_caps: caps.optional(),
  hard_cap: z.boolean().optional(),
  included_tokens: z.string().regex(/^\d{1,16}$/, 'must be a whole number').nullish(),
  overage_usd_per_million: amount.nullish(),
  byok_tokens: z.string().regex(/^\d{1,16}$/, 'must be a whole number').nullish(),
  requests_per_minute: z.number().int().min(1).max(10_000_000).nullish(),
  burst_per_second: z.number().int().min(1).max(10_000_000).nullish(),
  trial_credit_usd: amount.nullish(),
  baseline_model: z.string().max(200).nullish(),
  variant: z.enum(['A', 'B']).nullish(),
  store_answers: z.boolean().optional(),
};
interface GivenCaps {
  readonly cost_cap_usd?: string | null | undefined;
  readonly cost_cap_period?: string | undefined;
  readonly cost_caps?: unknown;
}
/** A period needs its amount, and a list of caps excludes the single one. */
const hasWholeCaps = (given: GivenCaps): boolean => !(given.cost_cap_period !== undefined && (given.cost_cap_usd === undefined || given.cost_cap_usd === null)) && !(given.cost_caps !== undefined && given.cost_cap_usd !== undefined);
const WHOLE_CAPS = { path: ['cost_cap_usd'], message: 'is required with a period, and stands apart from a list of caps' };
export const createAccountSchema = strictFields({ name: accountName, ...settings }).refine(hasWholeCaps, WHOLE_CAPS);
export const setAccountSchema = strictFields({ name: accountName.optional(), ...settings, tier: settings.tier.optional() }).refine(hasWholeCaps, WHOLE_CAPS);
export const providerKeySchema = strictFields({ account_id: z.string(), provider: z.string(), secret: z.string().min(1), zdr: z.boolean().optional(), base_url: z.string().max(2_048).optional() });
const keyLimits = {
  requests_per_minute: settings.requests_per_minute,
  cost_cap_usd: settings.cost_cap_usd,
  cost_cap_period: settings.cost_cap_period,
  cost_caps: settings.cost_caps,
  allowed_models: z.array(z.string().min(1).max(200)).min(1, 'must not be empty; null lets a key use all models').max(200).nullish(),
};
export const createKeySchema = strictFields({ account_id: z.string(), name: z.string(), expires_in: z.number().int().min(1).max(315_360_000).optional(), scopes: z.array(z.string()).min(1, 'must not be empty; leave it out for all but admin').optional(), ...keyLimits })
  .refine(hasWholeCaps, WHOLE_CAPS);
/** Absent fields stay unchanged; null removes a limit. */
export const setKeySchema = strictFields({ name: z.string().optional(), disabled: z.boolean().optional(), ...keyLimits }).refine(hasWholeCaps, WHOLE_CAPS);
export const rotateKeySchema = strictFields({ grace_seconds: z.number().int().min(0).max(GRACE_SECONDS_MAX).default(0) });

type Settings = z.infer<typeof setAccountSchema>;

type GivenPeriod = Pick<Settings, 'cost_cap_usd' | 'cost_cap_period'>;

/** True for an amount without its period, which is then that of the account's present cap. */
export const lacksPeriod = ({ cost_cap_usd: cap, cost_cap_period: period }: GivenPeriod): boolean => typeof cap === 'string' && period === undefined;

/** Throws QueryError if the account has several caps, so that it is unclear which one is meant. */
function periodOf(given: GivenPeriod, before: readonly Pick<CostCapSetting, 'period'>[]): string {
  if (lacksPeriod(given) && before.length > 1) throw new QueryError('cost_cap_usd', 'cost_cap_usd: there are several caps; name each that is to hold, with its period.');
  return given.cost_cap_period ?? before[0]?.period ?? 'month';
}

function capsOf(given: Pick<Settings, 'cost_caps'> & GivenPeriod, before: readonly CostCapSetting[]): CostCapSetting[] | undefined {
  const { cost_caps: caps, cost_cap_usd: cap } = given;
  if (caps !== undefined) return caps.map((each) => ({ capNanoUsd: each.cap_usd, period: each.period }));
  if (cap === undefined) return undefined;
  return cap === null ? [] : [{ capNanoUsd: cap, period: periodOf(given, before) }];
}

/** The key's limits with the given ones changed, and the names of the changed ones; undefined when none are given. */
export function keyLimitsOf(given: z.infer<typeof setKeySchema>, before: KeyLimits | null): { readonly limits: KeyLimits; readonly limitNames: string[] } | undefined {
  const costCaps = capsOf(given, before?.costCaps ?? []);
  const named = { requestsPerMinute: given.requests_per_minute, costCaps, allowedModels: given.allowed_models };
  const limitNames = Object.entries(named).filter(([, value]) => value !== undefined).map(([name]) => name);
  if (limitNames.length === 0) return undefined;
  const requestsPerMinute = given.requests_per_minute === undefined ? before?.requestsPerMinute : (given.requests_per_minute ?? undefined);
  return {
    limits: {
      ...(requestsPerMinute === undefined ? {} : { requestsPerMinute }),
      costCaps: costCaps ?? before?.costCaps ?? [],
      allowedModels: given.allowed_models === undefined ? (before?.allowedModels ?? []) : (given.allowed_models ?? []),
    },
    limitNames,
  };
}

/** The settings as a message, with the names of the given fields; `before`: the account's present caps. */
export function accountSettings(given: Settings, before: readonly CostCapSetting[] = []): { readonly account: Account; readonly fields: string[] } {
  const pairs: Record<string, unknown> = {
    name: given.name,
    tier: given.tier,
    hardCap: given.hard_cap,
    includedTokens: given.included_tokens,
    overageNanoUsdPerMillion: given.overage_usd_per_million,
    requestsPerMinute: given.requests_per_minute,
    burstPerSecond: given.burst_per_second,
    trialCreditNanoUsd: given.trial_credit_usd,
    byokTokens: given.byok_tokens,
    baselineModel: given.baseline_model === null ? '' : given.baseline_model,
    variant: given.variant === null ? '' : given.variant,
    storeAnswers: given.store_answers,
    costCaps: capsOf(given, before),
  };
  const present = Object.entries(pairs).filter(([, value]) => value !== undefined);
  // A field that is named but absent goes back to the tier's own term.
  return { account: Object.fromEntries(present.filter(([, value]) => value !== null)), fields: present.map(([name]) => name) };
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
    byok_tokens: account.byokTokens === undefined ? null : Number(account.byokTokens),
    hard_cap: account.hardCap,
    cost_caps: capBodies(account.costCaps),
    policy: {
      cost_caps: capBodies(account.policyCostCaps),
      hard_cap: account.policyHardCap,
      baseline_model: account.policyBaselineModel === '' ? null : account.policyBaselineModel,
      store_answers: account.policyStoreAnswers ?? null,
    },
    baseline_model: account.baselineModel === '' ? null : account.baselineModel,
    store_answers: account.storeAnswers,
    created_at: Number(account.createdAt),
  };
}

/** A document or book for the index that plugins search. A book's own header fills what is not given. */
export const sourceSchema = strictFields({
  corpus: z.enum(['web', 'books']), key: z.string().max(2_048).default(''), title: z.string().max(512).default(''), author: z.string().max(512).default(''), url: z.string().max(2_048).default(''),
  language: z.string().regex(/^[a-z]{2}$/, 'must be two lower-case letters').or(z.literal('')).default(''), text: z.string().min(1).max(30 * 1_024 * 1_024),
});
