/**
 * Up to when silence of writers counts. While the ledger could hear of nobody (its database or this process was away, the host
 * slept), and where its clock is set ahead, all of them seem silent at once: such time counts only once those who live have had
 * time to report again. A living writer taken for lost would be booked for what it still brings, and its streams be cut.
 */
import type { Clock, EpochMs } from '@signalbox/kernel/clock';

/** 60 s: whoever lives reports every 15 s, and has in that time. */
const REPORT_MS = 60_000;
/** 10 s: what two readings of the ledger's clock may be apart for, beside the time between them, by being waited for. */
const SLACK_MS = 10_000;

export class Hearing {
  /** Latest reading of the ledger's clock, and when it was. */
  private last: { readonly nowMs: EpochMs; readonly atMs: number } | undefined;
  private deafMs = 0;
  private pardonEndsMs = -Infinity;

  constructor(private readonly clock: Pick<Clock, 'monotonicMs'>) {}

  /** The newest word of any writer that the ledger has, as this process starts: what came after it was heard by nobody. */
  begin(heardMs: EpochMs): void {
    this.last = { nowMs: heardMs, atMs: this.clock.monotonicMs() };
  }

  /** To be called with each reading of the ledger's clock: the moment, at most `nowMs`, to which silence is counted. */
  until(nowMs: EpochMs): EpochMs {
    const atMs = this.clock.monotonicMs();
    const { last } = this;
    this.last = { nowMs, atMs };
    if (atMs >= this.pardonEndsMs) this.deafMs = 0;
    const deafMs = last === undefined ? 0 : Math.round(nowMs - last.nowMs - Math.min(atMs - last.atMs, REPORT_MS));
    if (deafMs > SLACK_MS) {
      this.deafMs += deafMs;
      this.pardonEndsMs = atMs + REPORT_MS;
    }
    return nowMs - this.deafMs;
  }
}
