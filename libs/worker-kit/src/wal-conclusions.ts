/** Outcomes of attempts that edge tells nothing of: when its word is no longer waited for, what is taken for it, and what was. */
import type { LiveMap } from '@signalbox/kernel/live-map';
import { attemptKey, type LiveAttempt } from './wal-attempt.js';
import { concludedOutcome, isWhole, restsOnCalls, type AttemptEvent } from './wal-events.js';

/**
 * 30 s without a word of edge after an end, or after the start of this process: edge died before it told, and the outcome
 * is concluded. Sooner, a 0 for an attempt that edge has moved on from would free the hold that the next one draws on.
 */
const CONCLUDE_MS = 30_000;
/** 10 min: rounds of one request are told of together, once the last has ended. Of those that edge tends it is known when edge dies. */
const CONCLUDE_ROUND_MS = 600_000;
/** 30 min: no request of edge lasts longer, so no word of it comes later. */
const CONCLUDED_KEPT_MS = 1_800_000;
const CONCLUDED_MAX = 10_000;

export class Conclusions {
  constructor(
    /** Between start and outcome, by key. */
    private readonly open: LiveMap<string, LiveAttempt>,
    /** Outcomes that the worker concluded by itself, by key, oldest first: the word of edge that may still come counts more. */
    private readonly concluded: Map<string, LiveAttempt>,
  ) {}

  /** The attempt of that key, where its outcome was concluded. */
  get(key: string): LiveAttempt | undefined {
    return this.concluded.get(key);
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
   * Edge never told: nobody is charged for rounds whose request broke off before it was answered, nor for what a process that
   * died had of an answer while another one was kept in reserve: with its first word edge would have said so of that one.
   */
  outcomeOf({ event }: LiveAttempt): 'DELIVERED' | 'DISCARDED' {
    if (event.deliveredUnknown && event.retryOf.some((earlier) => this.isInReserve(event.requestId, earlier))) return 'DISCARDED';
    return restsOnCalls(event) && !this.isAnsweredLater(event) ? 'DISCARDED' : concludedOutcome(event);
  }

  /** Open attempts whose outcome edge has had its time to tell. `nowMs` is monotonic. */
  *due(nowMs: number): Iterable<LiveAttempt> {
    for (const attempt of this.open.values()) {
      const { endedAtMs, tendedAtMs, told, rounds } = attempt;
      const patienceMs = rounds === undefined || tendedAtMs !== undefined ? CONCLUDE_MS : CONCLUDE_ROUND_MS;
      if (told === undefined && endedAtMs !== undefined && nowMs - Math.max(endedAtMs, tendedAtMs ?? endedAtMs) > patienceMs) yield attempt;
    }
  }

  /** Lets go of what no word comes of any more. `nowMs` is monotonic. */
  forgetOld(nowMs: number): void {
    for (const { key, endedAtMs } of this.concluded.values()) {
      if (endedAtMs !== undefined && nowMs - endedAtMs <= CONCLUDED_KEPT_MS) break;
      this.concluded.delete(key);
    }
  }

  /** A whole answer that another was to take the place of, and of which edge has said nothing. */
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
