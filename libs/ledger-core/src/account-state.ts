/**
 * What is counted of one account: settled totals, live holds, finished charges, rate windows. Explicit and changed in
 * place by `admission.ts` and `settlement.ts`; the Redis store runs the same steps as scripts.
 */
import { LiveMap } from '@signalbox/kernel/live-map';
import { copyBucket, NO_BUCKET, readBucket, tallyOf, type Bucket, type Buckets, type Scope } from './buckets.js';
import { IdSet } from './id-set.js';
import { periodsAt, qualifiedPeriodId, type CountedPeriods, type PeriodKind, type Periods } from './periods.js';
import { MINUTE_WINDOW, SECOND_WINDOW, type RateWindow } from './rate-window.js';

/** A hold that was not dispatched ends after this. */
export const LEASE_MS = 30_000;
/** Ids of ended requests are remembered for one to two generations. */
export const ENDED_GENERATION_MS = 600_000;
/** Ended leases are looked for at most this often. */
export const SWEEP_INTERVAL_MS = 1_000;
/** Periods long gone and rates at rest are looked for at most this often: that look goes through all that is known of the account. */
export const FORGET_INTERVAL_MS = 3_600_000;
/** Settled weeks and months that ended before this long ago are forgotten; the ledger keeps them. */
export const BUCKET_MEMORY_MS = 40 * 86_400_000;
/** As much for days, which are most of all buckets. A clock that went ahead by less and back again finds today still counted. */
export const DAY_MEMORY_MS = 7 * 86_400_000;
/** `routed`: tokens of both kinds, as the plan's allotment and overage count them; `byok`: of those the ones over the account's own credentials. */
export type Meter = 'charge' | 'routed' | 'byok';

/** A limit that refuses: what a scope may use of a meter in a period. */
export interface Wall {
  readonly scope: Scope;
  readonly period: PeriodKind;
  readonly meter: Meter;
  /** Nano-USD or tokens, 0 to 9e15. */
  readonly limit: bigint;
}

export interface Hold {
  amount: bigint;
  tokens: bigint;
  readonly byok: boolean;
  dispatched: boolean;
  /** Ends the hold unless it is dispatched; each heartbeat moves it. */
  leaseEndMs: number;
  readonly keyId: string;
  readonly periods: Periods;
  readonly walls: readonly Wall[];
  /** Whose log the request stands in, as far as it was told; empty = nobody's yet. */
  writer: string;
}

export interface FinishedCharge {
  readonly charge: bigint;
  readonly tokens: bigint;
  readonly byok: boolean;
  readonly keyId: string;
  /** As it counts; when it was reserved is not kept. */
  readonly periods: CountedPeriods;
  /** When it was told first. */
  readonly atMs: number;
  /** As of a hold. */
  readonly writer: string;
}

/** All of one account. Sums in `buckets` can be computed again from `holds` and `finished`. */
export interface AccountState extends Buckets {
  /** Store generation whose settled totals were asked of the ledger; empty = not yet. */
  loaded: string;
  readonly windows: Map<string, RateWindow>;
  /** Ledger sequence up to which no totals were missed. */
  totalsSeq: bigint;
  readonly holds: LiveMap<string, Hold>;
  readonly finished: LiveMap<string, FinishedCharge>;
  readonly ended: Map<number, IdSet>;
  /** Next look for ended leases; undefined = nothing can end. */
  nextSweepMs: number | undefined;
  /** Next look for what may be forgotten. */
  nextForgetMs: number;
  /** Account's own charge walls as last seen, for `show`. */
  accountWalls: readonly Wall[];
  /** Until then somebody may wait for live holds to end. */
  blockedUntilMs: number;
}

export function newAccountState(): AccountState {
  return { loaded: '', totalsSeq: 0n, windows: new Map(), buckets: new Map(), holds: new LiveMap(), finished: new LiveMap(), ended: new Map(), tallies: new Map(), nextSweepMs: undefined, nextForgetMs: 0, accountWalls: [], blockedUntilMs: 0 }; // kept: by name, period or generation; requests are in the two LiveMaps.
}

