/** Converts between rows of the store and records of the domain. Amounts inside JSON are decimal strings. */
import { z } from 'zod';
import type { AccountRecord, KeyLimitsRecord, KeyRecord, ProviderKeyRecord, SealedProviderKey, SecretRecord } from '../domain/records.js';

/** Statements are written by hand: the tables are few. */
export type AccountsSchema = Record<string, never>;

export interface AccountRow {
  readonly seq: bigint;
  readonly id: string;
  readonly settings: unknown;
}
export interface KeyRow {
  readonly seq: bigint;
  readonly id: string;
  readonly account_id: string;
  readonly name: string;
  readonly prefix: string;
  readonly scopes: unknown;
  readonly created_at: bigint;
  readonly expires_at: bigint | null;
  readonly last_used_at: bigint | null;
  readonly revoked_at: bigint | null;
  readonly is_disabled: boolean;
  readonly grace_ends_at: bigint | null;
  readonly limits: unknown;
}
export interface SecretRow {
  readonly digest: Buffer;
  readonly pepper_id: string;
  readonly key_id: string;
  readonly valid_until: bigint | null;
}

export interface ProviderKeyRow {
  readonly handle: string;
  readonly account_id: string;
  readonly provider: string;
  readonly last4: string;
  readonly zdr: boolean;
  readonly base_url: string;
  readonly created_at: bigint;
}
export interface SealedRow {
  readonly key_id: string;
  readonly wrapped_key: Buffer;
  readonly sealed: Buffer;
}

const whole = z.string().transform((text) => BigInt(text));
const period = z.enum(['day', 'week', 'month', 'total']);
const names = z.array(z.string());
const caps = z.array(z.object({ capNanoUsd: whole, period }));
const settingsSchema = z.object({
  name: z.string(),
  tier: z.string(),
  variant: z.string(),
  suspended: z.boolean(),
  requestsPerMinute: z.number().nullable(),
  burstPerSecond: z.number().nullable(),
  includedTokens: whole.nullable(),
  overageNanoUsdPerMillion: whole.nullable(),
  trialCreditNanoUsd: whole.nullable(),
  keptCreditNanoUsd: whole.nullable().default(null),
  byokTokens: whole.nullable().default(null),
  hardCap: z.boolean(),
  costCaps: caps,
  policyCostCaps: caps.default([]),
  policyHardCap: z.boolean().default(false),
  baselineModel: z.string(),
  policyBaselineModel: z.string().default(''),
  storeAnswers: z.boolean().default(false),
  policyStoreAnswers: z.boolean().nullable().default(null),
  allowModels: names,
  denyModels: names,
  allowProviders: names,
  denyProviders: names,
  routingMode: z.string(),
  costWeight: z.number().nullable().default(null),
  billingAnchorDay: z.number(),
  createdAt: z.number(),
});
/** Rows from before several caps were possible have one cap, or null. */
const limitsSchema = z
  .object({ requestsPerMinute: z.number().nullable(), costCaps: caps.optional(), costCapNanoUsd: whole.nullish(), costCapPeriod: z.union([period, z.literal('')]).optional(), allowedModels: names })
  .transform(({ requestsPerMinute, costCaps, costCapNanoUsd, costCapPeriod, allowedModels }): KeyLimitsRecord => ({
    requestsPerMinute,
    costCaps: costCaps ?? (costCapNanoUsd === null || costCapNanoUsd === undefined ? [] : [{ capNanoUsd: costCapNanoUsd, period: costCapPeriod || 'total' }]),
    allowedModels,
  }));

function json(value: object): string {
  return JSON.stringify(value, (_key, entry: unknown) => (typeof entry === 'bigint' ? entry.toString() : entry));
}

const seconds = (value: bigint | null): number | null => (value === null ? null : Number(value));

export function accountFromRow(row: Pick<AccountRow, 'id' | 'settings'>): AccountRecord {
  return { id: row.id, ...settingsSchema.parse(row.settings) };
}

/** JSON text of an account's settings. */
export function accountSettings({ id: _id, ...settings }: AccountRecord): string {
  return json(settings);
}

export function limitsText(limits: KeyLimitsRecord): string {
  return json(limits);
}

export function keyFromRow(row: KeyRow): KeyRecord {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    prefix: row.prefix,
    scopes: names.parse(row.scopes),
    createdAt: Number(row.created_at),
    expiresAt: seconds(row.expires_at),
    lastUsedAt: seconds(row.last_used_at),
    revokedAt: seconds(row.revoked_at),
    isDisabled: row.is_disabled,
    graceEndsAt: seconds(row.grace_ends_at),
    limits: limitsSchema.parse(row.limits),
  };
}

export function secretFromRow(row: SecretRow): SecretRecord {
  return { digest: row.digest, pepperId: row.pepper_id, keyId: row.key_id, validUntil: seconds(row.valid_until) };
}

export function providerKeyFromRow(row: ProviderKeyRow): ProviderKeyRecord {
  return { handle: row.handle, accountId: row.account_id, provider: row.provider, last4: row.last4, zdr: row.zdr, baseUrl: row.base_url, createdAt: Number(row.created_at) };
}

export function sealedFromRow(row: ProviderKeyRow & SealedRow): SealedProviderKey {
  return { ...providerKeyFromRow(row), keyId: row.key_id, wrappedKey: row.wrapped_key, sealed: row.sealed };
}

const providerKeysSchema = z.array(z.object({ handle: z.string(), account_id: z.string(), provider: z.string(), last4: z.string(), zdr: z.boolean(), base_url: z.string(), created_at: z.number() }));

/** Reads a JSON array of rows; null = no rows. */
export function providerKeysFromJson(value: unknown): readonly ProviderKeyRecord[] {
  if (value === null) return [];
  return providerKeysSchema.parse(value).map((row) => providerKeyFromRow({ ...row, created_at: BigInt(row.created_at) }));
}
