/** Prompts as sparse rows, and ridge regression on them. */

/** Rows in compressed form: row i holds `indices[starts[i] … starts[i + 1]]`, each with its value. */
export interface SparseRows {
  readonly rows: number;
  readonly columns: number;
  readonly starts: Int32Array;
  readonly indices: Int32Array;
  readonly values: Float32Array;
}

const ITERATIONS_MAX = 16;
/** Share of the first residual at which the descent ends. */
const TOLERANCE = 1e-2;

/** Builds rows from lists of (index, value). */
export function sparseRows(lists: readonly (readonly (readonly [number, number])[])[], columns: number): SparseRows {
  const total = lists.reduce((sum, list) => sum + list.length, 0);
  const starts = new Int32Array(lists.length + 1);
  const indices = new Int32Array(total);
  const values = new Float32Array(total);
  let at = 0;
  lists.forEach((list, row) => {
    starts[row] = at;
    for (const [index, value] of list) {
      indices[at] = index;
      values[at] = value;
      at += 1;
    }
  });
  starts[lists.length] = at;
  return { rows: lists.length, columns, starts, indices, values };
}

/** rows × targets. */
export function multiply(matrix: SparseRows, weights: Float64Array, targets: number): Float64Array {
  const { rows, starts, indices, values } = matrix;
  const result = new Float64Array(rows * targets);
  for (let row = 0; row < rows; row += 1) {
    const to = row * targets;
    const end = starts[row + 1] ?? 0;
    for (let k = starts[row] ?? 0; k < end; k += 1) {
      const value = values[k] ?? 0;
      const from = (indices[k] ?? 0) * targets;
      for (let t = 0; t < targets; t += 1) (result[to + t] as number) += (weights[from + t] as number) * value;
    }
  }
  return result;
}

/** columns × targets. */
function multiplyTransposed(matrix: SparseRows, input: Float64Array, targets: number): Float64Array {
  const { rows, columns, starts, indices, values } = matrix;
  const result = new Float64Array(columns * targets);
  for (let row = 0; row < rows; row += 1) {
    const from = row * targets;
    const end = starts[row + 1] ?? 0;
    for (let k = starts[row] ?? 0; k < end; k += 1) {
      const value = values[k] ?? 0;
      const to = (indices[k] ?? 0) * targets;
      for (let t = 0; t < targets; t += 1) (result[to + t] as number) += (input[from + t] as number) * value;
    }
  }
  return result;
}

function scaleRows(values: Float64Array, weights: Float64Array): Float64Array {
  for (let i = 0; i < values.length; i += 1) values[i] = (values[i] ?? 0) * (weights[i] ?? 0);
  return values;
}

/** Sum of squares per target. */
function squares(values: Float64Array, targets: number): Float64Array {
  const sums = new Float64Array(targets);
  for (let i = 0; i < values.length; i += 1) sums[i % targets] = (sums[i % targets] ?? 0) + (values[i] ?? 0) ** 2;
  return sums;
}

/**
 * Weights (columns × targets) that minimise Σ weight·(y − x·w)² + penalty·|w|² for each target, by conjugate gradients.
 * `y` and `rowWeights` are rows × targets; a weight of 0 leaves an outcome out. The descent is stopped early.
 */
export function ridge(matrix: SparseRows, y: Float64Array, rowWeights: Float64Array, targets: number, penalties: readonly number[]): Float64Array {
  const solution = new Float64Array(matrix.columns * targets);
  const residual = multiplyTransposed(matrix, scaleRows(Float64Array.from(y), rowWeights), targets);
  const direction = Float64Array.from(residual);
  let norms = squares(residual, targets);
  const firstNorms = norms;
  for (let iteration = 0; iteration < ITERATIONS_MAX; iteration += 1) {
    const image = multiplyTransposed(matrix, scaleRows(multiply(matrix, direction, targets), rowWeights), targets);
    const curvature = new Float64Array(targets);
    for (let i = 0; i < image.length; i += 1) {
      const t = i % targets;
      const step = direction[i] ?? 0;
      image[i] = (image[i] ?? 0) + (penalties[t] ?? 0) * step;
      curvature[t] = (curvature[t] ?? 0) + step * (image[i] ?? 0);
    }
    const rates = norms.map((norm, t) => ((curvature[t] ?? 0) > 0 ? norm / (curvature[t] ?? 1) : 0));
    for (let i = 0; i < solution.length; i += 1) {
      const rate = rates[i % targets] ?? 0;
      solution[i] = (solution[i] ?? 0) + rate * (direction[i] ?? 0);
      residual[i] = (residual[i] ?? 0) - rate * (image[i] ?? 0);
    }
    const next = squares(residual, targets);
    if (next.every((norm, t) => norm <= TOLERANCE ** 2 * (firstNorms[t] ?? 0))) break;
    const momentum = next.map((norm, t) => ((norms[t] ?? 0) > 0 ? norm / (norms[t] ?? 1) : 0));
    for (let i = 0; i < direction.length; i += 1) direction[i] = (residual[i] ?? 0) + (momentum[i % targets] ?? 0) * (direction[i] ?? 0);
    norms = next;
  }
  return solution;
}

/** The `count` leading eigenvectors of a symmetric matrix, by power iteration and deflation. Deterministic. */
export function leadingDirections(matrix: readonly Float64Array[], count: number): Float64Array[] {
  const size = matrix.length;
  const rest = matrix.map((row) => Float64Array.from(row));
  const found: Float64Array[] = [];
  const apply = (vector: Float64Array): Float64Array => Float64Array.from(rest, (row) => row.reduce((sum, value, j) => sum + value * (vector[j] ?? 0), 0));
  for (let k = 0; k < Math.min(count, size); k += 1) {
    let vector = Float64Array.from({ length: size }, (_, i) => Math.cos(1 + i * 2.399963 + k));
    let value = 0;
    for (let iteration = 0; iteration < 300; iteration += 1) {
      const image = apply(vector);
      value = Math.hypot(...image);
      if (value < 1e-12) return found;
      vector = image.map((entry) => entry / value);
    }
    for (let i = 0; i < size; i += 1) for (let j = 0; j < size; j += 1) (rest[i] as Float64Array)[j] = (rest[i]?.[j] ?? 0) - value * (vector[i] ?? 0) * (vector[j] ?? 0);
    found.push(vector);
  }
  return found;
}