/** Where a hold counts. */
export function bucketsOfHold(state: AccountState, hold: Hold): readonly Bucket[] {
  return tallyOf(state, hold.keyId, hold.periods).buckets;
}

/** Adds to what is held wherever the hold counts; negative amounts take away. */
export function changeHeld(state: AccountState, hold: Hold, amount: bigint, tokens: bigint): void {
  for (const bucket of tallyOf(state, hold.keyId, hold.periods).buckets) {
    bucket.heldCharge += amount;
    if (hold.byok) bucket.heldByok += tokens;
    else bucket.heldTokens += tokens;
  }
}

/** Counts a finished charge wherever it belongs, or takes it out again. */
export function changeFinished(state: AccountState, item: FinishedCharge, sign: 1n | -1n): void {
  const charge = sign * item.charge;
  const tokens = sign * item.tokens;
  for (const bucket of tallyOf(state, item.keyId, item.periods).buckets) {
    bucket.finishedCharge += charge;
    if (item.byok) bucket.finishedByok += tokens;
    else bucket.finishedTokens += tokens;
  }
}

function endedGeneration(nowMs: number): number {
  return Math.floor(nowMs / ENDED_GENERATION_MS);
}

/** True for an id that was used up in the last ten minutes or more. */
export function hasEnded(state: AccountState, requestId: string, nowMs: number): boolean {
  const generation = endedGeneration(nowMs);
  return state.ended.get(generation)?.has(requestId) === true || state.ended.get(generation - 1)?.has(requestId) === true;
}

/** The id is used up from now on. */
export function markEnded(state: AccountState, requestId: string, nowMs: number): void {
  const generation = endedGeneration(nowMs);
  let ids = state.ended.get(generation);
  if (ids === undefined) {
    state.ended.set(generation, (ids = new IdSet()));
    for (const old of state.ended.keys()) if (old < generation - 1) state.ended.delete(old);
  }
  ids.add(requestId);
}

export function dropHold(state: AccountState, requestId: string, hold: Hold): void {
  changeHeld(state, hold, -hold.amount, -hold.tokens);
  state.holds.delete(requestId);
}

/** `spend`: settled and finished; `reserved`: held. Nano-USD or tokens, as the meter counts. */
export function used(bucket: Readonly<Bucket>, meter: Meter): { readonly spend: bigint; readonly reserved: bigint } {
  if (meter === 'charge') return { spend: bucket.charge + bucket.finishedCharge, reserved: bucket.heldCharge };
  const byok = { spend: bucket.byok + bucket.finishedByok, reserved: bucket.heldByok };
  return meter === 'byok' ? byok : { spend: bucket.tokens + bucket.finishedTokens + byok.spend, reserved: bucket.heldTokens + byok.reserved };
}

/** What is used of the bucket that a wall looks at. */
export function usedAt(state: AccountState, wall: Wall, keyId: string, periods: Periods): { readonly spend: bigint; readonly reserved: bigint } {
  return used(readBucket(state, wall.scope, wall.period, keyId, periods), wall.meter);
}

/**
 * Ends leases whose time has come, when it is due. Whoever held one may have been dispatched, charged and never heard of,
 * so the ledger is asked for its totals again before limits on money or tokens admit another. A lease that ends later than
 * any could is of a clock that went back, and begins anew.
 */
