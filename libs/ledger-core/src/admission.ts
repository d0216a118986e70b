/**
 * Admission of one account as a state machine: rate windows, settled totals, holds and finished charges.
 * Every function is an idempotent upsert: repeated or reordered calls end in the same state (BILLING, section 6).
 * The state is explicit and changed in place; the Redis store runs the same steps as scripts.
 */
import { Fault } from '@signalbox/kernel/fault';
import { LiveMap } from '@signalbox/kernel/live-map';
import { CAP_NANO_USD_MAX } from '@signalbox/kernel/money';
import { bucketOf, copyBucket, NO_BUCKET, readBucket, tallyOf, type Bucket, type Buckets, type Scope } from './buckets.js';
import { IdSet } from './id-set.js';
import { periodsAt, qualifiedPeriodId, type CountedPeriods, type PeriodKind, type Periods } from './periods.js';
import { addToWindow, advanceWindow, drainMs, emptyWindow, MINUTE_WINDOW, SECOND_WINDOW, type RateWindow, type WindowShape } from './rate-window.js';

/** A hold that was not dispatched ends after this (BILLING, section 3). */
export const LEASE_MS = 30_000;
/** Ids of ended requests are remembered for one to two generations. */
export const ENDED_GENERATION_MS = 600_000;
/** Ended leases are looked for at most this often. */
export const SWEEP_INTERVAL_MS = 1_000;
/** Periods long gone and rates at rest are looked for at most this often: that look goes through all that is known of the account. */
export const FORGET_INTERVAL_MS = 3_600_000;
/** What a caller blocked by live holds should wait. */
const BLOCKED_RETRY_MS = 1_000;
/** After an admission was blocked by live holds, those that end are worth a notice for so long: callers wait 2 s at most. */
export const BLOCKED_NOTICE_MS = 2_500;
/** Settled weeks and months that ended before this long ago are forgotten; the ledger keeps them. */
export const BUCKET_MEMORY_MS = 40 * 86_400_000;
/** As much for days, which are most of all buckets. A clock that went ahead by less and back again finds today still counted. */
export const DAY_MEMORY_MS = 7 * 86_400_000;

export type Counter = 'chat' | 'control';
/** Names of the rate windows. */
const MINUTE_GATES: Readonly<Record<Counter, string>> = { chat: 'm:chat', control: 'm:control' };
const SECOND_GATES: Readonly<Record<Counter, string>> = { chat: 's:chat', control: 's:control' };
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
  readonly finished: Map<string, FinishedCharge>;
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

export interface AdmitCommand {
  readonly requestId: string;
  readonly keyId: string;
  readonly counter: Counter;
  readonly amount: bigint;
  /** Least amount worth holding; 0 = indivisible. */
  readonly minAmount: bigint;
  readonly tokens: bigint;
  /** Least tokens worth holding; 0 = indivisible. */
  readonly minTokens: bigint;
  readonly byok: boolean;
  readonly requestsPerMinute: number | undefined;
  readonly burstPerSecond: number | undefined;
  readonly keyRequestsPerMinute: number | undefined;
  /** In the order in which they refuse. */
  readonly walls: readonly Wall[];
  readonly anchorDay: number;
  readonly periodSeconds: number | undefined;
  /** True when the ledger's totals must be known before an answer. */
  readonly needsTotals: boolean;
}

export type AdmitDecision = 'admitted' | 'rate' | 'burst' | 'wall' | 'blocked';

export interface RateFigures {
  readonly limit: number;
  readonly remaining: number;
  /** Milliseconds until the whole limit is free again. */
  readonly resetMs: number;
}

export interface AdmitVerdict {
  readonly decision: AdmitDecision;
  readonly retryAfterMs: number;
  readonly rate: RateFigures | undefined;
  /** Tokens of both kinds settled, finished and held in the plan period, this request included. */
  readonly planTokens: bigint;
  /** Of the wall that refused or blocked: its index in `walls`. */
  readonly wall: { readonly index: number; readonly spend: bigint; readonly reserved: bigint } | undefined;
  readonly held: bigint;
  readonly heldTokens: bigint;
  /** What the tightest wall leaves of each kind of amount, live holds not counted, this one included; undefined = no wall, or not admitted. */
  readonly room: Room;
  readonly periods: Periods;
}

