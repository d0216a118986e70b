/** Rows of the store and records of the domain, each way. Amounts inside JSON are decimal strings. */
import { z } from 'zod';
import type { AccountRecord, KeyLimitsRecord, KeyRecord, SecretRecord } from '../domain/records.js';

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

const whole = z.string().transform((text) => BigInt(text));
const period = z.enum(['day', 'week', 'month', 'total']);
const names = z.array(z.string());
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
  hardCap: z.boolean(),
  costCaps: z.array(z.object({ capNanoUsd: whole, period })),
  baselineModel: z.string(),
  allowModels: names,
  denyModels: names,
  allowProviders: names,
  denyProviders: names,
  routingMode: z.string(),
  billingAnchorDay: z.number(),
  createdAt: z.number(),
});
const limitsSchema = z.object({ requestsPerMinute: z.number().nullable(), costCapNanoUsd: whole.nullable(), costCapPeriod: z.union([period, z.literal('')]), allowedModels: names });

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
