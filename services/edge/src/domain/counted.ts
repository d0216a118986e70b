/** An account's usage as quota counts it, compared with the limits in force now: quota itself only knows the limits of the last admission. */
import type { BucketState__Output, Limits, ShowResponse__Output } from '@signalbox/contracts/quota';
import { periodsAt, qualifiedPeriodId, type PeriodKind, type PeriodRules } from '@signalbox/ledger-core/periods';

const KINDS: Readonly<Record<string, PeriodKind>> = { DAY: 'day', WEEK: 'week', MONTH: 'month', TOTAL: 'total' };
/** The kind of a cap's period. */
export const kindOf = (period: unknown): PeriodKind => KINDS[String(period)] ?? 'total';

export const toBigint = (text: string | number | { toString(): string } | undefined): bigint => (text === undefined ? 0n : BigInt(text.toString()));
export const spentOf = (found: BucketState__Output | undefined): bigint => toBigint(found?.settledNanoUsd) + toBigint(found?.finishedNanoUsd);

export type Counted = (scope: string, kind: PeriodKind) => BucketState__Output | undefined;

/** What is counted for a scope in its period at `nowMs`; undefined = nothing. */
export function countedAt({ buckets }: ShowResponse__Output, nowMs: number, rules: PeriodRules): Counted {
  const periods = periodsAt(nowMs, rules);
  return (scope, kind) => buckets.find((one) => one.scope === scope && one.periodId === qualifiedPeriodId(kind, periods));
}

/** Nano-USD that the tightest of the account's own limits on money leaves, without what is held; at least 0; undefined = no such limit. */
export function leftNanoUsd({ caps = [], trialCreditNanoUsd: credit }: Limits, counted: Counted): bigint | undefined {
  const walls = caps.filter(({ scope }) => scope === 'account').map(({ period, capNanoUsd }) => ({ kind: kindOf(period), limit: toBigint(capNanoUsd) }));
  if (credit !== undefined) walls.push({ kind: 'total', limit: toBigint(credit) });
  let tightest: bigint | undefined;
  for (const { kind, limit } of walls) {
    const found = counted('account', kind);
    const used = spentOf(found) + toBigint(found?.reservedNanoUsd);
    const left = limit > used ? limit - used : 0n;
    if (tightest === undefined || left < tightest) tightest = left;
  }
  return tightest;
}
