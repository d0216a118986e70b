/** What the log knows of one attempt between its start and its last outcome. */
import type { AttemptEvent } from './wal-events.js';
import type { ToldOutcome } from './journal.js';

export interface Told {
  readonly outcome: ToldOutcome;
  /** False when the worker concluded it by itself. */
  readonly byEdge: boolean;
}

export class LiveAttempt {
  readonly key: string;
  /** Its start is in the log. */
  isStarted = false;
  /** Its end is on the way to the log, or there. */
  isEnding = false;
  /** Monotonic milliseconds when its end was written; undefined until then. */
  endedAtMs: number | undefined;
  /** Told before it could be written. */
  early: Told | undefined;
  /** The outcome that is on the way to the log, or there. */
  told: Told | undefined;

  constructor(
    readonly event: AttemptEvent,
    /** Estimate, for what was delivered by a process that died. */
    readonly promptTokens: number,
    /** Number of the segment that its start is in, or of an earlier one. */
    readonly segment: number,
  ) {
    this.key = attemptKey(event.requestId, event.attempt);
  }
}

export function attemptKey(requestId: string, attempt: number): string {
  return `${requestId} ${String(attempt)}`;
}
