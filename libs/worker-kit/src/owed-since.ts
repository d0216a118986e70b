/** How long the oldest unbooked record has waited. Times are kept per stretch of the log, not per record. */

interface Stretch {
  /** Newest record of the stretch. */
  lastSeq: number;
  readonly sinceMs: number;
}

/** A stretch lasts a second, or 1/64 of the time that the oldest has waited if that is longer: a few hundred of them cover days. */
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

  /** Age of the oldest unbooked record; 0 = nothing waits. A partly booked stretch counts from its beginning. */
  ageMs(nowMs: number): number {
    const [oldest] = this.stretches;
    return oldest === undefined ? 0 : nowMs - oldest.sinceMs;
  }
}
