/** Caps of a key as they are shown. */
import { formatUsd } from './money.js';
import type { Cap, CapPeriod, KeyRecord } from './types.js';

const WORDS: Readonly<Record<CapPeriod, string>> = { day: 'a day', week: 'a week', month: 'a month', total: 'in all' };

/** Every cap: the record lists them where there are several, and otherwise tells the only one. */
export function capLines({ cost_cap_usd: capUsd, cost_cap_period: period, cost_caps: caps }: KeyRecord['limits']): readonly string[] {
  const only: readonly Cap[] = capUsd === null || period === null ? [] : [{ cap_usd: capUsd, period }];
  return (caps ?? only).map((cap) => `${formatUsd(cap.cap_usd)} ${WORDS[cap.period]}`);
}
