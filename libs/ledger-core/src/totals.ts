/** Which totals a charge moves: the account's and the key's, of each period it was reserved in, and of all time. */

/** Period ids as fixed at admission; an empty one is not counted. */
export interface ChargePeriods {
  readonly day: string;
  readonly week: string;
  readonly month: string;
  readonly plan: string;
}

export interface TotalDelta {
  /** `account`, or a key id. */
  readonly scope: string;
  /** `day:2026-11-21`, `week:…`, `month:…`, `plan:…` or `total`. */
  readonly periodId: string;
  readonly chargeNanoUsd: bigint;
  readonly tokens: bigint;
  readonly byokTokens: bigint;
}

const ACCOUNT_SCOPE = 'account';

/** The prefixed ids of the periods that a charge counts in, `total` last. */
function periodIdsOf(periods: ChargePeriods): readonly string[] {
  const ids: string[] = [];
  for (const name of ['day', 'week', 'month', 'plan'] as const) if (periods[name] !== '') ids.push(`${name}:${periods[name]}`);
  ids.push('total');
  return ids;
}

/** What a charge or an adjustment adds (it may be negative) to each total it counts in. An empty key id has no scope of its own. */
export function totalDeltas(change: { readonly keyId: string; readonly periods: ChargePeriods; readonly chargeNanoUsd: bigint; readonly tokens: bigint; readonly byokTokens: bigint }): readonly TotalDelta[] {
  const { keyId, periods, chargeNanoUsd, tokens, byokTokens } = change;
  const scopes = keyId === '' ? [ACCOUNT_SCOPE] : [ACCOUNT_SCOPE, keyId];
  return scopes.flatMap((scope) => periodIdsOf(periods).map((periodId) => ({ scope, periodId, chargeNanoUsd, tokens, byokTokens })));
}

/** Sums differences by scope and period; order of the result is that of first appearance. */
export function sumDeltas(deltas: readonly TotalDelta[]): readonly TotalDelta[] {
  const sums = new Map<string, TotalDelta>();
  for (const delta of deltas) {
    const key = `${delta.scope}\n${delta.periodId}`;
    const known = sums.get(key);
    sums.set(
      key,
      known === undefined
        ? delta
        : { ...known, chargeNanoUsd: known.chargeNanoUsd + delta.chargeNanoUsd, tokens: known.tokens + delta.tokens, byokTokens: known.byokTokens + delta.byokTokens },
    );
  }
  return [...sums.values()];
}
