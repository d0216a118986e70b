/**
 * Admission of a request, and the life of its hold: rates, limits, growth, release.
 * Every function is an idempotent upsert: repeated or reordered calls end in the same state.
 */
import { Fault } from '@signalbox/kernel/fault';
import { CAP_NANO_USD_MAX } from '@signalbox/kernel/money';
import { holdOf, type Draw } from './advance.js';
import { changeHeld, dropHold, hasEnded, LEASE_MS, markEnded, sweepLeases, used, usedAt, type AccountState, type Hold, type Wall } from './account-state.js';
import { readBucket } from './buckets.js';
import { periodsAt, type Periods } from './periods.js';
import { addToWindow, advanceWindow, drainMs, emptyWindow, MINUTE_WINDOW, SECOND_WINDOW, type RateWindow, type WindowShape } from './rate-window.js';

/** What a caller blocked by live holds should wait. */
const BLOCKED_RETRY_MS = 1_000;
/** After an admission was blocked by live holds, those that end are worth a notice for so long: callers wait 2 s at most. */
export const BLOCKED_NOTICE_MS = 2_500;
export type Counter = 'chat' | 'control';
/** Names of the rate windows. */
const MINUTE_GATES: Readonly<Record<Counter, string>> = { chat: 'm:chat', control: 'm:control' };
const SECOND_GATES: Readonly<Record<Counter, string>> = { chat: 's:chat', control: 's:control' };

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
  /** Room for requests to come: it waits for nobody, and stands behind whoever waits for live holds to end. */
  readonly isAdvance?: boolean;
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
  /** Of them those over the account's own credentials, where the request runs on one; else 0. */
  readonly planByokTokens: bigint;
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

/** Amounts are doubles in Redis Lua: throws a Fault `bad_message` outside of 0 to 9e15. */
export function checkAmount(amount: bigint): bigint {
  if (amount < 0n || amount > CAP_NANO_USD_MAX) throw new Fault('bad_message', 'an amount is negative or above 9e15');
  return amount;
}

const NO_WALLS: readonly Wall[] = [];
const NO_ROOM: Room = { charge: undefined, tokens: undefined };

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

const NOTHING_USED = { spend: 0n, reserved: 0n } as const;

function verdict(state: AccountState, command: AdmitCommand, gates: Gates, nowMs: number, decision: AdmitDecision, periods: Periods, retryAfterMs: number, held: bigint, heldTokens: bigint, wall?: AdmitVerdict['wall']): AdmitVerdict {
  const plan = readBucket(state, 'account', 'plan', command.keyId, periods);
  const { spend, reserved } = used(plan, 'routed');
  const own = command.byok ? used(plan, 'byok') : NOTHING_USED;
  const room = decision === 'admitted' ? roomAt(state, command, periods) : NO_ROOM;
  return { decision, retryAfterMs, wall, held, heldTokens, room, rate: rateFigures(gates.perMinute, gates.keyPerMinute, nowMs), planTokens: spend + reserved, planByokTokens: own.spend + own.reserved, periods };
}

function count(item: Gate | undefined): void {
  if (item !== undefined) addToWindow(item.window, item.shape);
}

/**
 * Decides and counts one request at `nowMs`, once per request id. A refusal counts nothing.
 * `generation` names the store's present epoch: totals loaded in an earlier one do not count.
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
  const isAdvance = command.isAdvance === true;
  if (isAdvance && nowMs < state.blockedUntilMs) return verdict(state, command, gates, nowMs, 'blocked', periods, BLOCKED_RETRY_MS, 0n, 0n);

  if (perSecond !== undefined && isFull(perSecond)) return verdict(state, command, gates, nowMs, 'burst', periods, waitAt(perSecond, nowMs), 0n, 0n);
  if (perMinute !== undefined && isFull(perMinute)) return verdict(state, command, gates, nowMs, 'rate', periods, waitAt(perMinute, nowMs), 0n, 0n);
  if (keyPerMinute !== undefined && isFull(keyPerMinute)) return verdict(state, command, gates, nowMs, 'rate', periods, waitAt(keyPerMinute, nowMs), 0n, 0n);
  const { held, heldTokens, stop } = meetWalls(state, command, periods);
  if (stop !== undefined) {
    if (stop.decision === 'blocked' && !isAdvance) state.blockedUntilMs = nowMs + BLOCKED_NOTICE_MS;
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
export function release(state: AccountState, requestId: string, nowMs: number, draw?: Draw): boolean {
  const hold = holdOf(state, requestId, draw, nowMs);
  if (hold?.dispatched === true || state.finished.has(requestId)) return false;
  if (hold !== undefined) dropHold(state, requestId, hold);
  markEnded(state, requestId, nowMs);
  return hold !== undefined && nowMs < state.blockedUntilMs;
}

/** A worker is about to begin: the hold's lease begins anew, as one that may still come to nothing. False = there is none, and none is made. */
export function confirm(state: AccountState, requestId: string, nowMs: number, draw?: Draw): boolean {
  const hold = holdOf(state, requestId, draw, nowMs);
  if (hold === undefined) return false;
  hold.leaseEndMs = nowMs + LEASE_MS;
  if (!hold.dispatched) state.nextSweepMs ??= hold.leaseEndMs;
  return true;
}

/**
 * A worker has the request: its hold no longer ends by time and grows to the given amounts, if the limits of
 * its admission allow, beside all others. How much it holds already says nothing: that may be what an attempt before, or
 * one beside, is known to have cost. What is not held does not grow: its limits are not known, whether it is over or was lost.
 * False = the growth was refused.
 */
export function heartbeat(state: AccountState, requestId: string, toAmount: bigint, toTokens: bigint, nowMs: number, writer = '', draw?: Draw): boolean {
  const hold = holdOf(state, requestId, draw, nowMs);
  if (hold === undefined) return toAmount === 0n && toTokens === 0n;
  hold.dispatched = true;
  if (writer !== '') hold.writer = writer;
  hold.leaseEndMs = nowMs + LEASE_MS;
  const amount = toAmount > hold.amount ? toAmount - hold.amount : 0n;
  const tokens = toTokens > hold.tokens ? toTokens - hold.tokens : 0n;
  for (const wall of hold.walls) {
    const [asked, own] = wall.meter === 'charge' ? [toAmount, hold.amount] : [toTokens, hold.tokens];
    if (asked === 0n) continue;
    const { spend, reserved } = usedAt(state, wall, hold.keyId, hold.periods);
    if (spend + reserved - own + asked > wall.limit) return false;
  }
  if (amount === 0n && tokens === 0n) return true;
  hold.amount += amount;
  hold.tokens += tokens;
  changeHeld(state, hold, amount, tokens);
  return true;
}
