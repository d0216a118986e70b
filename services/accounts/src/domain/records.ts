/** What accounts keeps: accounts, keys and the digests of their secrets, credentials at providers. */
import type { Sealed } from './envelope.js';

export type CapPeriod = 'day' | 'week' | 'month' | 'total';
export const CAP_PERIODS: readonly CapPeriod[] = ['day', 'week', 'month', 'total'];

export interface CostCapRecord {
  readonly capNanoUsd: bigint;
  readonly period: CapPeriod;
}

/** Scopes a key may carry (contract, section 10). */
export const SCOPES = ['inference', 'models:read', 'keys', 'usage:read', 'admin'] as const;
/** What a key made by the operator carries unless told otherwise. */
export const OPERATOR_DEFAULT_SCOPES: readonly string[] = ['inference', 'models:read', 'keys', 'usage:read'];

/** An account's settings; null = the tier's own term. Amounts in nano-USD. */
export interface AccountRecord {
  readonly id: string;
  readonly name: string;
  readonly tier: string;
  /** Empty = the deployment's. */
  readonly variant: string;
  readonly suspended: boolean;
  readonly requestsPerMinute: number | null;
  readonly burstPerSecond: number | null;
  readonly includedTokens: bigint | null;
  readonly overageNanoUsdPerMillion: bigint | null;
  readonly trialCreditNanoUsd: bigint | null;
  /** Largest trial credit it had under earlier terms: pays on its bills still, and is no wall; null = none. */
  readonly keptCreditNanoUsd: bigint | null;
  /** A month, over own provider credentials. */
  readonly byokTokens: bigint | null;
  readonly hardCap: boolean;
  /** The operator's; one for each period at most. */
  readonly costCaps: readonly CostCapRecord[];
  /** The account's own, beside the operator's: the tighter one binds. */
  readonly policyCostCaps: readonly CostCapRecord[];
  readonly policyHardCap: boolean;
  readonly baselineModel: string;
  /** The account's own, in place of the operator's; empty = none. */
  readonly policyBaselineModel: string;
  /** Whether answers are kept for repeats of an Idempotency-Key, as the operator set it. */
  readonly storeAnswers: boolean;
  /** The account's own word, which counts; null = none. */
  readonly policyStoreAnswers: boolean | null;
  readonly allowModels: readonly string[];
  readonly denyModels: readonly string[];
  readonly allowProviders: readonly string[];
  readonly denyProviders: readonly string[];
  readonly routingMode: string;
  /** Predicted quality given up for a US dollar; takes the place of the mode. */
  readonly costWeight: number | null;
  /** 1..28; 0 = calendar month. */
  readonly billingAnchorDay: number;
  /** Unix seconds. */
  readonly createdAt: number;
}

export interface KeyLimitsRecord {
  readonly requestsPerMinute: number | null;
  /** One for each period at most. */
  readonly costCaps: readonly CostCapRecord[];
  /** Empty = all. */
  readonly allowedModels: readonly string[];
}

/** A key; all times in Unix seconds. */
export interface KeyRecord {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  /** First characters of the newest secret, for lists. */
  readonly prefix: string;
  readonly scopes: readonly string[];
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly lastUsedAt: number | null;
  readonly revokedAt: number | null;
  readonly isDisabled: boolean;
  /** Until then an older secret still works; null = never rotated. */
  readonly graceEndsAt: number | null;
  readonly limits: KeyLimitsRecord;
}

/** A secret as kept: its HMAC-SHA-256 under the pepper, never the secret. */
export interface SecretRecord {
  readonly digest: Uint8Array;
  readonly pepperId: string;
  readonly keyId: string;
  /** Unix seconds from which a rotated-out secret is refused; null = the newest. */
  readonly validUntil: number | null;
}

/** An account's own credential at a provider, without the credential. */
export interface ProviderKeyRecord {
  /** Names this very credential: another one has another handle. */
  readonly handle: string;
  readonly accountId: string;
  /** Catalog id. */
  readonly provider: string;
  /** Empty = too short to show any of it. */
  readonly last4: string;
  readonly zdr: boolean;
  /** Empty = the provider's own. */
  readonly baseUrl: string;
  /** Unix seconds. */
  readonly createdAt: number;
}

/** As kept. */
export type SealedProviderKey = ProviderKeyRecord & Sealed;

export type KeyStatus = 'active' | 'rotating' | 'disabled' | 'expired' | 'revoked';
export const KEY_STATUSES: readonly KeyStatus[] = ['active', 'rotating', 'disabled', 'expired', 'revoked'];

/** State of a key at an instant (Unix seconds). Revoked is final and wins; then expired, disabled, rotating. */
export function keyStatus(key: KeyRecord, nowSeconds: number): KeyStatus {
  if (key.revokedAt !== null) return 'revoked';
  if (key.expiresAt !== null && key.expiresAt <= nowSeconds) return 'expired';
  if (key.isDisabled) return 'disabled';
  return key.graceEndsAt !== null && key.graceEndsAt > nowSeconds ? 'rotating' : 'active';
}
