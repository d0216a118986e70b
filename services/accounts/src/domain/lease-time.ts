/**
 * Leases are stored as wall-clock instants, which replicas share. If the clock is set ahead, or the host slept, all leases would
 * expire at once, although their owners are alive and had no time to renew them. So leases written before such a jump count
 * as renewed at the jump.
 */
import type { Clock, EpochMs } from '@signalbox/kernel/clock';

/** 10 s: smaller jumps do not matter, since a lease is longer than its renewal interval. */
const JUMP_MS = 10_000;

export class LeaseTime {
  private last: { readonly nowMs: EpochMs; readonly atMs: number };
  /** The latest jump: the wall clock after it, the monotonic time when it was noticed, and its size. */
  private jump: { readonly nowMs: EpochMs; readonly atMs: number; readonly byMs: number } | undefined;

  constructor(
    private readonly clock: Pick<Clock, 'nowMs' | 'monotonicMs'>,
    private readonly leaseMs: number,
  ) {
    this.last = { nowMs: clock.nowMs(), atMs: clock.monotonicMs() };
  }

  /** The wall clock in whole milliseconds, like all results below. Also detects jumps. */
  nowMs(): EpochMs {
    const nowMs = this.clock.nowMs();
    const atMs = this.clock.monotonicMs();
    const byMs = Math.round(nowMs - this.last.nowMs - (atMs - this.last.atMs));
    this.last = { nowMs, atMs };
    if (byMs > JUMP_MS) this.jump = { nowMs, atMs, byMs: byMs + this.pardonMs(atMs) };
    // The clock was set back: the earlier jump ahead no longer matters.
    else if (byMs < -JUMP_MS) this.jump = undefined;
    return nowMs;
  }

  /** Like `nowMs`, but for one lease after a jump the jump is subtracted: until living owners have renewed, nothing expires because of it. */
  judgedMs(): EpochMs {
    return this.nowMs() - this.pardonMs(this.last.atMs);
  }

  /** How long ago a lease ended; negative = how long it still runs. */
  overMs(leaseEndsMs: EpochMs): number {
    const nowMs = this.nowMs();
    const { jump, last } = this;
    return jump !== undefined && leaseEndsMs < jump.nowMs ? Math.floor(last.atMs - jump.atMs) - this.leaseMs : nowMs - leaseEndsMs;
  }

  private pardonMs(atMs: number): number {
    return this.jump !== undefined && atMs - this.jump.atMs < this.leaseMs ? this.jump.byMs : 0;
  }
}
