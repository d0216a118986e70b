/** Limits of a key while they are edited: what stands in the fields, letter for letter. */
import { Decimal } from './exact-json.js';
import { decimalOf, nanoOf } from './money.js';
import type { Cap, CapPeriod, KeyRecord } from './types.js';

export const CAP_PERIODS: readonly (readonly [CapPeriod, string])[] = [['day', 'A day'], ['week', 'A week'], ['month', 'A month'], ['total', 'In all']];
const CAP_USD_MAX = 9_000_000;
const RATE_MAX = 10_000_000;

export interface LimitsDraft {
  /** Amounts of US dollars as decimal text; '' = no cap for that period. */
  readonly caps: Readonly<Record<CapPeriod, string>>;
  /** Requests a minute; '' = those of the account. */
  readonly rate: string;
  /** None = all that the account may use. */
  readonly models: readonly string[];
}

export const NO_LIMITS: LimitsDraft = { caps: { day: '', week: '', month: '', total: '' }, rate: '', models: [] };

/** Every cap: the record lists them where there are several, and otherwise tells the only one. */
export function capsOf({ cost_cap_usd: capUsd, cost_cap_period: period, cost_caps: caps }: KeyRecord['limits']): readonly Cap[] {
  return caps ?? (capUsd === null || period === null ? [] : [{ cap_usd: capUsd, period }]);
}

export function draftOf(limits: KeyRecord['limits']): LimitsDraft {
  const caps = Object.fromEntries(capsOf(limits).map(({ cap_usd: capUsd, period }) => [period, decimalOf(nanoOf(capUsd))]));
  return { caps: { ...NO_LIMITS.caps, ...caps }, rate: limits.requests_per_minute === null ? '' : String(limits.requests_per_minute), models: limits.allowed_models ?? [] };
}

/** Nano-USD of what was typed; undefined for what is no amount that a cap can have. */
function typedNano(text: string): bigint | undefined {
  const match = /^(\d{1,7})(?:\.(\d{1,9}))?$/.exec(text.trim());
  if (match === null) return undefined;
  const nano = BigInt(`${match[1] ?? ''}${(match[2] ?? '').padEnd(9, '0')}`);
  return nano <= BigInt(CAP_USD_MAX) * 1_000_000_000n ? nano : undefined;
}

/** What is wrong with an amount in words; undefined where nothing is. */
export function amountProblem(text: string): string | undefined {
  return text.trim() === '' || typedNano(text) !== undefined ? undefined : 'An amount such as 2.50, at most 9000000, with at most nine decimals.';
}

export function rateProblem(text: string): string | undefined {
  const rate = text.trim();
  return rate === '' || (/^\d{1,8}$/.test(rate) && Number(rate) >= 1 && Number(rate) <= RATE_MAX) ? undefined : 'A whole number from 1 to 10000000.';
}

export function isWellFormed({ caps, rate }: LimitsDraft): boolean {
  return Object.values(caps).every((text) => amountProblem(text) === undefined) && rateProblem(rate) === undefined;
}

/** `limits` as the interface takes them, for `exactJson`; of a draft that is well formed. An empty field is null, which takes the limit off a key that has it. */
export function limitsBody({ caps, rate, models }: LimitsDraft): object {
  const costCaps = CAP_PERIODS.flatMap(([period]) => {
    const nano = typedNano(caps[period]);
    return nano === undefined ? [] : [{ cap_usd: new Decimal(decimalOf(nano)), period }];
  });
  return { cost_caps: costCaps.length === 0 ? null : costCaps, requests_per_minute: rate.trim() === '' ? null : Number(rate), allowed_models: models.length === 0 ? null : models };
}

/** However they are written. */
export function isSameLimits(one: LimitsDraft, other: LimitsDraft): boolean {
  const told = ({ caps, rate, models }: LimitsDraft): string => JSON.stringify([CAP_PERIODS.map(([period]) => String(typedNano(caps[period]) ?? caps[period].trim())), rate.trim() === '' ? '' : Number(rate), [...models].sort()]);
  return told(one) === told(other);
}
