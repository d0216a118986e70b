/**
 * Decides up to when the silence of writers counts. While nobody could report to the ledger (its database or this process was
 * away, or the host slept), or when its clock is set ahead, all writers seem silent at once. Such time counts only after live
 * writers have had time to report again. If a live writer were taken for lost, its requests would be booked by stand-ins before
 * its own records arrive, and its streams would be cut.
 */
import type { Clock, EpochMs } from '@signalbox/kernel/clock';

/** 60 s: a live writer reports every 15 s, so it has reported by then. */
const REPORT_MS = 60_000;
/**
 * 15 min: a clock that was set wrongly has been corrected by then. A period that closes before its end would get no more of the
 * requests that are admitted in it: they would be on the bill of the next one, where monthly limits do not count them.
 */
const PASSED_MS = 900_000;
/** 10 s: by how much the difference of two readings of the ledger's clock may deviate from the time between them, since a reading may have to wait. */
const SLACK_MS = 10_000;

/** A part of the ledger's time that does not count, and until when it is left out. */
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
  /** Latest reading of the ledger's clock, and when it was made. */
  private last: { readonly nowMs: EpochMs; readonly atMs: number } | undefined;
  private readonly silence = new Pardon(REPORT_MS);
  private readonly passing = new Pardon(PASSED_MS);

  constructor(private readonly clock: Pick<Clock, 'monotonicMs'>) {}

  /** To be called at the start with the times of the writers' latest reports: nobody could report after the newest of them. */
  begin(heardMs: readonly EpochMs[]): void {
    if (heardMs.length > 0) this.last = { nowMs: Math.max(...heardMs), atMs: this.clock.monotonicMs() };
  }

  /** To be called with each reading of the ledger's clock. Returns the time, at most `nowMs`, up to which silence counts. */
  until(nowMs: EpochMs): EpochMs {
    this.read(nowMs);
    return nowMs - this.silence.byMs;
  }

  /** Like `until`, for deciding whether periods are over. Time in which nobody could report counts here. */
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
