/** Sliding window of ten 30 s slots, each a histogram with buckets 10 % apart: gives quantiles of the last five minutes, accurate to 5 %. */

const SLOT_MS = 30_000;
const SLOTS = 10;
const GROWTH = Math.log(1.1);
/** Values from 1 to about 1.1^160 = 4 million; values outside count in the nearest bucket. */
const BUCKETS = 160;

interface Slot {
  epoch: number;
  readonly counts: Uint32Array;
  total: number;
}

export interface SlidingWindow {
  /** `value` > 0, `nowMs` on any monotonic clock. */
  add(value: number, nowMs: number): void;
  /** Number of samples in the last five minutes; with `sinceMs`, only of slots that began then or later. */
  count(nowMs: number, sinceMs?: number): number;
  /** Quantile (0 to 1) of those samples; undefined without samples. */
  quantile(quantile: number, nowMs: number, sinceMs?: number): number | undefined;
}

export function createSlidingWindow(): SlidingWindow {
  const slots: Slot[] = [];
  const live = (nowMs: number, sinceMs = -Infinity): Slot[] => {
    const oldest = Math.max(Math.floor(nowMs / SLOT_MS) - SLOTS + 1, Math.ceil(sinceMs / SLOT_MS));
    return slots.filter((slot) => slot.epoch >= oldest);
  };
  return {
    add: (value, nowMs) => {
      const epoch = Math.floor(nowMs / SLOT_MS);
      let slot = slots.find((candidate) => candidate.epoch === epoch);
      if (slot === undefined) {
        const reused = slots.length < SLOTS ? undefined : slots.reduce((oldest, candidate) => (candidate.epoch < oldest.epoch ? candidate : oldest));
        if (reused === undefined) {
          slot = { epoch, counts: new Uint32Array(BUCKETS), total: 0 };
          slots.push(slot);
        } else {
          reused.epoch = epoch;
          reused.counts.fill(0);
          reused.total = 0;
          slot = reused;
        }
      }
      const bucket = Math.min(BUCKETS - 1, Math.max(0, Math.floor(Math.log(Math.max(value, 1)) / GROWTH)));
      slot.counts[bucket] = (slot.counts[bucket] ?? 0) + 1;
      slot.total += 1;
    },
    count: (nowMs, sinceMs) => live(nowMs, sinceMs).reduce((sum, slot) => sum + slot.total, 0),
    quantile: (quantile, nowMs, sinceMs) => {
      const current = live(nowMs, sinceMs);
      const total = current.reduce((sum, slot) => sum + slot.total, 0);
      if (total === 0) return undefined;
      let rest = Math.max(1, Math.ceil(quantile * total));
      for (let bucket = 0; bucket < BUCKETS; bucket += 1) {
        for (const slot of current) rest -= slot.counts[bucket] ?? 0;
        if (rest <= 0) return Math.exp((bucket + 0.5) * GROWTH);
      }
      return undefined;
    },
  };
}
