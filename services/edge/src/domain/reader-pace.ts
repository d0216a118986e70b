/** Tells a client that reads its answer slowly from one that reads nothing, or hardly anything. */

/** How often a client that has fallen behind is looked at. */
export const READER_LOOK_MS = 15_000;
/** More than this between two looks is not the client's: this process was suspended. */
const ELAPSED_MS_MAX = 2 * READER_LOOK_MS;
/** A client that takes nothing of what waits for it for this long is given up. */
export const STALLED_READER_MS = 60_000;
/** How long a client may take nothing, or too little, in all. What it takes gives it time back. */
const PATIENCE_MS = 600_000;
/** A client that takes as much in the long run is waited for, however long its answer is. */
const BYTES_PER_MS_MIN = 1_024 / 1_000;
/** An answer that waits as a whole is to be taken within about this time, however large it is. */
const WHOLE_MS = 3_600_000;

/** Why an answer was given up: nothing of it was read for a minute, or too little of it for too long. */
export type Unread = 'stalled' | 'slow';

/**
 * The pace of one client. Only time counts in which bytes wait for it that the connection does not take: a client that has
 * read everything may be silent for as long as it likes. Times are monotonic milliseconds.
 */
export class ReaderPace {
  private patienceMs = PATIENCE_MS;
  private readonly bytesPerMs: number;
  private taken: number | undefined;
  private stalledMs = 0;
  private seenMs = 0;

  /** `bytes`: how much waits at the start, if that is all. */
  constructor(bytes = 0) {
    this.bytesPerMs = Math.max(BYTES_PER_MS_MIN, bytes / WHOLE_MS);
  }

  /** Bytes begin to wait. `taken`: how many the client has taken by now; undefined while another answer has its turn on the same connection. */
  begin(taken: number | undefined, nowMs: number): void {
    this.taken = taken;
    this.stalledMs = 0;
    this.seenMs = nowMs;
  }

  /** To be called at intervals while bytes wait, and when they have been taken. Undefined = the client is to be waited for. */
  look(taken: number | undefined, nowMs: number): Unread | undefined {
    const before = this.taken;
    if (taken === undefined || before === undefined) {
      this.begin(taken, nowMs);
      return undefined;
    }
    const elapsedMs = Math.min(nowMs - this.seenMs, ELAPSED_MS_MAX);
    this.seenMs = nowMs;
    this.taken = taken;
    this.stalledMs = taken > before ? 0 : this.stalledMs + elapsedMs;
    this.patienceMs = Math.min(PATIENCE_MS, this.patienceMs - elapsedMs + (taken - before) / this.bytesPerMs);
    if (this.stalledMs >= STALLED_READER_MS) return 'stalled';
    return this.patienceMs > 0 ? undefined : 'slow';
  }
}