export interface Room {
  /** Nano-USD. */
  readonly charge: bigint | undefined;
  readonly tokens: bigint | undefined;
}

/** `ended`: the id was used up before. `unloaded`: ask the ledger first, nothing was counted. */
export type AdmitAnswer = AdmitVerdict | 'ended' | 'unloaded';

export interface FinishCommand {
  readonly requestId: string;
  readonly charge: bigint;
  readonly tokens: bigint;
  readonly byok: boolean;
  readonly keyId: string;
  /** As admission answered; undefined = those of the hold, else of now. */
  readonly periods: Periods | undefined;
  /** Absent = as told before. */
  readonly writer?: string;
}

export interface TotalsCommand {
  readonly seq: bigint;
  readonly totals: readonly { readonly scope: string; readonly periodId: string; readonly charge: bigint; readonly tokens: bigint; readonly byok: bigint }[];
  readonly requestIds: readonly string[];
  /** Sequence of the totals told before these; 0 or absent when nobody says. */
  readonly previousSeq?: bigint;
  /** Of an answer, which is complete: `totalsSeq` before the ledger was asked. An answer below it comes from a ledger that was restored from a backup. */
  readonly knownSeq?: bigint;
}

export function newAccountState(): AccountState {
  return { loaded: '', totalsSeq: 0n, windows: new Map(), buckets: new Map(), holds: new LiveMap(), finished: new Map(), ended: new Map(), tallies: new Map(), nextSweepMs: undefined, nextForgetMs: 0, accountWalls: [], blockedUntilMs: 0 };
}

/** Amounts are doubles in Redis Lua: throws a Fault `bad_message` outside of 0 to 9e15. */
export function checkAmount(amount: bigint): bigint {
  if (amount < 0n || amount > CAP_NANO_USD_MAX) throw new Fault('bad_message', 'an amount is negative or above 9e15');
  return amount;
}

const NO_WALLS: readonly Wall[] = [];
const NO_ROOM: Room = { charge: undefined, tokens: undefined };

/** Where a hold counts. */
export function bucketsOfHold(state: AccountState, hold: Hold): readonly Bucket[] {
  return tallyOf(state, hold.keyId, hold.periods).buckets;
}

function changeHeld(state: AccountState, hold: Hold, amount: bigint, tokens: bigint): void {
  for (const bucket of tallyOf(state, hold.keyId, hold.periods).buckets) {
    bucket.heldCharge += amount;
    if (hold.byok) bucket.heldByok += tokens;
    else bucket.heldTokens += tokens;
  }
}

