/**
 * How long answers took, kept as counts: durations are counted in steps of 2^(1/5), so that counts of any two batches,
 * days or models can be added, and a percentile of all of them is read at the same price, however many requests there were.
 * What is read is within 8 % of the duration itself.
 */
const STEPS_PER_OCTAVE = 5;
/** 2^22 ms, more than an hour: what is longer counts to the last step. */
const STEPS = 22 * STEPS_PER_OCTAVE;

/** How many durations were in each step, from the first on. */
export type DurationCounts = number[];

/** Counts one duration in whole milliseconds; 0 means that it is not known. */
export function countDuration(counts: DurationCounts, ms: number): void {
  if (!(ms >= 1)) return;
  const step = Math.min(Math.floor(Math.log2(ms) * STEPS_PER_OCTAVE), STEPS - 1);
  while (counts.length <= step) counts.push(0);
  counts[step] = (counts[step] ?? 0) + 1;
}

/** The duration in whole milliseconds that `share` (0 to 1) of them did not exceed; 0 when nothing was counted. */
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
