/** Restores the counters of an account, if they were lost, from what workers report about its requests. */
import { holdOf, type Draw } from './advance.js';
import { bucketsOfHold, hasEnded, LEASE_MS, type AccountState, type Wall } from './account-state.js';
import type { Periods } from './periods.js';

export interface ReregisterCommand {
  readonly requestId: string;
  readonly keyId: string;
  readonly amount: bigint;
  readonly tokens: bigint;
  readonly byok: boolean;
  readonly periods: Periods;
  /** False: it may come to nothing. */
  readonly isStarted: boolean;
  /** Who tells of it; absent = nobody who has it in a log. */
  readonly writer?: string;
  /** Of a request that was served from an advance. */
  readonly draw?: Draw | undefined;
}

/** The limits of its admission are lost: a hold that was written down anew does not grow. */
export const NO_GROWTH: readonly Wall[] = [
  { scope: 'account', period: 'total', meter: 'charge', limit: 0n },
  { scope: 'account', period: 'plan', meter: 'routed', limit: 0n },
];

/** A hold in use is written down anew, or raised to what its worker knows; no limit is looked at. A no-op for requests that are over. */
export function reregister(state: AccountState, command: ReregisterCommand, nowMs: number): void {
  const { requestId, keyId, amount, tokens, byok, periods, isStarted } = command;
  if (state.finished.has(requestId) || hasEnded(state, requestId, nowMs)) return;
  let hold = holdOf(state, requestId, command.draw, nowMs);
  if (hold === undefined) {
    hold = { amount: 0n, tokens: 0n, byok, dispatched: false, leaseEndMs: nowMs, keyId, periods, walls: NO_GROWTH, writer: '' };
    state.holds.set(requestId, hold);
  }
  hold.dispatched ||= isStarted;
  if (command.writer !== undefined && command.writer !== '') hold.writer = command.writer;
  hold.leaseEndMs = nowMs + LEASE_MS;
  if (!hold.dispatched) state.nextSweepMs ??= hold.leaseEndMs;
  const moreAmount = amount > hold.amount ? amount - hold.amount : 0n;
  const moreTokens = tokens > hold.tokens ? tokens - hold.tokens : 0n;
  hold.amount += moreAmount;
  hold.tokens += moreTokens;
  for (const bucket of bucketsOfHold(state, hold)) {
    bucket.heldCharge += moreAmount;
    if (hold.byok) bucket.heldByok += moreTokens;
    else bucket.heldTokens += moreTokens;
  }
}

/** A writer as the ledger knows it. */
export interface KnownWriter {
  readonly writer: string;
  /** No log of it will be read any more. */
  readonly isLost: boolean;
  /** It has nothing to tell: all of its log is in the ledger, and it reports there before it begins anything. */
  readonly isEnded?: boolean;
}

/** The writers that have not told yet what they have under way, ascending: accounts with limits stay closed for them. */
export function unheard(writers: readonly KnownWriter[], heard: ReadonlySet<string>): readonly string[] {
  return writers.flatMap(({ writer, isLost, isEnded }) => (isLost || isEnded === true || heard.has(writer) ? [] : [writer])).sort();
}
