/** Limits of a key as they are shown. */
import { formatCount } from './format.js';
import { capsOf } from './key-limits.js';
import { formatUsd } from './money.js';
import type { CapPeriod, KeyRecord } from './types.js';

const WORDS: Readonly<Record<CapPeriod, string>> = { day: 'a day', week: 'a week', month: 'a month', total: 'in all' };

/** Models that are named one by one. */
const NAMED_MAX = 3;

/** Every limit that a key has of its own, a line each. */
export function limitLines(limits: KeyRecord['limits']): readonly string[] {
  const { requests_per_minute: rate, allowed_models: models } = limits;
  const names = models === null ? [] : models.length > NAMED_MAX ? [`only ${models.length} models`] : [`only ${models.join(', ')}`];
  return [...capLines(limits), ...(rate === null ? [] : [`${formatCount(rate)} request${rate === 1 ? '' : 's'} a minute`]), ...names];
}

export function capLines(limits: KeyRecord['limits']): readonly string[] {
  return capsOf(limits).map((cap) => `${formatUsd(cap.cap_usd)} ${WORDS[cap.period]}`);
}
