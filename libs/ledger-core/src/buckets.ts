/** The sums of one account by scope and period, and a short way to those that a key's requests count in. */
import { qualifiedPeriodId, type PeriodKind, type Periods } from './periods.js';

export type Scope = 'account' | 'key';

/** Tokens over the account's own credentials count as `byok` alone, never as `tokens`, from the hold to the ledger. */
export interface Bucket {
  /** Ledger sequence of the settled figures. */
  seq: bigint;
  /** Settled by the ledger, absolute. */
  charge: bigint;
  tokens: bigint;
  byok: bigint;
  /** Finished, on the way to the ledger. */
  finishedCharge: bigint;
  finishedTokens: bigint;
  finishedByok: bigint;
  /** Held by live requests. */
  heldCharge: bigint;
  heldTokens: bigint;
  heldByok: bigint;
}

/** The buckets in which every request of one key counts while its periods last. */
export interface Tally {
  readonly periods: Periods;
  readonly account: Readonly<Record<PeriodKind, Bucket>>;
  /** Of the key itself; undefined for requests without a key. */
  readonly key: Readonly<Record<Exclude<PeriodKind, 'plan'>, Bucket>> | undefined;
  /** All of them. */
  readonly buckets: readonly Bucket[];
}

export interface Buckets {
  /** By `scope|qualified period id`. */
  readonly buckets: Map<string, Bucket>;
  /** By key id: where its requests of the latest periods count. Points into `buckets`, which alone is the state. */
  readonly tallies: Map<string, Tally>;
}

function emptyBucket(): Bucket {
  return { seq: 0n, charge: 0n, tokens: 0n, byok: 0n, finishedCharge: 0n, finishedTokens: 0n, finishedByok: 0n, heldCharge: 0n, heldTokens: 0n, heldByok: 0n };
}

/** Read where nothing was counted yet; never written to. */
export const NO_BUCKET: Readonly<Bucket> = Object.freeze(emptyBucket());

export function bucketOf({ buckets }: Buckets, name: string): Bucket {
  let bucket = buckets.get(name);
  if (bucket === undefined) buckets.set(name, (bucket = emptyBucket()));
  return bucket;
}

function isSamePeriods(a: Periods, b: Periods): boolean {
  return a.day === b.day && a.plan === b.plan && a.month === b.month && a.week === b.week;
}

/** Where a request counts; makes the buckets that are not there yet. */
export function tallyOf(state: Buckets, keyId: string, periods: Periods): Tally {
  let tally = state.tallies.get(keyId);
  if (tally === undefined || !isSamePeriods(tally.periods, periods)) {
    const at = (scope: string, kind: PeriodKind): Bucket => bucketOf(state, `${scope}|${qualifiedPeriodId(kind, periods)}`);
    const account = { day: at('account', 'day'), week: at('account', 'week'), month: at('account', 'month'), plan: at('account', 'plan'), total: at('account', 'total') };
    const key = keyId === '' ? undefined : { day: at(keyId, 'day'), week: at(keyId, 'week'), month: at(keyId, 'month'), total: at(keyId, 'total') };
    tally = { periods, account, key, buckets: [...Object.values(account), ...Object.values(key ?? {})] };
    state.tallies.set(keyId, tally);
  }
  return tally;
}

/** One bucket for reading; makes none. */
export function readBucket(state: Buckets, scope: Scope, kind: PeriodKind, keyId: string, periods: Periods): Readonly<Bucket> {
  const tally = state.tallies.get(keyId);
  if (tally !== undefined && isSamePeriods(tally.periods, periods)) {
    if (scope === 'account') return tally.account[kind];
    if (kind !== 'plan' && tally.key !== undefined) return tally.key[kind];
  }
  return state.buckets.get(`${scope === 'account' ? scope : keyId}|${qualifiedPeriodId(kind, periods)}`) ?? NO_BUCKET;
}
