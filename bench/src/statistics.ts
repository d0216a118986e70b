/** Percentiles of samples, and ratios that know when they have no base. */

/** The p-th percentile (0 to 100) by nearest rank; NaN without samples. Does not change `samples`. */
export function percentile(samples: readonly number[], p: number): number {
  if (samples.length === 0) return Number.NaN;
  const sorted = Float64Array.from(samples).sort();
  const rank = Math.min(sorted.length, Math.max(1, Math.ceil((p / 100) * sorted.length)));
  return sorted[rank - 1] ?? Number.NaN;
}

/** The middle of `samples`, the mean of both middles for an even count; NaN without samples. */
export function median(samples: readonly number[]): number {
  const sorted = samples.filter((sample) => !Number.isNaN(sample)).sort((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)];
  if (upper === undefined) return Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[sorted.length / 2 - 1] ?? upper)) / 2;
}

/** `part / base`; NaN when the base is missing or not above zero. */
export function ratio(part: number, base: number): number {
  return base > 0 ? part / base : Number.NaN;
}

/** The median of the slopes between any two points (Theil and Sen): a few outliers do not bend it. Units of y a unit of x; NaN below two points. */
export function slope(points: readonly (readonly [x: number, y: number])[]): number {
  const slopes: number[] = [];
  for (const [index, [x, y]] of points.entries()) {
    for (const [earlierX, earlierY] of points.slice(0, index)) if (x !== earlierX) slopes.push((y - earlierY) / (x - earlierX));
  }
  return median(slopes);
}
