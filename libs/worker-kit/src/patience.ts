/** How long an attempt waits: for its provider to take the request, to begin, to go on and to end, and for its client to read on. */
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import type { Clock, Timer } from '@signalbox/kernel/clock';

const FIRST_BYTE_MS_DEFAULT = 10_000;
const IDLE_MS_DEFAULT = 30_000;
/** Until the request is on its way: looking up an account's own address and connecting to it may take most of that. */
const SEND_MS = 15_000;
/** Bytes that are no events, such as comments, are signs of life; without an event they are believed for so many times the model's limit, at least for so long, and no longer than a whole answer. */
const QUIET_FACTOR = 4;
const QUIET_MS_MIN = 120_000;
/** A whole answer may take as long as the longest generation. */
const WHOLE_ANSWER_MS = 600_000;
/** For a refusal's body once its status is known: what it says beside that comes at once, or is done without. */
const REFUSAL_MS = 5_000;
/** After the finish chunk: usage and `[DONE]` follow at once or not at all. */
const AFTER_FINISH_MS = 2_000;
/** After usage that came with or behind the finish: a second usage frame and `[DONE]` are on their way, or the host keeps the connection open. */
const AFTER_COMPLETE_MS = 250;
/**
 * For room at a client, which edge watches: one that takes nothing for a minute it cuts off itself (FAILURES, slow reader).
 * What had been said already, 256 KB and more, leaves to one that takes a kilobyte a second in four minutes, and only then is there room.
 */
const STALLED_CLIENT_MS = 600_000;
/** As late as a timer is in a process that runs when it has something to do. */
const JITTER_MS = 10;
/** Turns of the event loop for which what came after a silence is laid by until the caller was heard: a connection that ended is closed, then its streams, then their calls, each in a turn of its own. */
export const HEARING_TURNS = 16;
/** Turns in which what lies in the sockets is read, and then worked through. */
const TURNS = HEARING_TURNS + 4;

/** What did not come in its time: `event` while bytes do come, `end` of a stream that has finished, `refusal` told by its status alone so far, `client` that does not read. */
export type Overdue = 'sent' | 'first-byte' | 'next-byte' | 'event' | 'end' | 'refusal' | 'client';

/** Is told what happens as it happens, from `start` to `stop`. All times are monotonic milliseconds. */
export class Patience {
  readonly startedAt: number;
  private readonly firstByteMs: number;
  private readonly idleMs: number;
  /** Longest time without an event, whatever else comes. */
  private readonly quietMs: number;
  private isSent = false;
  private hasHead = false;
  private hasData = false;
  /** Something of the answer itself has come, be it a thought. */
  private hasOutput = false;
  private dataAt: number;
  /** When the stream last got on: an event, or output that a transducer keeps back. The start, until then. */
  private eventAt: number;
  private refusedAt: number | undefined;
  private pausedAt: number | undefined;
  private finishedAt: number | undefined;
  private isComplete = false;
  private isStopped = false;
  private timer: Timer | undefined;
  /** When the timer is to fire. */
  private watchAt = 0;

  constructor(
    private readonly clock: Clock,
    request: DispatchRequest__Output,
    private readonly onOverdue: (what: Overdue) => void,
    /** For tests: instead of setImmediate, calls back when the present turn of the event loop is over. */
    private readonly afterTurn: (callback: () => void) => void = setImmediate,
  ) {
    this.startedAt = clock.monotonicMs();
    this.dataAt = this.startedAt;
    this.eventAt = this.startedAt;
    this.idleMs = request.idleTimeoutMs || IDLE_MS_DEFAULT;
    this.firstByteMs = request.stream ? request.firstByteTimeoutMs || FIRST_BYTE_MS_DEFAULT : Math.min(WHOLE_ANSWER_MS, request.wholeTimeoutMs || WHOLE_ANSWER_MS);
    this.quietMs = request.stream ? Math.min(WHOLE_ANSWER_MS, Math.max(QUIET_MS_MIN, QUIET_FACTOR * this.firstByteMs)) : WHOLE_ANSWER_MS;
  }

  /** When bytes of the answer last came; the start, until then. */
  get lastDataAt(): number {
    return this.dataAt;
  }

  /** The stream told how it finished, and has not ended. */
  get isFinished(): boolean {
    return this.finishedAt !== undefined;
  }

  get isPaused(): boolean {
    return this.pausedAt !== undefined;
  }

  start(): void {
    this.watch(this.sentWithinMs());
  }

  stop(): void {
    this.isStopped = true;
    this.timer?.cancel();
  }

  sent(): void {
    this.isSent = true;
  }

