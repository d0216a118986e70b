/** Logistic regression that turns raw columns into probabilities, on prompts whose columns were learnt without them. */

export interface Observation {
  /** Position of the model. */
  readonly model: number;
  /** Values of the shared factors. */
  readonly factors: readonly number[];
  /** 0 or 1. */
  readonly outcome: number;
  readonly weight: number;
}

export interface Calibration {
  /** Log-odds by model. */
  readonly abilities: readonly number[];
  /** Standard deviations of `abilities`. */
  readonly deviations: readonly number[];
  /** Never below 0: a column that does not help counts for nothing. */
  readonly factors: readonly number[];
}

const NEWTON_STEPS = 12;
/** Precision by which a factor is held at 0: where outcomes are few, it stays there. */
const FACTOR_HOLD = 3;
const ABILITY_HOLD = 2;

/** Solves a·x = b for a symmetric positive matrix. */
function solve(a: readonly Float64Array[], b: Float64Array): Float64Array {
  const n = b.length;
  const rows = a.map((row, i) => Float64Array.from([...row, b[i] ?? 0]));
  for (let pivot = 0; pivot < n; pivot += 1) {
    const from = rows[pivot] as Float64Array;
    for (let i = 0; i < n; i += 1) {
      const row = rows[i] as Float64Array;
      if (i === pivot) continue;
      const share = (row[pivot] ?? 0) / (from[pivot] ?? 1);
      for (let j = pivot; j <= n; j += 1) row[j] = (row[j] ?? 0) - share * (from[j] ?? 0);
    }
  }
  return Float64Array.from(rows, (row, i) => (row[n] ?? 0) / (row[i] ?? 1));
}

/** Fits abilities, held near `prior`, and `factors`; a factor that comes out negative is left out. */
export function calibrate(observations: readonly Observation[], prior: readonly number[], factorCount: number): Calibration {
  const excluded = new Set<number>();
  for (;;) {
    const result = newton(observations, prior, factorCount, excluded);
    const worst = result.factors.findIndex((factor) => factor < 0);
    if (worst < 0) return result;
    excluded.add(worst);
  }
}

function newton(observations: readonly Observation[], prior: readonly number[], factorCount: number, excluded: ReadonlySet<number>): Calibration {
  const models = prior.length;
  const size = models + factorCount;
  const values = Float64Array.from([...prior, ...new Array<number>(factorCount).fill(0)]);
  let hessian: Float64Array[] = [];
  for (let step = 0; step < NEWTON_STEPS; step += 1) {
    const gradient = new Float64Array(size);
    hessian = Array.from({ length: size }, () => new Float64Array(size));
    for (const { model, factors, outcome, weight } of observations) {
      let logOdds = values[model] ?? 0;
      for (let i = 0; i < factorCount; i += 1) if (!excluded.has(i)) logOdds += (values[models + i] ?? 0) * (factors[i] ?? 0);
      const share = 1 / (1 + Math.exp(-logOdds));
      const error = weight * (outcome - share);
      const curvature = weight * share * (1 - share);
      const own = hessian[model] as Float64Array;
      gradient[model] = (gradient[model] ?? 0) + error;
      own[model] = (own[model] ?? 0) + curvature;
      for (let i = 0; i < factorCount; i += 1) {
        if (excluded.has(i)) continue;
        const at = models + i;
        const row = hessian[at] as Float64Array;
        const factor = factors[i] ?? 0;
        gradient[at] = (gradient[at] ?? 0) + error * factor;
        own[at] = (own[at] ?? 0) + curvature * factor;
        row[model] = (row[model] ?? 0) + curvature * factor;
        for (let j = 0; j < factorCount; j += 1) if (!excluded.has(j)) row[models + j] = (row[models + j] ?? 0) + curvature * factor * (factors[j] ?? 0);
      }
    }
    for (let i = 0; i < size; i += 1) {
      const hold = i < models ? ABILITY_HOLD : FACTOR_HOLD;
      const row = hessian[i] as Float64Array;
      row[i] = (row[i] ?? 0) + hold;
      gradient[i] = (gradient[i] ?? 0) - hold * ((values[i] ?? 0) - (prior[i] ?? 0));
    }
    solve(hessian, gradient).forEach((change, i) => (values[i] = (values[i] ?? 0) + change));
  }
  return { abilities: [...values.subarray(0, models)], deviations: Array.from({ length: models }, (_, i) => 1 / Math.sqrt(hessian[i]?.[i] ?? 1)), factors: [...values.subarray(models)] };
}
