/**
 * A histogram of durations with exponential buckets of factor 2^(1/5). Histograms of any batches, days or models can be added,
 * and reading a percentile costs the same for any number of requests. The result is within 8 % of the real duration.
 */
const STEPS_PER_OCTAVE = 5;
/** Up to 2^22 ms, more than an hour; longer durations count in the last bucket. */
const STEPS = 22 * STEPS_PER_OCTAVE;

/** Number of durations in each bucket, from the first on. */
export type DurationCounts = number[];

/** Counts one duration in whole milliseconds; 0 = unknown, not counted. */
export function countDuration(counts: DurationCounts, ms: number): void {
  if (!(ms >= 1)) return;
  const step = Math.min(Math.floor(Math.log2(ms) * STEPS_PER_OCTAVE), STEPS - 1);
  while (counts.length <= step) counts.push(0);
  counts[step] = (counts[step] ?? 0) + 1;
}

/** The duration in whole milliseconds that `share` (0 to 1) of them did not exceed; 0 if nothing was counted. */
export function percentileMs(counts: readonly number[], share: number): number {
  const total = counts.reduce((sum, count) => sum + count, 0);
  const rank = Math.max(1, Math.ceil(total * share));
  let seen = 0;
  for (let step = 0; step < counts.length; step += 1) {
    seen += counts[step] ?? 0;
    if (seen >= rank) return Math.round(2 ** ((step + 0.5) / STEPS_PER_OCTAVE));
  }
  return 0;
}
