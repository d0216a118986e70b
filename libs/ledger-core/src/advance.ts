/**
 * Advances: a hold that edge takes for many requests at once, as an ordinary one, and serves them from. The first message
 * that names such a request moves what it was served with out of the advance and into a hold of its own, so that the two
 * together never hold less than what the limits were found to allow, and each nano-dollar of it is held once.
 */
import { changeHeld, hasEnded, markEnded, type AccountState, type Hold } from './account-state.js';

/** What a request was served with; the same in every message that names it. */
export interface Draw {
  /** Under which the advance was admitted. */
  readonly advanceId: string;
  /** Nano-USD, 0 to 9e15. */
  readonly amount: bigint;
  readonly tokens: bigint;
}

/** Marks of requests that the ledger named before anybody else did: what they drew is still in the advance, or was taken out of it since. */
const undrawn = (requestId: string): string => `${requestId} undrawn`;
const drawnLate = (requestId: string): string => `${requestId} drawn`;

/** The ledger names a request of which nothing is known here. */
export function markUnmet(state: AccountState, requestId: string, nowMs: number): void {
  if (!hasEnded(state, requestId, nowMs)) markEnded(state, undrawn(requestId), nowMs);
}

/**
 * The hold of a request, drawn from its advance where it has none yet. Undefined: it is over, or neither it nor its advance
 * is held. A hold that was drawn ends as its advance would, unless it is dispatched. Of a request that was over before it
 * was drawn, what it drew is freed. An advance that is used up is over.
 */
export function holdOf(state: AccountState, requestId: string, draw: Draw | undefined, nowMs: number): Hold | undefined {
  const known = state.holds.get(requestId);
  if (known !== undefined || draw === undefined) return known;
  const advance = state.holds.get(draw.advanceId);
  if (advance === undefined || state.finished.has(requestId)) return undefined;
  const isOver = hasEnded(state, requestId, nowMs);
  if (isOver && (!hasEnded(state, undrawn(requestId), nowMs) || hasEnded(state, drawnLate(requestId), nowMs))) return undefined;
  const amount = draw.amount < advance.amount ? draw.amount : advance.amount;
  const tokens = draw.tokens < advance.tokens ? draw.tokens : advance.tokens;
  advance.amount -= amount;
  advance.tokens -= tokens;
  if (advance.amount === 0n && advance.tokens === 0n) {
    state.holds.delete(draw.advanceId);
    markEnded(state, draw.advanceId, nowMs);
  }
  if (isOver) {
    changeHeld(state, advance, -amount, -tokens);
    markEnded(state, drawnLate(requestId), nowMs);
    return undefined;
  }
  const { byok, leaseEndMs, keyId, periods, walls } = advance;
  const hold: Hold = { amount: draw.amount, tokens: draw.tokens, byok, dispatched: false, leaseEndMs, keyId, periods, walls, writer: '' };
  changeHeld(state, hold, hold.amount - amount, hold.tokens - tokens);
  state.holds.set(requestId, hold);
  state.nextSweepMs ??= leaseEndMs;
  return hold;
}
