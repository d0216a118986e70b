/** The sums of one account by scope and period, and a short way to those that a key's requests count in. */
import { qualifiedPeriodId, type CountedPeriods, type PeriodKind } from './periods.js';

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
  readonly periods: CountedPeriods;
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

/** Figures of 64 bits: nine buckets change with each step of a request, and a `bigint` in a field would be a new object each time. Bound: ±9.2e18. */
class Figures implements Bucket {
  private readonly figures = new BigInt64Array(10);

  get seq(): bigint {
    return this.figures[0] ?? 0n;
  }
  set seq(value: bigint) {
    this.figures[0] = value;
  }
  get charge(): bigint {
    return this.figures[1] ?? 0n;
  }
  set charge(value: bigint) {
    this.figures[1] = value;
  }
  get tokens(): bigint {
    return this.figures[2] ?? 0n;
  }
  set tokens(value: bigint) {
    this.figures[2] = value;
  }
  get byok(): bigint {
    return this.figures[3] ?? 0n;
  }
  set byok(value: bigint) {
    this.figures[3] = value;
  }
  get finishedCharge(): bigint {
    return this.figures[4] ?? 0n;
  }
  set finishedCharge(value: bigint) {
    this.figures[4] = value;
  }
  get finishedTokens(): bigint {
    return this.figures[5] ?? 0n;
  }
  set finishedTokens(value: bigint) {
    this.figures[5] = value;
  }
  get finishedByok(): bigint {
    return this.figures[6] ?? 0n;
  }
  set finishedByok(value: bigint) {
    this.figures[6] = value;
  }
  get heldCharge(): bigint {
    return this.figures[7] ?? 0n;
  }
  set heldCharge(value: bigint) {
    this.figures[7] = value;
  }
  get heldTokens(): bigint {
    return this.figures[8] ?? 0n;
  }
  set heldTokens(value: bigint) {
    this.figures[8] = value;
  }
  get heldByok(): bigint {
    return this.figures[9] ?? 0n;
  }
  set heldByok(value: bigint) {
    this.figures[9] = value;
  }
}

/** A picture of a bucket, which changes no more. */
export function copyBucket({ seq, charge, tokens, byok, finishedCharge, finishedTokens, finishedByok, heldCharge, heldTokens, heldByok }: Readonly<Bucket>): Bucket {
  return { seq, charge, tokens, byok, finishedCharge, finishedTokens, finishedByok, heldCharge, heldTokens, heldByok };
}

/** Read where nothing was counted yet; never written to. */
export const NO_BUCKET: Readonly<Bucket> = Object.freeze(copyBucket(new Figures()));

export function bucketOf({ buckets }: Buckets, name: string): Bucket {
  let bucket = buckets.get(name);
  if (bucket === undefined) buckets.set(name, (bucket = new Figures()));
  return bucket;
}

function isSamePeriods(a: CountedPeriods, b: CountedPeriods): boolean {
  return a.day === b.day && a.plan === b.plan && a.month === b.month && a.week === b.week;
}

/** Where a request counts; makes the buckets that are not there yet. */
export function tallyOf(state: Buckets, keyId: string, periods: CountedPeriods): Tally {
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
export function readBucket(state: Buckets, scope: Scope, kind: PeriodKind, keyId: string, periods: CountedPeriods): Readonly<Bucket> {
  const tally = state.tallies.get(keyId);
  if (tally !== undefined && isSamePeriods(tally.periods, periods)) {
    if (scope === 'account') return tally.account[kind];
    if (kind !== 'plan' && tally.key !== undefined) return tally.key[kind];
  }
  return state.buckets.get(`${scope === 'account' ? scope : keyId}|${qualifiedPeriodId(kind, periods)}`) ?? NO_BUCKET;
}
