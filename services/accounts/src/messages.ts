/** Translates between records of the domain and messages of the contract. */
import type { Account, Account__Output, CostCapSetting, CostCapSetting__Output, Key, KeyLimits__Output, ProviderKey } from '@signalbox/contracts/accounts';
import type { SeenKey } from './domain/keys.js';
import { CAP_PERIODS, type AccountRecord, type CapPeriod, type CostCapRecord, type KeyLimitsRecord, type ProviderKeyRecord } from './domain/records.js';

/** Passes unknown text through: the domain's rules refuse it and name it. */
function period(text: string): CapPeriod {
  return CAP_PERIODS.find((known) => known === text) ?? (text as CapPeriod);
}

function capMessages(caps: readonly CostCapRecord[]): CostCapSetting[] {
  return caps.map((cap) => ({ capNanoUsd: cap.capNanoUsd.toString(), period: cap.period }));
}

function capRecords(caps: readonly CostCapSetting__Output[]): CostCapRecord[] {
  return caps.map((cap) => ({ capNanoUsd: BigInt(cap.capNanoUsd), period: period(cap.period) }));
}

export function providerKeyMessage({ createdAt, ...rest }: ProviderKeyRecord): ProviderKey {
  return { ...rest, createdAt: String(createdAt) };
}

export function accountMessage(account: AccountRecord): Account {
  const { requestsPerMinute, burstPerSecond, includedTokens, overageNanoUsdPerMillion, trialCreditNanoUsd, keptCreditNanoUsd, byokTokens, costCaps, policyCostCaps, costWeight, policyStoreAnswers, allowModels, denyModels, allowProviders, denyProviders, createdAt, ...rest } = account;
  return {
    ...rest,
    ...(requestsPerMinute === null ? {} : { requestsPerMinute }),
    ...(burstPerSecond === null ? {} : { burstPerSecond }),
    ...(includedTokens === null ? {} : { includedTokens: includedTokens.toString() }),
    ...(overageNanoUsdPerMillion === null ? {} : { overageNanoUsdPerMillion: overageNanoUsdPerMillion.toString() }),
    ...(trialCreditNanoUsd === null ? {} : { trialCreditNanoUsd: trialCreditNanoUsd.toString() }),
    ...(keptCreditNanoUsd === null ? {} : { keptCreditNanoUsd: keptCreditNanoUsd.toString() }),
    ...(byokTokens === null ? {} : { byokTokens: byokTokens.toString() }),
    ...(costWeight === null ? {} : { costWeight }),
    ...(policyStoreAnswers === null ? {} : { policyStoreAnswers }),
    costCaps: capMessages(costCaps),
    policyCostCaps: capMessages(policyCostCaps),
    allowModels: [...allowModels],
    denyModels: [...denyModels],
    allowProviders: [...allowProviders],
    denyProviders: [...denyProviders],
    createdAt: String(createdAt),
  };
}

export function accountRecord(message: Account__Output): AccountRecord {
  const whole = (text: string | undefined): bigint | null => (text === undefined ? null : BigInt(text));
  return {
    id: message.id,
    name: message.name,
    tier: message.tier,
    variant: message.variant,
    suspended: message.suspended,
    requestsPerMinute: message.requestsPerMinute ?? null,
    burstPerSecond: message.burstPerSecond ?? null,
    includedTokens: whole(message.includedTokens),
    overageNanoUsdPerMillion: whole(message.overageNanoUsdPerMillion),
    trialCreditNanoUsd: whole(message.trialCreditNanoUsd),
    keptCreditNanoUsd: whole(message.keptCreditNanoUsd),
    byokTokens: whole(message.byokTokens),
    hardCap: message.hardCap,
    costCaps: capRecords(message.costCaps),
    policyCostCaps: capRecords(message.policyCostCaps),
    policyHardCap: message.policyHardCap,
    baselineModel: message.baselineModel,
    policyBaselineModel: message.policyBaselineModel,
    storeAnswers: message.storeAnswers,
    policyStoreAnswers: message.policyStoreAnswers ?? null,
    allowModels: message.allowModels,
    denyModels: message.denyModels,
    allowProviders: message.allowProviders,
    denyProviders: message.denyProviders,
    routingMode: message.routingMode,
    costWeight: message.costWeight ?? null,
    billingAnchorDay: message.billingAnchorDay,
    createdAt: Number(message.createdAt),
  };
}

export function limitsRecord(message: KeyLimits__Output | null): KeyLimitsRecord {
  if (message === null) return { requestsPerMinute: null, costCaps: [], allowedModels: [] };
  return {
    requestsPerMinute: message.requestsPerMinute ?? null,
    costCaps: message.costCaps.length > 0 || message.costCapNanoUsd === undefined ? capRecords(message.costCaps) : [{ capNanoUsd: BigInt(message.costCapNanoUsd), period: period(message.costCapPeriod) }],
    allowedModels: message.allowedModels,
  };
}

export function keyMessage({ key, status }: SeenKey): Key {
  const { limits } = key;
  return {
    id: key.id,
    accountId: key.accountId,
    name: key.name,
    prefix: key.prefix,
    status,
    scopes: [...key.scopes],
    createdAt: String(key.createdAt),
    ...(key.expiresAt === null ? {} : { expiresAt: String(key.expiresAt) }),
    ...(key.lastUsedAt === null ? {} : { lastUsedAt: String(key.lastUsedAt) }),
    ...(key.revokedAt === null ? {} : { revokedAt: String(key.revokedAt) }),
    limits: {
      ...(limits.requestsPerMinute === null ? {} : { requestsPerMinute: limits.requestsPerMinute }),
      ...(limits.costCaps[0] === undefined ? {} : { costCapNanoUsd: limits.costCaps[0].capNanoUsd.toString() }),
      costCapPeriod: limits.costCaps[0]?.period ?? '',
      costCaps: capMessages(limits.costCaps),
      allowedModels: [...limits.allowedModels],
    },
  };
}
