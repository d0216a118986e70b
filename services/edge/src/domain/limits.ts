/** The limits of one account and key in the form that quota takes: the tier's terms, overridden by the account's own. */
import type { Account__Output, CostCapSetting__Output } from '@signalbox/contracts/accounts';
import type { CostCap, Limits } from '@signalbox/contracts/quota';
import { bothAllow, type AllowedModels } from '@signalbox/kernel/model-lists';
import { isTier, tierTerms, type TierTerms, type Variant } from '@signalbox/kernel/tiers';
import { assert } from '@signalbox/kernel/assert';
import type { Caller } from './ports.js';

const PERIODS = { day: 'DAY', week: 'WEEK', month: 'MONTH', total: 'TOTAL' } as const;

function periodOf(text: string): 'DAY' | 'WEEK' | 'MONTH' | 'TOTAL' {
  assert(Object.hasOwn(PERIODS, text), 'A stored cap has a known period.');
  return PERIODS[text as keyof typeof PERIODS];
}

/** The variant of the published contract for an account: its own, else the deployment's. */
export const variantOf = ({ variant: own }: Pick<Account__Output, 'variant'>, deployed: Variant): Variant => (own === 'A' || own === 'B' ? own : deployed);

const known = new WeakMap<Caller, Limits>();

/** Computed once for each caller object, which lives as long as its key's entry in the cache. */
export function limitsOf(caller: Caller): Limits {
  let limits = known.get(caller);
  if (limits === undefined) {
    limits = readLimits(caller);
    known.set(caller, limits);
  }
  return limits;
}

/** An accounts service of an older version sends one cap only. */
function keyCapsOf({ limits }: Caller['key']): readonly CostCapSetting__Output[] {
  if (limits === null) return [];
  if (limits.costCaps.length > 0 || limits.costCapNanoUsd === undefined) return limits.costCaps;
  return [{ capNanoUsd: limits.costCapNanoUsd, period: limits.costCapPeriod || 'total' }];
}

/** True for a key with any limits of its own, as accounts counts them. */
export function isLimitedKey(key: Caller['key']): boolean {
  return keyCapsOf(key).length > 0 || key.limits?.requestsPerMinute !== undefined || (key.limits?.allowedModels ?? []).length > 0;
}

function readLimits({ account, key, variant }: Caller): Limits {
  const limits = accountLimits(account, variant);
  for (const cap of keyCapsOf(key)) limits.caps?.push({ scope: key.id, period: periodOf(cap.period), capNanoUsd: cap.capNanoUsd });
  if (key.limits?.requestsPerMinute !== undefined) limits.keyRequestsPerMinute = key.limits.requestsPerMinute;
  return limits;
}

/** The limits of an account without those of a key. `variant`: that of the account. */
export function accountLimits(account: Account__Output, variant: Variant): Limits {
  assert(isTier(account.tier), 'A stored account has a known tier.');
  const terms = tierTerms(variant, account.tier);
  const caps: CostCap[] = [...account.costCaps, ...account.policyCostCaps].map((cap) => ({ scope: 'account', period: periodOf(cap.period), capNanoUsd: cap.capNanoUsd }));
  const limits: Limits = { caps, hardCap: account.hardCap || account.policyHardCap, billingAnchorDay: account.billingAnchorDay };
  const rpm = account.requestsPerMinute ?? terms.requestsPerMinute ?? undefined;
  if (rpm !== undefined) limits.requestsPerMinute = rpm;
  const burst = account.burstPerSecond ?? (account.requestsPerMinute === undefined ? terms.burstPerSecond : Math.max(5, Math.floor(account.requestsPerMinute / 20))) ?? undefined;
  if (burst !== undefined) limits.burstPerSecond = burst;
  const included = account.includedTokens ?? terms.includedTokens?.toString();
  if (included !== undefined) limits.includedTokens = included;
  const credit = account.trialCreditNanoUsd ?? trialCreditOf(terms, account)?.toString();
  if (credit !== undefined) limits.trialCreditNanoUsd = credit;
  const byokTokens = account.byokTokens ?? terms.byokTokens?.toString();
  if (byokTokens !== undefined) limits.byokTokens = byokTokens;
  return limits;
}

/** The trial credit of an account without one of its own: the largest that it ever had, as its bills count it; undefined = its tier is no trial. */
function trialCreditOf({ trialCreditNanoUsd: credit }: TierTerms, account: Account__Output): bigint | undefined {
  if (credit === null) return undefined;
  const kept = BigInt(account.keptCreditNanoUsd ?? 0);
  return kept > credit ? kept : credit;
}

const knownModels = new WeakMap<Caller, { readonly viaAuto: string[]; readonly byName: string[] }>();

/** Models that both the account and the key allow for requests of this kind, computed once for each caller object; empty = all. */
export function allowedModelsOf(caller: Caller, kind: keyof AllowedModels): string[] {
  let models = knownModels.get(caller);
  if (models === undefined) {
    const { viaAuto, byName } = bothAllow(caller.account.allowModels, caller.key.limits?.allowedModels ?? []);
    models = { viaAuto: [...viaAuto], byName: [...byName] };
    knownModels.set(caller, models);
  }
  return models[kind];
}

/** True when requests beyond the account's allotment of tokens are refused, on any credential. */
export function isHard(limits: Limits): boolean {
  return limits.hardCap === true && limits.includedTokens !== undefined;
}

/** True when a cap, credit or hard allotment counts the request, so that its answer must be bounded. */
export function isLimited(limits: Limits): boolean {
  return (limits.caps?.length ?? 0) > 0 || limits.trialCreditNanoUsd !== undefined || isHard(limits);
}
