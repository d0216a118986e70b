/** Outcomes that edge did not tell: when to stop waiting for it, what to conclude, and what was concluded. */
import type { LiveMap } from '@signalbox/kernel/live-map';
import { attemptKey, type LiveAttempt } from './wal-attempt.js';
import { concludedOutcome, isWhole, restsOnCalls, type AttemptEvent } from './wal-events.js';

/**
 * 30 s after an end, or after the start of this process, without a word from edge: edge is dead, and the outcome is concluded.
 * Sooner, concluding a charge of 0 for an attempt that edge has moved on from could free the hold that the next one uses.
 */
const CONCLUDE_MS = 30_000;
/** 10 min: edge tells the outcomes of all rounds of a request together, once the last has ended. Not for attempts that edge tends, where its death is noticed sooner. */
const CONCLUDE_ROUND_MS = 600_000;
/** 30 min: no request lasts longer at edge, so edge tells nothing later. */
const CONCLUDED_KEPT_MS = 1_800_000;
const CONCLUDED_MAX = 10_000;

export class Conclusions {
  constructor(
    /** Attempts between start and outcome, by key. */
    private readonly open: LiveMap<string, LiveAttempt>,
    /** Attempts whose outcome the worker concluded, by key, oldest first. An outcome that edge tells later overrides it. */
    private readonly concluded: Map<string, LiveAttempt>,
  ) {}

  /** The attempt with that key, if its outcome was concluded. */
  get(key: string): LiveAttempt | undefined {
    return this.concluded.get(key);
  }

  isEmpty(): boolean {
    return this.concluded.size === 0;
  }

  has(key: string): boolean {
    return this.concluded.has(key);
  }

  add(attempt: LiveAttempt): void {
    this.concluded.set(attempt.key, attempt);
    const oldest = this.concluded.size > CONCLUDED_MAX ? this.concluded.keys().next().value : undefined;
    if (oldest !== undefined) this.concluded.delete(oldest);
  }

  delete(key: string): void {
    this.concluded.delete(key);
  }

  /**
   * The outcome to conclude when edge never told one. Nobody is charged for rounds of a request that broke off before it was
   * answered. Nor for the part that a process which died had of an answer while an earlier answer was kept in reserve: had the
   * client been given any of it, edge would have told the outcome of the one in reserve.
   */
  outcomeOf({ event }: LiveAttempt): 'DELIVERED' | 'DISCARDED' {
    if (event.deliveredUnknown && event.retryOf.some((earlier) => this.isInReserve(event.requestId, earlier))) return 'DISCARDED';
    return restsOnCalls(event) && !this.isAnsweredLater(event) ? 'DISCARDED' : concludedOutcome(event);
  }

  /** Open attempts whose outcome edge has had enough time to tell. `nowMs` is monotonic. */
  *due(nowMs: number): Iterable<LiveAttempt> {
    for (const attempt of this.open.values()) {
      const { endedAtMs, tendedAtMs, told, rounds } = attempt;
      const patienceMs = rounds === undefined || tendedAtMs !== undefined ? CONCLUDE_MS : CONCLUDE_ROUND_MS;
      if (told === undefined && endedAtMs !== undefined && nowMs - Math.max(endedAtMs, tendedAtMs ?? endedAtMs) > patienceMs) yield attempt;
    }
  }

  /** Drops concluded attempts that edge will tell nothing about any more. `nowMs` is monotonic. */
  forgetOld(nowMs: number): void {
    for (const { key, endedAtMs } of this.concluded.values()) {
      if (endedAtMs !== undefined && nowMs - endedAtMs <= CONCLUDED_KEPT_MS) break;
      this.concluded.delete(key);
    }
  }

  /** A complete answer that was kept in reserve, and of which edge has told nothing. */
  private isInReserve(requestId: string, number: number): boolean {
    const key = attemptKey(requestId, number);
    const attempt = this.open.get(key) ?? this.concluded.get(key);
    if (attempt?.endedAtMs === undefined || (attempt.told ?? attempt.early)?.byEdge === true) return false;
    return isWhole(attempt.event) && !restsOnCalls(attempt.event);
  }

  private isAnsweredLater({ requestId, attempt }: AttemptEvent): boolean {
    for (const known of [this.open, this.concluded]) {
      for (const { event, endedAtMs } of known.values()) {
        if (event.requestId === requestId && event.attempt > attempt && endedAtMs !== undefined && !restsOnCalls(event) && concludedOutcome(event) === 'DELIVERED') return true;
      }
    }
    return false;
  }
}
