/** Validation of input to accounts; each problem is a sentence that names the field. */
import { isBlank } from '@signalbox/kernel/blank';
import { mayAllowMore } from '@signalbox/kernel/model-lists';
import { CAP_NANO_USD_MAX } from '@signalbox/kernel/money';
import { isTier } from '@signalbox/kernel/tiers';
import { CAP_PERIODS, SCOPES, type AccountRecord, type CostCapRecord, type KeyLimitsRecord, type KeyRecord } from './records.js';

const NAME_LENGTH_MAX = 100;
/** Ten years in seconds. */
export const EXPIRES_IN_SECONDS_MAX = 315_360_000;
/** Thirty days: a rotation must end. */
export const GRACE_SECONDS_MAX = 2_592_000;
/** Per account, not counting revoked and expired keys. */
export const KEYS_MAX = 1_000;
const LIST_LENGTH_MAX = 200;
const RATE_MAX = 10_000_000;
/** Predicted quality per US dollar; above this only the price would count. */
const COST_WEIGHT_MAX = 1_000_000;
const NAME_OF_MODEL_MAX = 200;
const TOKENS_MAX = 9_000_000_000_000_000n;

function lengthProblem(name: string): string | undefined {
  const length = [...name].length;
  return length >= 1 && length <= NAME_LENGTH_MAX ? undefined : `name must have 1 to ${NAME_LENGTH_MAX} characters.`;
}

/** Problem of a key's name, or undefined. 1 to 100 characters, not only blanks, since such names look alike. */
export function nameProblem(name: string): string | undefined {
  return lengthProblem(name) ?? (isBlank(name) ? 'name must not be blank.' : undefined);
}

export function scopesProblem(scopes: readonly string[]): string | undefined {
  const known: readonly string[] = SCOPES;
  const wrong = scopes.find((scope) => !known.includes(scope));
  return wrong === undefined ? undefined : `scopes must be among ${SCOPES.join(', ')}.`;
}

function amountProblem(field: string, amount: bigint | null): string | undefined {
  return amount === null || (amount >= 0n && amount <= CAP_NANO_USD_MAX) ? undefined : `${field} must be at least 0 and at most 9000000 US dollars.`;
}

function rateProblem(field: string, rate: number | null): string | undefined {
  return rate === null || (Number.isInteger(rate) && rate >= 1 && rate <= RATE_MAX) ? undefined : `${field} must be a whole number from 1 to ${RATE_MAX}.`;
}

function listProblem(field: string, list: readonly string[]): string | undefined {
  return list.length <= LIST_LENGTH_MAX && list.every((entry) => entry.length >= 1 && entry.length <= 200) ? undefined : `${field} must have at most ${LIST_LENGTH_MAX} names.`;
}

function capsProblem(prefix: string, caps: readonly CostCapRecord[]): string | undefined {
  const periods = caps.map((cap) => cap.period);
  if (!periods.every((period) => CAP_PERIODS.includes(period))) return `${prefix}cost_cap_period must be among ${CAP_PERIODS.join(', ')}.`;
  if (new Set(periods).size !== periods.length) return `${prefix}cost_caps must name each period once.`;
  return caps.map((cap) => amountProblem(`${prefix}cost_cap_usd`, cap.capNanoUsd)).find((problem) => problem !== undefined);
}

export function limitsProblem(limits: KeyLimitsRecord): string | undefined {
  return (
    rateProblem('limits.requests_per_minute', limits.requestsPerMinute) ??
    capsProblem('limits.', limits.costCaps) ??
    listProblem('limits.allowed_models', limits.allowedModels)
  );
}

/** True if the key has limits that are counted per key: with two keys, a client would have them twice. */
function isMetered({ requestsPerMinute, costCaps }: KeyLimitsRecord): boolean {
  return requestsPerMinute !== null || costCaps.length > 0;
}

