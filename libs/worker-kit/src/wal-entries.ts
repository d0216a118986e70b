/** The records of an attempt, queued for the log. */
import type { Fault } from '@signalbox/kernel/fault';
import type { TokenCounts } from '@signalbox/kernel/tokens';
import type { LiveAttempt, Told } from './wal-attempt.js';
import type { LogEntry } from './wal-commit.js';
import { encodedEnd, encodedHead, encodedStart, endedCodec, outcomeCodec } from './wal-events.js';
import { FRAME } from './wal-frame.js';

/** Notified when a record was written, or will never be. */
export interface AttemptBook {
  started(attempt: LiveAttempt): void;
  notStarted(attempt: LiveAttempt): void;
  ended(attempt: LiveAttempt): void;
  told(attempt: LiveAttempt, told: Told, seq: number): void;
  notTold(attempt: LiveAttempt, told: Told): void;
}

export class StartEntry implements LogEntry {
  readonly kind = FRAME.start;

  constructor(
    private readonly book: AttemptBook,
    private readonly attempt: LiveAttempt,
    private readonly resolve: () => void,
    private readonly reject: (fault: Fault) => void,
  ) {}

  payload(seq: number): Buffer {
    const { event } = this.attempt;
    event.seq = String(seq);
    return encodedStart(event, (this.attempt.head ??= encodedHead(event)));
  }

  written(): void {
    this.book.started(this.attempt);
    this.resolve();
  }

  failed(fault: Fault): void {
    this.book.notStarted(this.attempt);
    this.reject(fault);
  }
}

export class CheckEntry implements LogEntry {
  readonly kind = FRAME.check;

  constructor(
    private readonly attempt: LiveAttempt,
    private readonly tokens: TokenCounts,
  ) {}

  payload(): Buffer {
    const { requestId, attempt } = this.attempt.event;
    return endedCodec.encode({ requestId, attempt, tokens: this.tokens });
  }

  written(): void {
    // Nobody waits for a checkpoint.
  }

  failed(): void {
    // The next checkpoint replaces it.
  }
}

export class EndEntry implements LogEntry {
  readonly kind = FRAME.end;

  constructor(
    private readonly book: AttemptBook,
    private readonly attempt: LiveAttempt,
    private readonly resolve: () => void,
    private readonly reject: (fault: Fault) => void,
  ) {}

  payload(seq: number): Buffer {
    const { event, head } = this.attempt;
    event.seq = String(seq);
    return encodedEnd(event, head);
  }

  written(): void {
    this.book.ended(this.attempt);
    this.resolve();
  }

  failed(fault: Fault): void {
    this.reject(fault);
  }
}

export class OutcomeEntry implements LogEntry {
  readonly kind = FRAME.outcome;

  constructor(
    private readonly book: AttemptBook,
    private readonly attempt: LiveAttempt,
    private readonly outcome: Told,
    private readonly settle: (fault?: Fault) => void = () => undefined,
  ) {}

  payload(seq: number): Buffer {
    const { requestId, attempt, accountId } = this.attempt.event;
    const { outcome, byEdge, isFollowed: followed = false } = this.outcome;
    return outcomeCodec.encode({ seq, requestId, attempt, accountId, outcome, toldByEdge: byEdge, followed });
  }

  written(seq: number): void {
    this.book.told(this.attempt, this.outcome, seq);
    this.settle();
  }

  failed(fault: Fault): void {
    this.book.notTold(this.attempt, this.outcome);
    this.settle(fault);
  }
}

/** An outcome that arrived before the end, recorded in case this process dies before it can write both. */
export class EarlyOutcomeEntry implements LogEntry {
  readonly kind = FRAME.outcome;

  constructor(
    private readonly attempt: LiveAttempt,
    private readonly outcome: Told,
    private readonly settle: (fault?: Fault) => void,
  ) {}

  payload(seq: number): Buffer {
    const { requestId, attempt, accountId } = this.attempt.event;
    const { outcome, byEdge, isFollowed: followed = false } = this.outcome;
    return outcomeCodec.encode({ seq, requestId, attempt, accountId, outcome, toldByEdge: byEdge, followed });
  }

  written(): void {
    // The outcome is written again after the end.
    this.settle();
  }

  failed(fault: Fault): void {
    // The outcome is still written after the end.
    this.settle(fault);
  }
}
