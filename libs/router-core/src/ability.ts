/**
 * One ability per model in [0, 1] from public scores of several sources.
 *
 * Sources differ in scale and in which models they cover, so each is mapped onto the first one by a straight
 * line fitted over the models both cover; estimates are then averaged by how well each line fits.
 */

/** Scores of one model by source name, in the source's own unit; higher is better. */
export type Scores = Readonly<Record<string, number>>;

/** Value of the reference source that counts as ability 1. */
const REFERENCE_FULL = 70;
const PAIRS_MIN = 6;
const RESIDUAL_VARIANCE_MIN = 4;
/** Ability of an unmeasured model: below the median, whatever its price. */
const QUANTILE_OF_UNKNOWN = 0.25;
const ABILITY_WITHOUT_ANY_SCORE = 0.3;

interface Line {
  readonly slope: number;
  readonly offset: number;
  readonly residualVariance: number;
}

function fitLine(pairs: readonly (readonly [number, number])[]): Line | undefined {
  if (pairs.length < PAIRS_MIN) return undefined;
  const meanX = pairs.reduce((sum, [x]) => sum + x, 0) / pairs.length;
  const meanY = pairs.reduce((sum, [, y]) => sum + y, 0) / pairs.length;
  let covariance = 0;
  let variance = 0;
  for (const [x, y] of pairs) {
    covariance += (x - meanX) * (y - meanY);
    variance += (x - meanX) ** 2;
  }
  if (variance === 0 || covariance <= 0) return undefined;
  const slope = covariance / variance;
  const offset = meanY - slope * meanX;
  const residual = pairs.reduce((sum, [x, y]) => sum + (y - offset - slope * x) ** 2, 0) / pairs.length;
  return { slope, offset, residualVariance: Math.max(residual, RESIDUAL_VARIANCE_MIN) };
}

function clamp(value: number): number {
  return Math.min(1, Math.max(0, value));
}

/** Abilities in the order of `models`. `reference` names the source that fixes the scale. Undefined scores get a low, price-neutral default. */
export function abilitiesOf(models: readonly Scores[], reference: string): number[] {
  const sources = new Set(models.flatMap((scores) => Object.keys(scores)));
  sources.delete(reference);
  const lines = new Map<string, Line>();
  for (const source of sources) {
    const pairs = models.flatMap((scores) => {
      const x = scores[source];
      const y = scores[reference];
      return x === undefined || y === undefined ? [] : [[x, y] as const];
    });
    const line = fitLine(pairs);
    if (line !== undefined) lines.set(source, line);
  }
  const measured = models.map((scores) => {
    const direct = scores[reference];
    let weight = direct === undefined ? 0 : 1 / RESIDUAL_VARIANCE_MIN;
    let sum = (direct ?? 0) * weight;
    for (const [source, line] of lines) {
      const score = scores[source];
      if (score === undefined) continue;
      sum += (line.offset + line.slope * score) / line.residualVariance;
      weight += 1 / line.residualVariance;
    }
    return weight === 0 ? undefined : clamp(sum / weight / REFERENCE_FULL);
  });
  const known = measured.filter((value) => value !== undefined).sort((left, right) => left - right);
  const fallback = known[Math.floor(known.length * QUANTILE_OF_UNKNOWN)] ?? ABILITY_WITHOUT_ANY_SCORE;
  return measured.map((value) => value ?? fallback);
}
