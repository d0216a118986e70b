/** Records of the domain as messages of the contract, and back. */
import type { Account, Account__Output, Key, KeyLimits__Output } from '@signalbox/contracts/accounts';
import type { SeenKey } from './domain/keys.js';
import { CAP_PERIODS, type AccountRecord, type CapPeriod, type KeyLimitsRecord } from './domain/records.js';

/** Unknown text stays as it is: the domain's rules refuse it by name. */
function period(text: string): CapPeriod {
  return CAP_PERIODS.find((known) => known === text) ?? (text as CapPeriod);
}

export function accountMessage(account: AccountRecord): Account {
  const { requestsPerMinute, burstPerSecond, includedTokens, overageNanoUsdPerMillion, trialCreditNanoUsd, costCaps, allowModels, denyModels, allowProviders, denyProviders, createdAt, ...rest } = account;
  return {
    ...rest,
    ...(requestsPerMinute === null ? {} : { requestsPerMinute }),
    ...(burstPerSecond === null ? {} : { burstPerSecond }),
    ...(includedTokens === null ? {} : { includedTokens: includedTokens.toString() }),
    ...(overageNanoUsdPerMillion === null ? {} : { overageNanoUsdPerMillion: overageNanoUsdPerMillion.toString() }),
    ...(trialCreditNanoUsd === null ? {} : { trialCreditNanoUsd: trialCreditNanoUsd.toString() }),
    costCaps: costCaps.map((cap) => ({ capNanoUsd: cap.capNanoUsd.toString(), period: cap.period })),
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
    hardCap: message.hardCap,
    costCaps: message.costCaps.map((cap) => ({ capNanoUsd: BigInt(cap.capNanoUsd), period: period(cap.period) })),
    baselineModel: message.baselineModel,
    allowModels: message.allowModels,
    denyModels: message.denyModels,
    allowProviders: message.allowProviders,
    denyProviders: message.denyProviders,
    routingMode: message.routingMode,
    billingAnchorDay: message.billingAnchorDay,
    createdAt: Number(message.createdAt),
  };
}

export function limitsRecord(message: KeyLimits__Output | null): KeyLimitsRecord {
  if (message === null) return { requestsPerMinute: null, costCapNanoUsd: null, costCapPeriod: '', allowedModels: [] };
  return {
    requestsPerMinute: message.requestsPerMinute ?? null,
    costCapNanoUsd: message.costCapNanoUsd === undefined ? null : BigInt(message.costCapNanoUsd),
    costCapPeriod: message.costCapPeriod === '' ? '' : period(message.costCapPeriod),
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
      ...(limits.costCapNanoUsd === null ? {} : { costCapNanoUsd: limits.costCapNanoUsd.toString() }),
      costCapPeriod: limits.costCapPeriod,
      allowedModels: [...limits.allowedModels],
    },
  };
}
