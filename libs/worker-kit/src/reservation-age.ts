/** How long ago requests were admitted. The time of admission comes from the clock of quota's store, not from this host's. */
import type { Clock } from '@signalbox/kernel/clock';

/** A clock that was corrected is trusted again after 10 to 20 min. */
const REMEMBERED_MS = 600_000;

/**
 * A host whose clock is behind would take every request for younger than it is, and one that waited too long for fresh. But no
 * request arrives before it was admitted: one that seems to shows how far the clock is behind.
 */
export class ReservationAge {
  /** The furthest that a request seemed to come from the future, in the present period and in the one before. */
  private lagMs = 0;
  private earlierLagMs = 0;
  private sinceMs: number;

  constructor(private readonly clock: Pick<Clock, 'nowMs' | 'monotonicMs'>) {
    this.sinceMs = clock.monotonicMs();
  }

  /** Milliseconds since the reservation, never too few. Infinity if the request itself shows that the clock is further behind than was known. */
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