  headCame(): void {
    this.isSent = true;
    this.hasHead = true;
  }

  /** The provider refuses, by its status. */
  refused(): void {
    this.refusedAt = this.clock.monotonicMs();
    this.rewatch(REFUSAL_MS);
  }

  dataCame(): void {
    this.hasData = true;
    this.dataAt = this.clock.monotonicMs();
  }

  /** With the data that came last the stream got on. `hasOutput`: something of the answer has come by now, not its head alone. */
  gotOn(hasOutput: boolean): void {
    this.eventAt = this.dataAt;
    if (!hasOutput || this.hasOutput) return;
    this.hasOutput = true;
    // The timer may be set for the end of a longer wait.
    if (this.firstByteMs > this.idleMs) this.rewatch(this.idleMs);
  }

  /** How far the stream has come with the data that came last. */
  follow({ isFinished, isComplete }: { readonly isFinished: boolean; readonly isComplete: boolean }): void {
    const wasComplete = this.isComplete;
    this.isComplete = isComplete;
    if (isFinished && this.finishedAt === undefined) {
      this.finishedAt = this.dataAt;
      this.rewatch(this.afterFinishMs());
    } else if (!isFinished && this.finishedAt !== undefined) {
      // Of several choices one was over before the next began.
      this.finishedAt = undefined;
      this.rewatch(this.idleMs);
    } else if (isComplete && !wasComplete) this.rewatch(AFTER_COMPLETE_MS);
  }

  /** The client has no room for more. */
  paused(): void {
    this.pausedAt = this.clock.monotonicMs();
    this.rewatch(STALLED_CLIENT_MS);
  }

  resumed(): void {
    this.pausedAt = undefined;
    this.excuse();
    this.rewatch(this.finishedAt === undefined ? this.idleMs : this.afterFinishMs());
  }

  /** It was we who did not read until now. */
  excuse(): void {
    this.dataAt = this.clock.monotonicMs();
    this.eventAt = this.dataAt;
  }

  private sentWithinMs(): number {
    return Math.min(this.firstByteMs, SEND_MS);
  }

  private afterFinishMs(): number {
    return this.isComplete ? AFTER_COMPLETE_MS : AFTER_FINISH_MS;
  }

  private rewatch(delayMs: number): void {
    this.timer?.cancel();
    this.watch(delayMs);
  }

  /** One timer that looks where time stands: re-arming it for each chunk would cost more than the chunk. */
  private watch(delayMs: number): void {
    if (this.isStopped) return;
    const waitMs = Math.max(1, delayMs);
    this.watchAt = this.clock.monotonicMs() + waitMs;
    this.timer = this.clock.setTimer(waitMs, this.onWatch, { unref: true });
  }

  private readonly onWatch = (): void => {
    // Timers fire before sockets are read: of a process that stood still, what came meanwhile lies there.
    if (this.clock.monotonicMs() - this.watchAt > JITTER_MS) this.lookAfter(TURNS, this.timer);
    else this.look();
  };

  private look(): void {
    const nowMs = this.clock.monotonicMs();
    const [what, dueMs] = this.next(nowMs);
    if (nowMs < dueMs) this.watch(dueMs - nowMs);
    else this.onOverdue(what);
  }

  /** Not when it was stopped or watches anew by then. */
  private lookAfter(turns: number, watched: Timer | undefined): void {
    if (this.isStopped || this.timer !== watched) return;
    if (turns === 0) this.look();
    else this.afterTurn(() => this.lookAfter(turns - 1, watched));
  }

  /** What is waited for, and until when. */
  private next(nowMs: number): readonly [Overdue, number] {
    if (this.refusedAt !== undefined) return ['refusal', this.refusedAt + REFUSAL_MS];
    if (this.pausedAt !== undefined) return ['client', this.pausedAt + STALLED_CLIENT_MS];
    if (this.finishedAt !== undefined) return ['end', Math.min(this.finishedAt + AFTER_FINISH_MS, this.dataAt + this.afterFinishMs())];
    if (!this.isSent) return ['sent', this.startedAt + this.sentWithinMs()];
    if (!this.hasHead || !this.hasData) return ['first-byte', this.startedAt + this.firstByteMs];
    const quietUntil = this.eventAt + this.quietMs;
    // Some hosts say at once that they answer, and think then.
    const idleMs = this.hasOutput ? this.idleMs : Math.max(this.idleMs, this.firstByteMs);
    return [nowMs >= quietUntil ? 'event' : 'next-byte', Math.min(this.dataAt + idleMs, quietUntil)];
  }
}
