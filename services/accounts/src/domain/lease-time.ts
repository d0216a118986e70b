/**
 * Leases are kept as moments of the wall clock, which replicas share. Where that is set ahead, or the host slept, all of them
 * would be over at once, while their owners live and have not had the time to renew them: whatever was written before counts
 * as renewed at that moment.
 */
import type { Clock, EpochMs } from '@signalbox/kernel/clock';

/** 10 s: less than that is no matter of leases, which are longer than they are renewed by. */
const JUMP_MS = 10_000;

export class LeaseTime {
  private last: { readonly nowMs: EpochMs; readonly atMs: number };
  /** The latest: what the clock said after it, when that was seen, and by how much. */
  private jump: { readonly nowMs: EpochMs; readonly atMs: number; readonly byMs: number } | undefined;

  constructor(
    private readonly clock: Pick<Clock, 'nowMs' | 'monotonicMs'>,
    private readonly leaseMs: number,
  ) {
    this.last = { nowMs: clock.nowMs(), atMs: clock.monotonicMs() };
  }

  /** The wall clock. Whole milliseconds, as what follows. */
  nowMs(): EpochMs {
    const nowMs = this.clock.nowMs();
    const atMs = this.clock.monotonicMs();
    const byMs = Math.round(nowMs - this.last.nowMs - (atMs - this.last.atMs));
    this.last = { nowMs, atMs };
    if (byMs > JUMP_MS) this.jump = { nowMs, atMs, byMs: byMs + this.pardonMs(atMs) };
    // What it said meanwhile tells nothing any more.
    else if (byMs < -JUMP_MS) this.jump = undefined;
    return nowMs;
  }

  /** As `nowMs`, but for what it was set ahead by until living owners have renewed: what ends or is forgotten by then is theirs. */
  judgedMs(): EpochMs {
    return this.nowMs() - this.pardonMs(this.last.atMs);
  }

  /** How long a lease is over; negative: how long it has still to run. */
  overMs(leaseEndsMs: EpochMs): number {
    const nowMs = this.nowMs();
    const { jump, last } = this;
    return jump !== undefined && leaseEndsMs < jump.nowMs ? Math.floor(last.atMs - jump.atMs) - this.leaseMs : nowMs - leaseEndsMs;
  }

  private pardonMs(atMs: number): number {
    return this.jump !== undefined && atMs - this.jump.atMs < this.leaseMs ? this.jump.byMs : 0;
  }
}
