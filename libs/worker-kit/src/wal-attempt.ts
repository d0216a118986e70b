/** What the log knows of one attempt between its start and its last outcome. */
import type { Draw__Output } from '@signalbox/contracts/common';
import type { LiveHold } from '@signalbox/contracts/quota';
import type { Fault } from '@signalbox/kernel/fault';
import type { AttemptEvent } from './wal-events.js';
import type { EarlierRounds, ToldOutcome } from './journal.js';

export interface Told {
  readonly outcome: ToldOutcome;
  /** False when the worker concluded it by itself. */
  readonly byEdge: boolean;
  /** A later round of the request ends its hold. */
  readonly isFollowed?: boolean;
  /** Another attempt was to take its place. */
  readonly isReserve?: boolean;
}

export interface Held {
  readonly amountNanoUsd: string;
  readonly tokens: string;
}

export const NOTHING_HELD: Held = { amountNanoUsd: '0', tokens: '0' };

/** Of a request that is not asked in rounds. */
export const NO_ROUNDS: EarlierRounds = { earlierNanoUsd: 0n, earlierTokens: 0n };

export class LiveAttempt {
  readonly key: string;
  /** Its start is in the log. */
  isStarted = false;
  /** Its end is on the way to the log, or there. */
  isEnding = false;
  /** Monotonic milliseconds when its end was written; undefined until then. */
  endedAtMs: number | undefined;
  /** Monotonic milliseconds when edge last said that it goes on with the request. */
  tendedAtMs: number | undefined;
  /** The part of its records that does not change, once its start is encoded; undefined for one of an earlier process, and once its end has other cards. */
  head: Buffer | undefined;
  /** What it may come to cost, for a store of quota that has lost its hold: nano-USD and tokens as decimal text. */
  held = NOTHING_HELD;
  /** Life of quota's store that has its hold, as large as its limits were found to allow; empty = not known. */
  heldIn = '';
  /** What it was served with out of an advance; null = nothing, or a restart has forgotten it. */
  draw: Draw__Output | null = null;
  /** Told before it could be written. */
  early: Told | undefined;
  /** The outcome that is on the way to the log, or there. */
  told: Told | undefined;
  /** Settles when what was told is in the log; undefined while a kill would lose nothing. */
  telling: Promise<void> | undefined;
  /** Settles `telling`, while nothing is on the way to the log that does. */
  settleTelling: ((fault?: Fault) => void) | undefined;

  constructor(
    readonly event: AttemptEvent,
    /** Estimate, for what was delivered by a process that died. */
    readonly promptTokens: number,
    /** Number of the segment that its start is in, or of an earlier one. */
    readonly segment: number,
    /** Given for a request that is asked in rounds. */
    readonly rounds?: EarlierRounds | undefined,
  ) {
    this.key = attemptKey(event.requestId, event.attempt);
  }

  /** Makes `telling`, where none is waited for that nothing settles yet. */
  promiseTelling(): void {
    if (this.settleTelling !== undefined) return;
    this.telling = new Promise((resolve, reject) => {
      this.settleTelling = (fault) => (fault === undefined ? resolve() : reject(fault));
    });
    // Whoever told it waits for it; nobody else does.
    this.telling.catch(() => undefined);
  }

  /** What settles `telling`, for the record that is on the way to the log from now on. */
  takeTelling(): (fault?: Fault) => void {
    this.promiseTelling();
    const settle = this.settleTelling;
    this.settleTelling = undefined;
    return (fault) => settle?.(fault);
  }
}

/** Ids of requests hold no blank: the first attempt, which most have no other after, goes by its request's id. */
export function attemptKey(requestId: string, attempt: number): string {
  return attempt === 1 ? requestId : `${requestId} ${String(attempt)}`;
}

/** Its hold as quota is told of it. */
export function liveHoldOf({ event, isStarted, draw }: LiveAttempt, { amountNanoUsd, tokens }: Held): LiveHold {
  const { accountId, keyId, requestId, byok, periods } = event;
  return { accountId, keyId, requestId, amountNanoUsd: byok ? '0' : amountNanoUsd, tokens, byok, periods, started: isStarted, draw };
}

/** When the oldest of them was reserved, in milliseconds since the epoch; 0 when there is none. */
export function oldestReservationMs(attempts: Iterable<LiveAttempt>): number {
  let oldest = 0;
  for (const { event } of attempts) {
    const reservedAtMs = Number(event.periods?.reservedAtMs ?? 0) || Number(event.startedAtMs);
    if (oldest === 0 || reservedAtMs < oldest) oldest = reservedAtMs;
  }
  return oldest;
}