/** True for a key with any limits; its expiry does not count. */
export function isLimited(limits: KeyLimitsRecord): boolean {
  return isMetered(limits) || limits.allowedModels.length > 0;
}

/** True if `wanted` permits anything that `bound` does not. Caps are compared per period: a cap for another period does not make up for a missing one. */
export function isLooser(wanted: KeyLimitsRecord, bound: KeyLimitsRecord): boolean {
  if (bound.requestsPerMinute !== null && (wanted.requestsPerMinute === null || wanted.requestsPerMinute > bound.requestsPerMinute)) return true;
  if (bound.costCaps.some(({ period, capNanoUsd }) => !wanted.costCaps.some((cap) => cap.period === period && cap.capNanoUsd <= capNanoUsd))) return true;
  return mayAllowMore(wanted.allowedModels, bound.allowedModels);
}

/**
 * Problem of giving the secret of another key to the holder of `actor`: it must not permit more than `actor` does. Limits that
 * are counted per key would be available a second time, so a key with such limits cannot get a key that runs requests.
 */
export function handedProblem(actor: KeyRecord, { scopes, limits, expiresAt }: Pick<KeyRecord, 'scopes' | 'limits' | 'expiresAt'>): string | undefined {
  if (!scopes.every((scope) => actor.scopes.includes(scope))) return 'insufficient_scope: scopes must not exceed those of the calling key.';
  if (isMetered(actor.limits) && scopes.includes('inference')) return 'insufficient_scope: scopes must not have inference where the calling key has a cost cap or a rate of its own: another key would have them once more.';
  if (isLooser(limits, actor.limits)) return 'insufficient_scope: limits must be as tight as those of the calling key.';
  if (actor.expiresAt !== null && (expiresAt === null || expiresAt > actor.expiresAt)) return 'insufficient_scope: expires_in must not go beyond the end of the calling key.';
  return undefined;
}

export function accountProblem(account: AccountRecord): string | undefined {
  if (!isTier(account.tier)) return 'tier must be among free, team, business, enterprise, pro.';
  if (!['', 'A', 'B'].includes(account.variant)) return 'variant must be A or B.';
  if (!['', 'quality', 'balanced', 'economy'].includes(account.routingMode)) return 'routing_mode must be among quality, balanced, economy.';
  if (account.billingAnchorDay < 0 || account.billingAnchorDay > 28) return 'billing_anchor_day must be from 1 to 28, or 0 for the calendar month.';
  for (const [field, tokens] of [['included_tokens', account.includedTokens], ['byok_tokens', account.byokTokens]] as const) if (tokens !== null && (tokens < 0n || tokens > TOKENS_MAX)) return `${field} must be from 0 to ${TOKENS_MAX}.`;
  if (account.costWeight !== null && !(account.costWeight >= 0 && account.costWeight <= COST_WEIGHT_MAX)) return `lambda must be from 0 to ${COST_WEIGHT_MAX}.`;
  if (Math.max(account.baselineModel.length, account.policyBaselineModel.length) > NAME_OF_MODEL_MAX) return `baseline_model must have at most ${NAME_OF_MODEL_MAX} characters.`;
  return (
    // A blank name is accepted here, so that accounts that have one can still be changed, above all suspended.
    lengthProblem(account.name) ??
    rateProblem('requests_per_minute', account.requestsPerMinute) ??
    rateProblem('burst_per_second', account.burstPerSecond) ??
    amountProblem('overage_usd_per_million', account.overageNanoUsdPerMillion) ??
    amountProblem('trial_credit_usd', account.trialCreditNanoUsd) ??
    capsProblem('', account.costCaps) ??
    capsProblem('', account.policyCostCaps) ??
    listProblem('allow_models', account.allowModels) ??
    listProblem('deny_models', account.denyModels) ??
    listProblem('allow_providers', account.allowProviders) ??
    listProblem('deny_providers', account.denyProviders)
  );
}
