/**
 * The end of a request in the counters of its account: the worker's word of the charge, the ledger's totals, and what
 * neither has told yet. Idempotent upserts, as those of `admission.ts`.
 */
import { holdOf, markUnmet, type Draw } from './advance.js';
import { changeFinished, dropHold, hasEnded, LEASE_MS, markEnded, type AccountState, type FinishedCharge } from './account-state.js';
import { bucketOf, tallyOf } from './buckets.js';
import { periodsAt, type CountedPeriods, type Periods } from './periods.js';

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
  /** Of a request that was served from an advance. */
  readonly draw?: Draw | undefined;
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

/** The hold becomes the charge until totals name the request; a no-op when they already did. True = room was freed that somebody may wait for. */
export function finish(state: AccountState, command: FinishCommand, nowMs: number, periodSeconds?: number): boolean {
  const { requestId } = command;
  const hold = holdOf(state, requestId, command.draw, nowMs);
  if (hasEnded(state, requestId, nowMs)) return false;
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
    if (hold === undefined && item === undefined) markUnmet(state, requestId, nowMs);
    state.finished.delete(requestId);
    markEnded(state, requestId, nowMs);
  }
  if (loadedIn !== undefined) state.loaded = loadedIn;
  const hasMissed = !isAnswer && ((command.previousSeq ?? 0n) > state.totalsSeq || command.seq < state.totalsSeq);
  if (!hasMissed && command.seq > state.totalsSeq) state.totalsSeq = command.seq;
  return hasMissed;
}

/**
 * 45 min without a word, where a living worker tells every ten seconds of what it has under way and no request lasts longer than
 * half an hour: nobody has it any more.
 */
export const SILENT_MS = 2_700_000;

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
  /** Nothing was told of it for `SILENT_MS`. */
  readonly isSilent: boolean;
}

/** Those of the requests that count here: dispatched, or finished and not named by the ledger. */
export function describeOpen(state: AccountState, requestIds: readonly string[], nowMs: number): OpenRequest[] {
  return requestIds.flatMap((requestId): OpenRequest[] => {
    const hold = state.holds.get(requestId);
    const found = state.finished.get(requestId) ?? (hold?.dispatched === true ? { ...hold, charge: 0n, tokens: 0n, atMs: hold.leaseEndMs - LEASE_MS } : undefined);
    if (found === undefined) return [];
    const { keyId, writer, byok, charge, tokens, atMs, periods: { day, week, month, plan } } = found;
    return [{ requestId, keyId, writer, byok, charge, tokens, periods: { day, week, month, plan }, isSilent: atMs <= nowMs - SILENT_MS }];
  });
}

/**
 * Requests, at most `limit`, that the ledger should have by now: finished for longer than `ageMs`, or dispatched and without a
 * heartbeat for longer than a lease. Since when is not known of those of a time to come, before the clock went back: they are too.
 */
export function overdue(state: AccountState, ageMs: number, limit: number, nowMs: number): string[] {
  const found: string[] = [];
  for (const [requestId, item] of state.finished) if ((item.atMs <= nowMs - ageMs || item.atMs > nowMs) && found.length < limit) found.push(requestId);
  for (const [requestId, hold] of state.holds) if (hold.dispatched && (hold.leaseEndMs <= nowMs || hold.leaseEndMs > nowMs + LEASE_MS) && found.length < limit) found.push(requestId);
  return found;
}
