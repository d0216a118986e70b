/** What the log knows about one attempt between its start and its last outcome. */
import type { Draw__Output } from '@signalbox/contracts/common';
import type { LiveHold } from '@signalbox/contracts/quota';
import type { Fault } from '@signalbox/kernel/fault';
import type { AttemptEvent } from './wal-events.js';
import type { EarlierRounds, ToldOutcome } from './journal.js';

export interface Told {
  readonly outcome: ToldOutcome;
  /** False if the worker concluded the outcome by itself. */
  readonly byEdge: boolean;
  /** A later round of the request will end its hold. */
  readonly isFollowed?: boolean;
  /** The answer was kept in reserve while another attempt was made. */
  readonly isReserve?: boolean;
}

export interface Held {
  readonly amountNanoUsd: string;
  readonly tokens: string;
}

export const NOTHING_HELD: Held = { amountNanoUsd: '0', tokens: '0' };

/** For a request that is not asked in rounds. */
export const NO_ROUNDS: EarlierRounds = { earlierNanoUsd: 0n, earlierTokens: 0n };

export class LiveAttempt {
  readonly key: string;
  /** Its start is in the log. */
  isStarted = false;
  /** Its end is in the log or being written. */
  isEnding = false;
  /** Monotonic milliseconds when its end was written; undefined until then. */
  endedAtMs: number | undefined;
  /** Monotonic milliseconds when edge last said that it goes on with the request. */
  tendedAtMs: number | undefined;
  /** The encoded part that its start and end records share, once the start is encoded. Undefined for an attempt of an earlier process, and if the end has other price cards. */
  head: Buffer | undefined;
  /** What it may cost at most, to be reported if quota's store loses its hold: nano-USD and tokens as decimal text. */
  held = NOTHING_HELD;
  /** Life of quota's store that has its hold, within the account's limits; empty = unknown. */
  heldIn = '';
  /** The part of an advance that served the request; null = none, or lost in a restart. */
  draw: Draw__Output | null = null;
  /** Outcome that was told before it could be written. */
  early: Told | undefined;
  /** The outcome that is in the log or being written. */
  told: Told | undefined;
  /** Settles when the told outcome is in the log; undefined while a kill would lose nothing. */
  telling: Promise<void> | undefined;
  /** Settles `telling`; undefined once a record that is being written will do so. */
  settleTelling: ((fault?: Fault) => void) | undefined;

  constructor(
    readonly event: AttemptEvent,
    /** Estimated prompt, charged with what was delivered if the process dies. */
    readonly promptTokens: number,
    /** Number of the segment that holds its start, or of an earlier one. */
    readonly segment: number,
    /** Present for a request that is asked in rounds. */
    readonly rounds?: EarlierRounds | undefined,
  ) {
    this.key = attemptKey(event.requestId, event.attempt);
  }

  /** Creates `telling`, unless there is one that is not being settled yet. */
  promiseTelling(): void {
    if (this.settleTelling !== undefined) return;
    this.telling = new Promise((resolve, reject) => {
      this.settleTelling = (fault) => (fault === undefined ? resolve() : reject(fault));
    });
    // Only the one who told the outcome waits for it.
    this.telling.catch(() => undefined);
  }

  /** Hands the function that settles `telling` to the record that is about to be written. */
  takeTelling(): (fault?: Fault) => void {
    this.promiseTelling();
    const settle = this.settleTelling;
    this.settleTelling = undefined;
    return (fault) => settle?.(fault);
  }
}

/** Key of an attempt. The first one, mostly the only one, uses the request id itself; ids contain no blank, so keys are unique. */
export function attemptKey(requestId: string, attempt: number): string {
  return attempt === 1 ? requestId : `${requestId} ${String(attempt)}`;
}

/** Its hold in the form that quota is told. */
export function liveHoldOf({ event, isStarted, draw }: LiveAttempt, { amountNanoUsd, tokens }: Held): LiveHold {
  const { accountId, keyId, requestId, byok, periods } = event;
  return { accountId, keyId, requestId, amountNanoUsd: byok ? '0' : amountNanoUsd, tokens, byok, periods, started: isStarted, draw };
}

/** When the oldest of these attempts was reserved, in milliseconds since the epoch; 0 if there is none. */
export function oldestReservationMs(attempts: Iterable<LiveAttempt>): number {
  let oldest = 0;
  for (const { event } of attempts) {
    const reservedAtMs = Number(event.periods?.reservedAtMs ?? 0) || Number(event.startedAtMs);
    if (oldest === 0 || reservedAtMs < oldest) oldest = reservedAtMs;
  }
  return oldest;
}
