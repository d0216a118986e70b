/** How long the oldest record that is to be booked has waited: times are kept of stretches of the log, not of records. */

interface Stretch {
  /** Newest record of it. */
  lastSeq: number;
  readonly sinceMs: number;
}

/** A stretch is a second long, or this part of what the oldest has waited: some hundreds of them tell of days. */
const STRETCH_MS_MIN = 1_000;
const PARTS = 64;

export class OwedSince {
  private stretches: Stretch[] = [];

  /** Records up to `seq` were written. Times never go back. */
  written(seq: number, nowMs: number): void {
    const last = this.stretches.at(-1);
    if (last !== undefined && nowMs - last.sinceMs < Math.max(STRETCH_MS_MIN, this.ageMs(nowMs) / PARTS)) last.lastSeq = seq;
    else this.stretches.push({ lastSeq: seq, sinceMs: nowMs });
  }

  /** The ledger has all up to `seq`. */
  booked(seq: number): void {
    const kept = this.stretches.findIndex(({ lastSeq }) => lastSeq > seq);
    if (kept !== 0) this.stretches = kept === -1 ? [] : this.stretches.slice(kept);
  }

  /** 0 = nothing waits. Of a stretch that is booked in part that of its beginning. */
  ageMs(nowMs: number): number {
    const [oldest] = this.stretches;
    return oldest === undefined ? 0 : nowMs - oldest.sinceMs;
  }
}
