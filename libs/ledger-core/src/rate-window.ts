/** Counts in a ring of short buckets: never more than the limit within any span of the window. */

/** One ring. `counts[b % slots]` holds bucket b for the last `slots` buckets up to `head`. */
export interface RateWindow {
  /** Newest bucket: floor(milliseconds / width). */
  head: number;
  sum: number;
  readonly counts: number[];
}

export interface WindowShape {
  readonly widthMs: number;
  readonly slots: number;
}

/** 60 whole seconds and the one that is running. */
export const MINUTE_WINDOW: WindowShape = { widthMs: 1_000, slots: 61 };
/** Ten tenths of a second and the one that is running. */
export const SECOND_WINDOW: WindowShape = { widthMs: 100, slots: 11 };

export function emptyWindow(shape: WindowShape, nowMs: number): RateWindow {
  return { head: Math.floor(nowMs / shape.widthMs), sum: 0, counts: new Array<number>(shape.slots).fill(0) };
}

/**
 * Moves the head to now and forgets what fell out. A clock that went back moves nothing; by a whole window or more, it begins
 * anew: what was counted at a time to come would not fall out before that time.
 */
export function advanceWindow(window: RateWindow, shape: WindowShape, nowMs: number): void {
  const bucket = Math.floor(nowMs / shape.widthMs);
  if (window.head - bucket >= shape.slots) {
    window.counts.fill(0);
    window.sum = 0;
    window.head = bucket;
    return;
  }
  const steps = Math.min(bucket - window.head, shape.slots);
  for (let i = 1; i <= steps; i += 1) {
    const slot = (window.head + i) % shape.slots;
    window.sum -= window.counts[slot] ?? 0;
    window.counts[slot] = 0;
  }
  if (bucket > window.head) {
    // A jump beyond the ring cleared it whole: its order no longer matters.
    window.head = bucket;
  }
}

/** Counts one in the newest bucket. */
export function addToWindow(window: RateWindow, shape: WindowShape): void {
  const slot = window.head % shape.slots;
  window.counts[slot] = (window.counts[slot] ?? 0) + 1;
  window.sum += 1;
}

function slotOf(bucket: number, { slots }: WindowShape): number {
  return ((bucket % slots) + slots) % slots;
}

/** Milliseconds until at most `target` counts are left, if nothing is added; 0 when that is so now. */
export function drainMs(window: RateWindow, shape: WindowShape, target: number, nowMs: number): number {
  let left = window.sum;
  if (left <= target) return 0;
  if (target === 0) {
    // The last one to fall out is the newest, and it is near the head.
    let newest = window.head;
    while ((window.counts[slotOf(newest, shape)] ?? 0) === 0) newest -= 1;
    return Math.max(1, (newest + shape.slots) * shape.widthMs - nowMs);
  }
  for (let bucket = window.head - shape.slots + 1; bucket <= window.head; bucket += 1) {
    left -= window.counts[slotOf(bucket, shape)] ?? 0;
    if (left <= target) return Math.max(1, (bucket + shape.slots) * shape.widthMs - nowMs);
  }
  return shape.slots * shape.widthMs;
}
