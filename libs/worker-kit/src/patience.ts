/** Time-outs of an attempt: for the provider to take the request, to begin, to go on and to end, and for the client to read on. */
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import type { Clock, Timer } from '@signalbox/kernel/clock';

const FIRST_BYTE_MS_DEFAULT = 10_000;
const IDLE_MS_DEFAULT = 30_000;
/** Until the request is on its way. Looking up and connecting to an account's own address may take most of it. */
const SEND_MS = 15_000;
/** Bytes that are not events, such as comments, are signs of life. Without an event they count as such for this many times the model's limit, for at least `QUIET_MS_MIN` and at most `WHOLE_ANSWER_MS`. */
const QUIET_FACTOR = 4;
const QUIET_MS_MIN = 120_000;
/** A whole answer may take as long as the longest generation. */
const WHOLE_ANSWER_MS = 600_000;
/**
 * Silence after which a stream has failed that may be writing a call of a tool. Several hosts hold the arguments back until
 * they are complete: Google's servers were silent for four minutes over a file of 42 KB.
 */
const CALL_MS = 300_000;
/** For the body of a refusal after its status. It follows at once, or we do without it. */
const REFUSAL_MS = 5_000;
/** After the finish chunk: usage and `[DONE]` follow at once or not at all. */
const AFTER_FINISH_MS = 2_000;
/** After usage that came with or after the finish chunk: a second usage frame and `[DONE]` follow at once, or the host keeps the connection open. */
const AFTER_COMPLETE_MS = 250;
/**
 * For a client to read on. Edge itself cuts off a client that takes nothing for a minute, so this only
 * has to be longer than a slow one needs: one that takes a kilobyte a second empties a backlog of 256 KB and more in over four
 * minutes, and there is room only then.
 */
const STALLED_CLIENT_MS = 600_000;
/** Usual delay of a timer in a process that was not suspended. */
const JITTER_MS = 10;
/** Turns of the event loop for which data after a silence is held back, so that a caller that left is noticed first: a lost connection closes, then its streams, then their calls, each in a turn of its own. */
export const HEARING_TURNS = 16;
/** Turns in which pending data is read from the sockets and processed. */
const TURNS = HEARING_TURNS + 4;

/** What did not come in time: `event` if bytes still arrive, `end` of a stream after its finish, `refusal` whose status alone has arrived, `client` that does not read. */
export type Overdue = 'sent' | 'first-byte' | 'next-byte' | 'event' | 'end' | 'refusal' | 'client';

/** Watches an attempt from `start` to `stop`; its owner reports each event as it happens. All times are monotonic milliseconds. */
export class Patience {
  readonly startedAt: number;
  private readonly firstByteMs: number;
  private readonly idleMs: number;
  /** The same once part of the answer has arrived. */
  private readonly outputIdleMs: number;
  /** Longest time without an event, whatever else arrives. */
  private readonly quietMs: number;
  private isSent = false;
  private hasHead = false;
  private hasData = false;
  /** Part of the answer itself has arrived, which may be reasoning. */
  private hasOutput = false;
  private dataAt: number;
  /** When the stream last made progress: an event, or output that the transducer still holds back. Until then, the start. */
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
    this.outputIdleMs = request.fields.some(({ name }) => name === 'tools') ? Math.max(this.idleMs, CALL_MS) : this.idleMs;
    this.firstByteMs = request.stream ? request.firstByteTimeoutMs || FIRST_BYTE_MS_DEFAULT : Math.min(WHOLE_ANSWER_MS, request.wholeTimeoutMs || WHOLE_ANSWER_MS);
    this.quietMs = request.stream ? Math.min(WHOLE_ANSWER_MS, Math.max(QUIET_MS_MIN, QUIET_FACTOR * this.firstByteMs)) : WHOLE_ANSWER_MS;
  }

  /** When bytes of the answer last arrived; until then, the start. */
  get lastDataAt(): number {
    return this.dataAt;
  }

  /** The stream has given its finish reason, but has not ended. */
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

  /** The status says that the provider refuses. */
  refused(): void {
    this.refusedAt = this.clock.monotonicMs();
    this.rewatch(REFUSAL_MS);
  }

  dataCame(): void {
    this.hasData = true;
    this.dataAt = this.clock.monotonicMs();
  }

  /** The stream made progress with the latest data. `hasOutput`: part of the answer has arrived, not only its head. */
  gotOn(hasOutput: boolean): void {
    this.eventAt = this.dataAt;
    if (!hasOutput || this.hasOutput) return;
    this.hasOutput = true;
    // The timer may still be set for the longer first-byte limit.
    if (this.firstByteMs > this.idleMs) this.rewatch(this.idleMs);
  }

  /** State of the stream after the latest data. */
  follow({ isFinished, isComplete }: { readonly isFinished: boolean; readonly isComplete: boolean }): void {
    const wasComplete = this.isComplete;
    this.isComplete = isComplete;
    if (isFinished && this.finishedAt === undefined) {
      this.finishedAt = this.dataAt;
      this.rewatch(this.afterFinishMs());
    } else if (!isFinished && this.finishedAt !== undefined) {
      // One of several choices ended before the next one began.
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

  /** Restarts the idle times: it was we who did not read until now. */
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

  /** A single timer checks all limits when it fires: re-arming it for each chunk would cost more than the chunk. */
  private watch(delayMs: number): void {
    if (this.isStopped) return;
    const waitMs = Math.max(1, delayMs);
    this.watchAt = this.clock.monotonicMs() + waitMs;
    this.timer = this.clock.setTimer(waitMs, this.onWatch, { unref: true });
  }

  private readonly onWatch = (): void => {
    // Timers fire before sockets are read. If the process was suspended, data that arrived meanwhile is still unread.
    if (this.clock.monotonicMs() - this.watchAt > JITTER_MS) this.lookAfter(TURNS, this.timer);
    else this.look();
  };

  private look(): void {
    const nowMs = this.clock.monotonicMs();
    const [what, dueMs] = this.next(nowMs);
    if (nowMs < dueMs) this.watch(dueMs - nowMs);
    else this.onOverdue(what);
  }

  /** Looks after that many turns, unless it was stopped or re-armed meanwhile. */
  private lookAfter(turns: number, watched: Timer | undefined): void {
    if (this.isStopped || this.timer !== watched) return;
    if (turns === 0) this.look();
    else this.afterTurn(() => this.lookAfter(turns - 1, watched));
  }

  /** What is being waited for, and until when. */
  private next(nowMs: number): readonly [Overdue, number] {
    if (this.refusedAt !== undefined) return ['refusal', this.refusedAt + REFUSAL_MS];
    if (this.pausedAt !== undefined) return ['client', this.pausedAt + STALLED_CLIENT_MS];
    if (this.finishedAt !== undefined) return ['end', Math.min(this.finishedAt + AFTER_FINISH_MS, this.dataAt + this.afterFinishMs())];
    if (!this.isSent) return ['sent', this.startedAt + this.sentWithinMs()];
    if (!this.hasHead || !this.hasData) return ['first-byte', this.startedAt + this.firstByteMs];
    // Some hosts send a head at once and think afterwards.
    const idleMs = this.hasOutput ? this.outputIdleMs : Math.max(this.idleMs, this.firstByteMs);
    const quietUntil = this.eventAt + Math.max(this.quietMs, this.hasOutput ? this.outputIdleMs : 0);
    return [nowMs >= quietUntil ? 'event' : 'next-byte', Math.min(this.dataAt + idleMs, quietUntil)];
  }
}
