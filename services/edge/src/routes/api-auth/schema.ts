/** Bodies of /api/auth, and keys as clients see them. */
import type { CostCapSetting, CostCapSetting__Output, Key__Output, KeyLimits } from '@signalbox/contracts/accounts';
import { isBlank } from '@signalbox/kernel/blank';
import { CAP_NANO_USD_MAX, usdNumberToNano } from '@signalbox/kernel/money';
import { z } from 'zod';
import { usd } from './exact-json.js';
import { strictFields } from '../strict-fields.js';

/** Ten years in seconds. */
const EXPIRES_IN_MAX = 315_360_000;
export const GRACE_SECONDS_MAX = 2_592_000;

/** An amount in US dollars, as nano-USD. */
export const amount = z.number().transform((value, context) => {
  try {
    const nano = usdNumberToNano(value);
    if (nano >= 0n && nano <= CAP_NANO_USD_MAX) return nano;
  } catch {
    // Reported below.
  }
  context.addIssue({ code: 'custom', message: 'must be an amount of US dollars from 0 to 9000000 with at most nine decimals' });
  return z.NEVER;
});

export const capPeriod = z.enum(['day', 'week', 'month', 'total']);

/** Caps of different periods hold at the same time. */
export const costCaps = z
  .array(strictFields({ cap_usd: amount, period: capPeriod }))
  .max(4)
  .refine((caps) => new Set(caps.map((cap) => cap.period)).size === caps.length, 'must name each period once')
  .transform((caps): CostCapSetting[] => caps.map((cap) => ({ capNanoUsd: cap.cap_usd.toString(), period: cap.period })));

/** Caps for `exactJson`. */
export function capBodies(caps: readonly CostCapSetting__Output[]): object[] {
  return caps.map((cap) => ({ cap_usd: usd(cap.capNanoUsd), period: cap.period }));
}

const LIMIT_NAMES = ['requestsPerMinute', 'costCaps', 'allowedModels'] as const;
/** A limit, as accounts names it. */
export type LimitName = (typeof LIMIT_NAMES)[number];

/** An empty list is refused: it would read as "nothing", but an absent list means "no restriction". */
const EMPTY = 'must not be empty; leave it out for no restriction of its own';

export const isAbsent = (value: unknown): value is null | undefined => value === null || value === undefined;

const limitFields = strictFields({
    requests_per_minute: z.number().int().min(1).max(10_000_000).nullish(),
    cost_cap_usd: amount.nullish(),
    cost_cap_period: capPeriod.nullish(),
    cost_caps: costCaps.nullish(),
    allowed_models: z.array(z.string().min(1).max(200)).min(1, EMPTY).max(200).nullish(),
  })
  .check(({ value, issues }) => {
    const wrong = (path: string, message: string): void => void issues.push({ code: 'custom', input: value, path: [path], message });
    if (isAbsent(value.cost_cap_usd) && !isAbsent(value.cost_cap_period)) wrong('cost_cap_usd', 'is required with cost_cap_period');
    if (!isAbsent(value.cost_cap_usd) && isAbsent(value.cost_cap_period)) wrong('cost_cap_period', 'is required with cost_cap_usd');
    const isTwice = !isAbsent(value.cost_caps) && value.cost_caps.length > 0 && !isAbsent(value.cost_cap_usd);
    if (isTwice && !value.cost_caps?.some((cap) => cap.period === value.cost_cap_period && cap.capNanoUsd === value.cost_cap_usd?.toString())) wrong('cost_caps', 'must hold the cap of cost_cap_usd and cost_cap_period, or stand alone');
  });

type GivenLimits = z.infer<typeof limitFields>;

function keyLimits(given: GivenLimits): KeyLimits {
  return { ...(isAbsent(given.requests_per_minute) ? {} : { requestsPerMinute: given.requests_per_minute }), costCaps: capsOf(given), allowedModels: given.allowed_models ?? [] };
}

function capsOf(given: GivenLimits): CostCapSetting[] {
  if (!isAbsent(given.cost_caps) && given.cost_caps.length > 0) return given.cost_caps;
  return isAbsent(given.cost_cap_usd) || isAbsent(given.cost_cap_period) ? [] : [{ capNanoUsd: given.cost_cap_usd.toString(), period: given.cost_cap_period }];
}

/** Names of the limits that a change gives, null included; the caps are one limit. */
function namesOf(given: GivenLimits): LimitName[] {
  const named: Record<LimitName, boolean> = {
    requestsPerMinute: given.requests_per_minute !== undefined,
    costCaps: given.cost_caps !== undefined || given.cost_cap_usd !== undefined,
    allowedModels: given.allowed_models !== undefined,
  };
  return LIMIT_NAMES.filter((each) => named[each]);
}

/** `names` of `limits` in place of those in `before`. */
export function limitsWith(before: KeyLimits | null, limits: KeyLimits, names: readonly LimitName[]): KeyLimits {
  const from = (each: LimitName): KeyLimits => (names.includes(each) ? limits : (before ?? {}));
  const { requestsPerMinute } = from('requestsPerMinute');
  return { ...(requestsPerMinute === undefined ? {} : { requestsPerMinute }), costCaps: from('costCaps').costCaps ?? [], allowedModels: from('allowedModels').allowedModels ?? [] };
}

const name = z.string().refine((text) => [...text].length >= 1 && [...text].length <= 100, 'must have 1 to 100 characters').refine((text) => !isBlank(text), 'must not be blank');

/** Unknown fields are refused: a misspelt restriction would otherwise give a key without it. */
export const createSchema = strictFields({ name, expires_in: z.number().int().min(1).max(EXPIRES_IN_MAX).nullish(), scopes: z.array(z.string()).min(1, EMPTY).max(20).nullish(), limits: limitFields.transform(keyLimits).nullish() }, { limits: limitFields });
/** Null leaves the name and the state unchanged, and removes all limits. Within `limits`, absent ones stay and null removes one. */
export const updateSchema = strictFields({ name: name.nullish(), disabled: z.boolean().nullish(), limits: limitFields.transform((given) => ({ limits: keyLimits(given), limitNames: namesOf(given) })).nullish() }, { limits: limitFields });
export const rotateSchema = strictFields({ grace_seconds: z.number().int().min(0).max(GRACE_SECONDS_MAX).nullish() });

const seconds = (text: string | undefined): number | null => (text === undefined ? null : Number(text));

/** A key's record for `exactJson`; `secret` only in the answer that creates it. */
export function keyBody(key: Key__Output, secret?: string): object {
  return {
    id: key.id,
    object: 'api_key',
    name: key.name,
    key: secret,
    prefix: key.prefix,
    status: key.status,
    scopes: key.scopes,
    created_at: Number(key.createdAt),
    expires_at: seconds(key.expiresAt),
    last_used_at: seconds(key.lastUsedAt),
    revoked_at: seconds(key.revokedAt),
    limits: {
      requests_per_minute: key.limits?.requestsPerMinute ?? null,
      cost_cap_usd: usd(key.limits?.costCapNanoUsd),
      cost_cap_period: (key.limits?.costCapPeriod ?? '') === '' ? null : key.limits?.costCapPeriod,
      // If there are several, the first one is also in the two fields above.
      cost_caps: (key.limits?.costCaps.length ?? 0) > 1 ? capBodies(key.limits?.costCaps ?? []) : undefined,
      allowed_models: (key.limits?.allowedModels ?? []).length === 0 ? null : key.limits?.allowedModels,
    },
  };
}
