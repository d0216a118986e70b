/** How long ago requests were admitted, where the clock that says when is quota's store and not this host's. */
import type { Clock } from '@signalbox/kernel/clock';

/** 10 to 20 min: a clock that was set right is trusted again after that. */
const REMEMBERED_MS = 600_000;

/**
 * A host whose clock is behind takes every request for younger than it is, and one that waited too long for fresh. Nothing
 * comes before it was admitted: what seems to shows how far behind the clock is.
 */
export class ReservationAge {
  /** The furthest that a request seemed to come from the time to come, now and in the span before. */
  private lagMs = 0;
  private earlierLagMs = 0;
  private sinceMs: number;

  constructor(private readonly clock: Pick<Clock, 'nowMs' | 'monotonicMs'>) {
    this.sinceMs = clock.monotonicMs();
  }

  /** Milliseconds since the reservation, never too few; Infinity where the request itself shows that the clock is further behind than was known. */
  ageMs(reservedAtMs: number): number {
    const nowMs = this.clock.monotonicMs();
    if (nowMs - this.sinceMs >= REMEMBERED_MS) {
      this.earlierLagMs = this.lagMs;
      this.lagMs = 0;
      this.sinceMs = nowMs;
    }
    const apartMs = this.clock.nowMs() - reservedAtMs;
    const knownMs = Math.max(this.lagMs, this.earlierLagMs);
    this.lagMs = Math.max(this.lagMs, -apartMs);
    return -apartMs > knownMs ? Infinity : apartMs + knownMs;
  }
}
