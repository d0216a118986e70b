/** What accounts keeps: accounts, keys and the digests of their secrets. */

export type CapPeriod = 'day' | 'week' | 'month' | 'total';
export const CAP_PERIODS: readonly CapPeriod[] = ['day', 'week', 'month', 'total'];

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
  readonly hardCap: boolean;
  readonly costCaps: readonly { readonly capNanoUsd: bigint; readonly period: CapPeriod }[];
  readonly baselineModel: string;
  readonly allowModels: readonly string[];
  readonly denyModels: readonly string[];
  readonly allowProviders: readonly string[];
  readonly denyProviders: readonly string[];
  readonly routingMode: string;
  /** 1..28; 0 = calendar month. */
  readonly billingAnchorDay: number;
  /** Unix seconds. */
  readonly createdAt: number;
}

export interface KeyLimitsRecord {
  readonly requestsPerMinute: number | null;
  readonly costCapNanoUsd: bigint | null;
  readonly costCapPeriod: CapPeriod | '';
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

export type KeyStatus = 'active' | 'rotating' | 'disabled' | 'expired' | 'revoked';
export const KEY_STATUSES: readonly KeyStatus[] = ['active', 'rotating', 'disabled', 'expired', 'revoked'];

/** State of a key at an instant (Unix seconds). Revoked is final and wins; then expired, disabled, rotating. */
export function keyStatus(key: KeyRecord, nowSeconds: number): KeyStatus {
  if (key.revokedAt !== null) return 'revoked';
  if (key.expiresAt !== null && key.expiresAt <= nowSeconds) return 'expired';
  if (key.isDisabled) return 'disabled';
  return key.graceEndsAt !== null && key.graceEndsAt > nowSeconds ? 'rotating' : 'active';
}
