/**
 * Up to when silence of writers counts. While the ledger could hear of nobody (its database or this process was away, the host
 * slept), and where its clock is set ahead, all of them seem silent at once: such time counts only once those who live have had
 * time to report again. A living writer taken for lost would be booked for what it still brings, and its streams be cut.
 */
import type { Clock, EpochMs } from '@signalbox/kernel/clock';

/** 60 s: whoever lives reports every 15 s, and has in that time. */
const REPORT_MS = 60_000;
/**
 * 15 min: a clock that was set wrongly is set right by then. A period that closes before its end takes nothing more of what is
 * admitted in it, bills of the next one do, and limits by the month do not see it.
 */
const PASSED_MS = 900_000;
/** 10 s: what two readings of the ledger's clock may be apart for, beside the time between them, by being waited for. */
const SLACK_MS = 10_000;

/** What the ledger's clock moved by beside what counts, for as long as that is left out. */
class Pardon {
  byMs = 0;
  private endsMs = -Infinity;

  constructor(private readonly forMs: number) {}

  add(apartMs: number, atMs: number): void {
    if (atMs >= this.endsMs) this.byMs = 0;
    if (Math.abs(apartMs) <= SLACK_MS) return;
    this.byMs = Math.max(0, this.byMs + Math.round(apartMs));
    if (apartMs > 0) this.endsMs = atMs + this.forMs;
  }
}

export class Hearing {
  /** Latest reading of the ledger's clock, and when it was. */
  private last: { readonly nowMs: EpochMs; readonly atMs: number } | undefined;
  private readonly silence = new Pardon(REPORT_MS);
  private readonly passing = new Pardon(PASSED_MS);

  constructor(private readonly clock: Pick<Clock, 'monotonicMs'>) {}

  /** The latest words of writers that the ledger has, as this process starts: what came after the newest was heard by nobody. */
  begin(heardMs: readonly EpochMs[]): void {
    if (heardMs.length > 0) this.last = { nowMs: Math.max(...heardMs), atMs: this.clock.monotonicMs() };
  }

  /** To be called with each reading of the ledger's clock: the moment, at most `nowMs`, to which silence is counted. */
  until(nowMs: EpochMs): EpochMs {
    this.read(nowMs);
    return nowMs - this.silence.byMs;
  }

  /** As `until`: the moment by which periods are over. Time in which nobody was heard has passed all the same. */
  passedUntil(nowMs: EpochMs): EpochMs {
    this.read(nowMs);
    return nowMs - this.passing.byMs;
  }

  private read(nowMs: EpochMs): void {
    const atMs = this.clock.monotonicMs();
    const { last } = this;
    this.last = { nowMs, atMs };
    const [toldMs, passedMs] = last === undefined ? [0, 0] : [nowMs - last.nowMs, atMs - last.atMs];
    this.silence.add(toldMs - Math.min(passedMs, REPORT_MS), atMs);
    this.passing.add(toldMs - passedMs, atMs);
  }
}
