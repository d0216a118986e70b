/** Records of accounts, keys, digests of secrets, and provider credentials. */
import type { Sealed } from './envelope.js';

export type CapPeriod = 'day' | 'week' | 'month' | 'total';
export const CAP_PERIODS: readonly CapPeriod[] = ['day', 'week', 'month', 'total'];

export interface CostCapRecord {
  readonly capNanoUsd: bigint;
  readonly period: CapPeriod;
}

/** Scopes that a key may have. */
export const SCOPES = ['inference', 'models:read', 'keys', 'usage:read', 'admin'] as const;
/** Default scopes of a key created by the operator. */
export const OPERATOR_DEFAULT_SCOPES: readonly string[] = ['inference', 'models:read', 'keys', 'usage:read'];

/** An account's settings; null = the tier's default. Amounts in nano-USD. */
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
  /** Largest trial credit under earlier terms: still pays for bills, but does not limit requests; null = none. */
  readonly keptCreditNanoUsd: bigint | null;
  /** Per month, for requests on own provider credentials. */
  readonly byokTokens: bigint | null;
  readonly hardCap: boolean;
  /** Set by the operator; at most one per period. */
  readonly costCaps: readonly CostCapRecord[];
  /** Set by the account, in addition to the operator's: the tighter one applies. */
  readonly policyCostCaps: readonly CostCapRecord[];
  readonly policyHardCap: boolean;
  readonly baselineModel: string;
  /** Set by the account, replaces the operator's; empty = none. */
  readonly policyBaselineModel: string;
  /** Whether answers are stored for repeats of an Idempotency-Key, as the operator set it. */
  readonly storeAnswers: boolean;
  /** Set by the account, overrides the operator's; null = not set. */
  readonly policyStoreAnswers: boolean | null;
  readonly allowModels: readonly string[];
  readonly denyModels: readonly string[];
  readonly allowProviders: readonly string[];
  readonly denyProviders: readonly string[];
  readonly routingMode: string;
  /** Predicted quality given up per US dollar saved; replaces the mode. */
  readonly costWeight: number | null;
  /** 1..28; 0 = calendar month. */
  readonly billingAnchorDay: number;
  /** Unix seconds. */
  readonly createdAt: number;
}

export interface KeyLimitsRecord {
  readonly requestsPerMinute: number | null;
  /** At most one per period. */
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

/** A stored secret: its HMAC-SHA-256 under the pepper, never the secret itself. */
export interface SecretRecord {
  readonly digest: Uint8Array;
  readonly pepperId: string;
  readonly keyId: string;
  /** Unix seconds from which a rotated-out secret is refused; null = the newest. */
  readonly validUntil: number | null;
}

/** An account's own credential at a provider, without the credential. */
export interface ProviderKeyRecord {
  /** Identifies this credential; a replacement gets a new handle. */
  readonly handle: string;
  readonly accountId: string;
  /** Catalog id. */
  readonly provider: string;
  /** Empty = too short to show any part. */
  readonly last4: string;
  readonly zdr: boolean;
  /** Empty = the provider's own. */
  readonly baseUrl: string;
  /** Unix seconds. */
  readonly createdAt: number;
}

/** As stored. */
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