export function sweepLeases(state: AccountState, nowMs: number): string[] {
  const gone: string[] = [];
  const longestMs = nowMs + LEASE_MS;
  if (state.nextSweepMs === undefined || (state.nextSweepMs > nowMs && state.nextSweepMs <= longestMs)) return gone;
  let next: number | undefined;
  for (const [requestId, hold] of state.holds) {
    if (hold.dispatched) continue;
    if (hold.leaseEndMs > longestMs) hold.leaseEndMs = longestMs;
    if (hold.leaseEndMs <= nowMs) {
      dropHold(state, requestId, hold);
      markEnded(state, requestId, nowMs);
      state.loaded = '';
      gone.push(requestId);
    } else if (next === undefined || hold.leaseEndMs < next) next = hold.leaseEndMs;
  }
  state.nextSweepMs = next === undefined ? undefined : Math.max(next, nowMs + SWEEP_INTERVAL_MS);
  return gone;
}

/** Something is held or finished in it that the ledger has not settled. */
function isOpen(bucket: Readonly<Bucket>): boolean {
  return bucket.heldCharge !== 0n || bucket.heldTokens !== 0n || bucket.heldByok !== 0n || bucket.finishedCharge !== 0n || bucket.finishedTokens !== 0n || bucket.finishedByok !== 0n;
}

/** Everything that was counted in it has fallen out: one that is made anew is the same. */
function isOver({ head, counts }: RateWindow, nowMs: number): boolean {
  const { widthMs, slots } = counts.length === MINUTE_WINDOW.slots ? MINUTE_WINDOW : SECOND_WINDOW;
  return nowMs > (head + slots) * widthMs;
}

/** Ends leases that ran out, forgets periods long gone and rates of keys that do not call any more. Answers the requests whose holds it freed. Safe at any time. */
export function sweep(state: AccountState, nowMs: number): string[] {
  const gone = sweepLeases(state, nowMs);
  if (nowMs < state.nextForgetMs) return gone;
  state.nextForgetMs = nowMs + FORGET_INTERVAL_MS;
  const oldAt = (memoryMs: number): Periods => periodsAt(Math.max(0, nowMs - memoryMs), { anchorDay: 0 });
  const old = { ...oldAt(BUCKET_MEMORY_MS), day: oldAt(DAY_MEMORY_MS).day };
  const before = state.buckets.size;
  for (const [name, bucket] of state.buckets) {
    const [kind, id] = name.slice(name.indexOf('|') + 1).split(':');
    if ((kind !== 'day' && kind !== 'week' && kind !== 'month' && kind !== 'plan') || id === undefined || id.startsWith('p') || id >= old[kind]) continue;
    if (!isOpen(bucket)) state.buckets.delete(name);
  }
  if (state.buckets.size < before) state.tallies.clear();
  for (const [name, window] of state.windows) if (isOver(window, nowMs)) state.windows.delete(name);
  return gone;
}

export interface AccountView {
  readonly nowMs: number;
  readonly buckets: ReadonlyMap<string, Bucket>;
  /** Nano-USD left of the tightest charge limit of the account, as of its last admission; undefined = none. */
  readonly remaining: bigint | undefined;
}

/** What the tightest of the account's own charge limits leaves, live holds included, never below 0. */
export function remainingOf(buckets: ReadonlyMap<string, Bucket>, walls: readonly Wall[], periods: Periods): bigint | undefined {
  let tightest: bigint | undefined;
  for (const wall of walls) {
    const { spend, reserved } = used(buckets.get(`account|${qualifiedPeriodId(wall.period, periods)}`) ?? NO_BUCKET, 'charge');
    const left = wall.limit > spend + reserved ? wall.limit - spend - reserved : 0n;
    if (tightest === undefined || left < tightest) tightest = left;
  }
  return tightest;
}

/** A picture of the account; the buckets are copies. */
export function show(state: AccountState, nowMs: number, periodSeconds?: number): AccountView {
  sweepLeases(state, nowMs);
  const periods = periodsAt(nowMs, { anchorDay: 0, periodSeconds });
  const buckets = new Map([...state.buckets].map(([name, bucket]) => [name, copyBucket(bucket)]));
  return { nowMs, buckets, remaining: remainingOf(buckets, state.accountWalls, periods) };
}