function changeFinished(state: AccountState, item: FinishedCharge, sign: 1n | -1n): void {
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

function markEnded(state: AccountState, requestId: string, nowMs: number): void {
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

function used(bucket: Readonly<Bucket>, meter: Meter): { readonly spend: bigint; readonly reserved: bigint } {
  if (meter === 'charge') return { spend: bucket.charge + bucket.finishedCharge, reserved: bucket.heldCharge };
  const byok = { spend: bucket.byok + bucket.finishedByok, reserved: bucket.heldByok };
  return meter === 'byok' ? byok : { spend: bucket.tokens + bucket.finishedTokens + byok.spend, reserved: bucket.heldTokens + byok.reserved };
}

function usedAt(state: AccountState, wall: Wall, keyId: string, periods: Periods): { readonly spend: bigint; readonly reserved: bigint } {
  return used(readBucket(state, wall.scope, wall.period, keyId, periods), wall.meter);
}

/**
 * Ends leases whose time has come, when it is due. Whoever held one may have been dispatched, charged and never heard of,
 * so the ledger is asked for its totals again before limits on money or tokens admit another.
 */
function sweepLeases(state: AccountState, nowMs: number): string[] {
  const gone: string[] = [];
  if (state.nextSweepMs === undefined || state.nextSweepMs > nowMs) return gone;
  let next: number | undefined;
  for (const [requestId, hold] of state.holds) {
    if (hold.dispatched) continue;
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

interface Gate {
  readonly window: RateWindow;
  readonly shape: WindowShape;
  readonly limit: number;
}

function gate(state: AccountState, name: string, shape: WindowShape, limit: number | undefined, nowMs: number): Gate | undefined {
  if (limit === undefined) return undefined;
  let window = state.windows.get(name);
  if (window === undefined) state.windows.set(name, (window = emptyWindow(shape, nowMs)));
  advanceWindow(window, shape, nowMs);
  return { window, shape, limit };
}

/** The figures of whichever of both gates has less left. */
function rateFigures(first: Gate | undefined, second: Gate | undefined, nowMs: number): RateFigures | undefined {
  const tightest = first === undefined || (second !== undefined && remainingAt(second) < remainingAt(first)) ? second : first;
  return tightest === undefined ? undefined : { limit: tightest.limit, remaining: remainingAt(tightest), resetMs: drainMs(tightest.window, tightest.shape, 0, nowMs) };
}

function remainingAt({ limit, window }: Gate): number {
  return Math.max(0, limit - window.sum);
}

function isFull({ limit, window }: Gate): boolean {
  return window.sum >= limit;
}

/** Milliseconds until the gate lets one request pass. */
function waitAt({ limit, window, shape }: Gate, nowMs: number): number {
  return drainMs(window, shape, Math.max(0, limit - 1), nowMs);
}

/** True for a wall that the request's own amounts can meet. */
function applies(wall: Wall, command: AdmitCommand): boolean {
  return wall.meter === 'charge' ? command.amount > 0n : command.tokens > 0n;
}

interface WallsAnswer {
  /** What is held: all that was asked, or as much as the walls leave of a divisible amount. */
  readonly held: bigint;
  readonly heldTokens: bigint;
  readonly stop: { readonly decision: 'wall' | 'blocked'; readonly wall: NonNullable<AdmitVerdict['wall']> } | undefined;
}

function leastOf(amount: bigint, least: bigint): bigint {
  return least > 0n && least < amount ? least : amount;
}

function stopAt(decision: 'wall' | 'blocked', index: number, spend: bigint, reserved: bigint): WallsAnswer {
  return { held: 0n, heldTokens: 0n, stop: { decision, wall: { index, spend, reserved } } };
}

/** A wall refuses by what is settled and finished; one that only live holds would break blocks. */
function meetWalls(state: AccountState, command: AdmitCommand, periods: Periods): WallsAnswer {
  const { walls, keyId } = command;
  if (walls.length === 0) return { held: command.amount, heldTokens: command.tokens, stop: undefined };
  const leastCharge = leastOf(command.amount, command.minAmount);
  const leastTokens = leastOf(command.tokens, command.minTokens);
  let held = command.amount;
  let heldTokens = command.tokens;
  for (const [index, wall] of walls.entries()) {
    if (!applies(wall, command)) continue;
    const { spend, reserved } = usedAt(state, wall, keyId, periods);
    const isCharge = wall.meter === 'charge';
    if (spend + (isCharge ? leastCharge : leastTokens) > wall.limit) return stopAt('wall', index, spend, reserved);
    const left = wall.limit - spend;
    if (isCharge && held > left) held = left;
    else if (!isCharge && heldTokens > left) heldTokens = left;
  }
  for (const [index, wall] of walls.entries()) {
    if (!applies(wall, command)) continue;
    const { spend, reserved } = usedAt(state, wall, keyId, periods);
    if (spend + reserved + (wall.meter === 'charge' ? held : heldTokens) > wall.limit) return stopAt('blocked', index, spend, reserved);
  }
  return { held, heldTokens, stop: undefined };
}

/** What the walls leave when live holds are not counted, never below 0. */
function roomAt(state: AccountState, command: AdmitCommand, periods: Periods): Room {
  if (command.walls.length === 0) return NO_ROOM;
  let charge: bigint | undefined;
  let tokens: bigint | undefined;
  for (const wall of command.walls) {
    if (!applies(wall, command)) continue;
    const { spend } = usedAt(state, wall, command.keyId, periods);
    const left = wall.limit > spend ? wall.limit - spend : 0n;
    if (wall.meter !== 'charge') tokens = tokens === undefined || left < tokens ? left : tokens;
    else charge = charge === undefined || left < charge ? left : charge;
  }
  return { charge, tokens };
}

/** The rates that one request meets. */
interface Gates {
  readonly perMinute: Gate | undefined;
  readonly perSecond: Gate | undefined;
  readonly keyPerMinute: Gate | undefined;
}

function verdict(state: AccountState, command: AdmitCommand, gates: Gates, nowMs: number, decision: AdmitDecision, periods: Periods, retryAfterMs: number, held: bigint, heldTokens: bigint, wall?: AdmitVerdict['wall']): AdmitVerdict {
  const plan = readBucket(state, 'account', 'plan', command.keyId, periods);
  const { spend, reserved } = used(plan, 'routed');
  const room = decision === 'admitted' ? roomAt(state, command, periods) : NO_ROOM;
  return { decision, retryAfterMs, wall, held, heldTokens, room, rate: rateFigures(gates.perMinute, gates.keyPerMinute, nowMs), planTokens: spend + reserved, periods };
}

function count(item: Gate | undefined): void {
  if (item !== undefined) addToWindow(item.window, item.shape);
}

/**
 * Decides and counts one request at `nowMs`, once per request id. A refusal counts nothing.
 * `generation` names the store's present life: totals loaded in an earlier one do not count.
 */
export function admit(state: AccountState, command: AdmitCommand, generation: string, nowMs: number): AdmitAnswer {
  sweepLeases(state, nowMs);
  const { requestId, counter, keyId } = command;
  const perMinute = gate(state, MINUTE_GATES[counter], MINUTE_WINDOW, command.requestsPerMinute, nowMs);
  const perSecond = gate(state, SECOND_GATES[counter], SECOND_WINDOW, command.burstPerSecond, nowMs);
  const keyPerMinute = command.keyRequestsPerMinute === undefined ? undefined : gate(state, `${MINUTE_GATES[counter]}:${keyId}`, MINUTE_WINDOW, command.keyRequestsPerMinute, nowMs);
  const gates: Gates = { perMinute, perSecond, keyPerMinute };
  const known = state.holds.get(requestId);
  if (known !== undefined) return verdict(state, command, gates, nowMs, 'admitted', known.periods, 0, known.amount, known.tokens);
  const periods = periodsAt(nowMs, command);
  if (state.finished.has(requestId)) return 'ended';
  if (hasEnded(state, requestId, nowMs)) return counter === 'control' ? verdict(state, command, gates, nowMs, 'admitted', periods, 0, 0n, 0n) : 'ended';
  if (command.needsTotals && state.loaded !== generation) return 'unloaded';

  if (perSecond !== undefined && isFull(perSecond)) return verdict(state, command, gates, nowMs, 'burst', periods, waitAt(perSecond, nowMs), 0n, 0n);
  if (perMinute !== undefined && isFull(perMinute)) return verdict(state, command, gates, nowMs, 'rate', periods, waitAt(perMinute, nowMs), 0n, 0n);
  if (keyPerMinute !== undefined && isFull(keyPerMinute)) return verdict(state, command, gates, nowMs, 'rate', periods, waitAt(keyPerMinute, nowMs), 0n, 0n);
  const { held, heldTokens, stop } = meetWalls(state, command, periods);
  if (stop !== undefined) {
    if (stop.decision === 'blocked') state.blockedUntilMs = nowMs + BLOCKED_NOTICE_MS;
    return verdict(state, command, gates, nowMs, stop.decision, periods, stop.decision === 'blocked' ? BLOCKED_RETRY_MS : 0, 0n, 0n, stop.wall);
  }

  count(perMinute);
  count(perSecond);
  count(keyPerMinute);
  if (counter === 'control') {
    // Holds nothing: the id alone is remembered, so that a repeated call counts once.
    markEnded(state, requestId, nowMs);
    return verdict(state, command, gates, nowMs, 'admitted', periods, 0, 0n, 0n);
  }
  const hold: Hold = { amount: held, tokens: heldTokens, byok: command.byok, dispatched: false, leaseEndMs: nowMs + LEASE_MS, keyId, periods, walls: command.walls, writer: '' };
  state.holds.set(requestId, hold);
  state.nextSweepMs ??= hold.leaseEndMs;
  state.accountWalls = command.walls.length === 0 ? NO_WALLS : command.walls.filter((wall) => wall.scope === 'account' && wall.meter === 'charge');
  changeHeld(state, hold, held, heldTokens);
  return verdict(state, command, gates, nowMs, 'admitted', periods, 0, held, heldTokens);
}

/**
 * Frees the hold of a request that never was dispatched; afterwards its id is used up. No-op once dispatched or finished.
 * True = room was freed that somebody may wait for.
 */
export function release(state: AccountState, requestId: string, nowMs: number): boolean {
  const hold = state.holds.get(requestId);
  if (hold?.dispatched === true || state.finished.has(requestId)) return false;
  if (hold !== undefined) dropHold(state, requestId, hold);
  markEnded(state, requestId, nowMs);
  return hold !== undefined && nowMs < state.blockedUntilMs;
}

/**
 * A worker has the request: its hold no longer ends by time and grows to the given amounts, if the limits of
 * its admission allow. What is not held does not grow: its limits are not known, whether it is over or was lost.
 * False = the growth was refused.
 */
export function heartbeat(state: AccountState, requestId: string, toAmount: bigint, toTokens: bigint, nowMs: number, writer = ''): boolean {
  const hold = state.holds.get(requestId);
  if (hold === undefined) return toAmount === 0n && toTokens === 0n;
  hold.dispatched = true;
  if (writer !== '') hold.writer = writer;
  hold.leaseEndMs = nowMs + LEASE_MS;
  const amount = toAmount > hold.amount ? toAmount - hold.amount : 0n;
  const tokens = toTokens > hold.tokens ? toTokens - hold.tokens : 0n;
  for (const wall of hold.walls) {
    const growth = wall.meter === 'charge' ? amount : tokens;
    if (growth === 0n) continue;
    const { spend, reserved } = usedAt(state, wall, hold.keyId, hold.periods);
    if (spend + reserved + growth > wall.limit) return false;
  }
  if (amount === 0n && tokens === 0n) return true;
  hold.amount += amount;
  hold.tokens += tokens;
  changeHeld(state, hold, amount, tokens);
  return true;
}

/** The hold becomes the charge until totals name the request; a no-op when they already did. True = room was freed that somebody may wait for. */
export function finish(state: AccountState, command: FinishCommand, nowMs: number, periodSeconds?: number): boolean {
  const { requestId } = command;
  if (hasEnded(state, requestId, nowMs)) return false;
  const hold = state.holds.get(requestId);
  const before = state.finished.get(requestId);
  if (hold !== undefined) dropHold(state, requestId, hold);
  if (before !== undefined) changeFinished(state, before, -1n);
  const periods = command.periods ?? hold?.periods ?? before?.periods ?? periodsAt(nowMs, { anchorDay: 0, periodSeconds });
  // Of all that finish in the same periods one copy of those is kept.
  const kept = tallyOf(state, command.keyId, periods).periods;
  const item: FinishedCharge = { charge: command.charge, tokens: command.tokens, byok: command.byok, keyId: command.keyId, periods: kept, atMs: before?.atMs ?? nowMs, writer: command.writer || hold?.writer || before?.writer || '' };
  state.finished.set(requestId, item);
  changeFinished(state, item, 1n);
  return hold !== undefined && nowMs < state.blockedUntilMs;
}

/** Newest sequence of the ledger that is known of the account; 0 = none. */
export function totalsSeq(state: AccountState): bigint {
  return state.buckets.get('account|total')?.seq ?? 0n;
}

/** The ledger went back to `seq`: what it told up to `knownSeq` is no longer so. */
function goBack(state: AccountState, seq: bigint, knownSeq: bigint): void {
  for (const bucket of state.buckets.values()) {
    if (bucket.seq <= seq || bucket.seq > knownSeq) continue;
    bucket.seq = seq;
    bucket.charge = 0n;
    bucket.tokens = 0n;
    bucket.byok = 0n;
  }
  if (state.totalsSeq > seq && state.totalsSeq <= knownSeq) state.totalsSeq = seq;
}

/**
 * Absolute totals of the ledger: the highest sequence wins in each bucket, and the named requests are over. `loadedIn`
 * marks them as the complete answer of the ledger. True = totals told before these never arrived, or the ledger went back:
 * ask for all of them.
 */
export function applyTotals(state: AccountState, command: TotalsCommand, nowMs: number, loadedIn?: string): boolean {
  const { knownSeq } = command;
  if (knownSeq !== undefined && command.seq < knownSeq) goBack(state, command.seq, knownSeq);
  const isAnswer = loadedIn !== undefined || knownSeq !== undefined;
  let isBehind = false;
  for (const total of command.totals) {
    const bucket = bucketOf(state, `${total.scope}|${total.periodId}`);
    if (command.seq < bucket.seq) {
      isBehind = true;
      continue;
    }
    bucket.seq = command.seq;
    bucket.charge = total.charge;
    bucket.tokens = total.tokens;
    bucket.byok = total.byok;
  }
  // A ledger that was restored from a backup announces less than is known, and these requests are in none of the sums here.
  if (isBehind && !isAnswer) return true;
  for (const requestId of command.requestIds) {
    const hold = state.holds.get(requestId);
    if (hold !== undefined) dropHold(state, requestId, hold);
    const item = state.finished.get(requestId);
    if (item !== undefined) changeFinished(state, item, -1n);
    state.finished.delete(requestId);
    markEnded(state, requestId, nowMs);
  }
  if (loadedIn !== undefined) state.loaded = loadedIn;
  const hasMissed = !isAnswer && ((command.previousSeq ?? 0n) > state.totalsSeq || command.seq < state.totalsSeq);
  if (!hasMissed && command.seq > state.totalsSeq) state.totalsSeq = command.seq;
  return hasMissed;
}

/** A request that counts here and that the ledger may never hear of. */
export interface OpenRequest {
  readonly requestId: string;
  readonly keyId: string;
  /** Whose log it stands in; empty = not known. */
  readonly writer: string;
  readonly byok: boolean;
  readonly periods: CountedPeriods;
  /** What it is charged, where that was told: 0 for a hold. */
  readonly charge: bigint;
  /** As `charge`. */
  readonly tokens: bigint;
}

/** Those of the requests that count here: dispatched, or finished and not named by the ledger. */
export function describeOpen(state: AccountState, requestIds: readonly string[]): OpenRequest[] {
  return requestIds.flatMap((requestId): OpenRequest[] => {
    const hold = state.holds.get(requestId);
    const found = state.finished.get(requestId) ?? (hold?.dispatched === true ? { ...hold, charge: 0n, tokens: 0n } : undefined);
    if (found === undefined) return [];
    const { keyId, writer, byok, charge, tokens, periods: { day, week, month, plan } } = found;
    return [{ requestId, keyId, writer, byok, charge, tokens, periods: { day, week, month, plan } }];
  });
}

/** Requests, at most `limit`, that the ledger should have by now: finished for longer than `ageMs`, or dispatched and without a heartbeat for longer than a lease. */
export function overdue(state: AccountState, ageMs: number, limit: number, nowMs: number): string[] {
  const found: string[] = [];
  for (const [requestId, item] of state.finished) if (item.atMs <= nowMs - ageMs && found.length < limit) found.push(requestId);
  for (const [requestId, hold] of state.holds) if (hold.dispatched && hold.leaseEndMs <= nowMs && found.length < limit) found.push(requestId);
  return found;
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
