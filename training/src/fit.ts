/** From outcomes to an artefact: the whole of training, a function of its arguments alone. */
import { CLUSTERS, type Cluster } from '@signalbox/router-core/clusters';
import { BUCKETS, FEATURE_SCHEMA, SHAPE } from '@signalbox/router-core/features';
import { knownShare, standardised } from '@signalbox/router-core/quality';
import { GENERAL_COLUMNS, type ClusterTerms, type Column, type MeasuredModel, type ModelCell, type QualityArtefact, type QualityHeader } from '@signalbox/router-core/quality-artefact';
import { calibrate, type Calibration, type Observation } from './calibrate.js';
import { leadingDirections, multiply, ridge, type SparseRows, sparseRows } from './matrix.js';
import { foldOf, type ModelsFile } from './outcomes.js';
import type { Prompt } from './prompts.js';
import { generalAbilities, type PublicScores } from './public-scores.js';
import { cellMeans, measuredOf, standings, targetsOf, type Scope } from './targets.js';
import { needElsewhere } from './transfer.js';
import { learnVocabulary, MATRIX_COLUMNS, matrixOf, SHAPE_FACTOR, type Vocabulary } from './vocabulary.js';

/** Folds whose columns are learnt without them, for calibration. */
const INNER_FOLDS = 3;
const PROMPTS_MIN = 250;
const MODEL_SAMPLES_MIN = 150;
const DIRECTIONS_MAX = 8;
/** Prompts that a direction needs. */
const PROMPTS_PER_DIRECTION = 100;
// Chosen by cross-validation over whole subjects and benchmarks: strong enough that what is learnt holds elsewhere.
const GENERAL_PENALTY = 30;
const DIFFICULTY_PENALTY = 10;
const SPECIFIC_PENALTY = 8;
const LENGTH_PENALTY = 20;
const VARIANCE_MIN = 0.06;
/** Share of a cluster's prompts that know fewer words than counts in full; how far below that nothing counts. */
const FAMILIAR_QUANTILE = 0.1;
const FAMILIAR_SPAN = 0.4;
/** The largest weights, by share, are cut to the next: they would set the scale of all. */
const CUT_SHARE = 1e-4;
const STEP_MAX = 127;

/** Factors of a calibration, in order. */
const FACTORS = ['difficulty', 'generalDifficulty', 'specific', 'need'] as const;

export interface TrainingOptions {
  readonly dataHash: string;
  readonly publicScores: PublicScores;
  readonly catalogAbility: QualityHeader['catalogAbility'];
  readonly metrics: QualityHeader['metrics'];
}

interface ClusterFit {
  readonly terms: Omit<ClusterTerms, 'firstColumn'>;
  /** MATRIX_COLUMNS × (1 + directions). */
  readonly weights: Float64Array;
  readonly cells: ReadonlyMap<string, ModelCell>;
}

export function fit(prompts: readonly Prompt[], models: ModelsFile, options: TrainingOptions): Omit<QualityArtefact, 'id'> {
  const vocabulary = learnVocabulary(prompts);
  const matrix = matrixOf(prompts, vocabulary);
  const overall = generalAbilities(cellMeans(prompts, models), options.publicScores);
  const standing = standings(overall);
  const folds = Int32Array.from(prompts, ({ outcome }) => foldOf(outcome.stem, INNER_FOLDS, 'calibration'));

  const scope = targetsOf(prompts, models);
  const general = learnColumns(matrix, folds, generalTargets(scope), GENERAL_COLUMNS, [GENERAL_PENALTY, GENERAL_PENALTY]);
  const clusters = CLUSTERS.flatMap((cluster) => {
    const rows = prompts.flatMap((prompt, row) => (prompt.cluster === cluster ? [row] : []));
    return rows.length < PROMPTS_MIN ? [] : [fitCluster(cluster, rows, { prompts, models, matrix, folds, standing, overall, vocabulary, general: general.held })];
  });

  const blocks = [general.weights, ...clusters.map((entry) => entry.weights)];
  const widths = [GENERAL_COLUMNS, ...clusters.map((entry) => entry.terms.directions + 1)];
  const packed = pack(blocks, widths, vocabulary);
  let firstColumn = GENERAL_COLUMNS;
  const terms = clusters.map((entry): ClusterTerms => {
    const own = { ...entry.terms, firstColumn };
    firstColumn += entry.terms.directions + 1;
    return own;
  });
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
  const lengths = new Map([...overall.keys()].flatMap((name) => {
    const tokens = meanOutputTokens(prompts, models, name);
    return tokens === undefined ? [] : [[name, tokens] as const];
  }));
  const usualLength = mean([...lengths.values()]);
  const measured = [...overall].map(([name, ability]): MeasuredModel => {
    const cells = clusters.flatMap((entry) => entry.cells.get(name) ?? []);
    return { name, ability, standing: standing.get(name) ?? 0, outputTokens: lengths.get(name) ?? usualLength, cells };
  });
  return {
    header: {
      featureSchema: FEATURE_SCHEMA,
      dataHash: options.dataHash,
      shapeMean: vocabulary.shapeMean,
      shapeDeviation: vocabulary.shapeDeviation,
      normMin: vocabulary.normMin,
      columns: packed.columns,
      clusters: terms,
      elsewhere: {
        need: needElsewhere(clusters.map(({ terms: { cluster } }) => cluster), { prompts, models, matrix, rows: scope.rows, standing, penalty: GENERAL_PENALTY }),
        offset: Math.min(0, ...clusters.map((entry) => entry.terms.offset)),
        outputTokens: usualLength,
      },
      catalogAbility: options.catalogAbility,
      models: measured,
      metrics: options.metrics,
    },
    weights: packed.weights,
    bucketWeights: vocabulary.bucketWeights,
    knownWords: vocabulary.knownWords,
  };
}

interface Targets {
  /** rows × targets. */
  readonly values: Float64Array;
  /** rows × targets; 0 = not measured. */
  readonly weights: Float64Array;
}

function generalTargets(scope: Scope): Targets {
  const values = new Float64Array(scope.rows.length * GENERAL_COLUMNS);
  const weights = new Float64Array(values.length);
  scope.rows.forEach((row, i) => {
    values.set([row.difficulty, row.need ?? 0], i * GENERAL_COLUMNS);
    weights.set([1, row.need === undefined ? 0 : 1], i * GENERAL_COLUMNS);
  });
  return { values, weights };
}

interface Columns {
  /** Learnt from all rows: MATRIX_COLUMNS × targets. */
  readonly weights: Float64Array;
  /** Each row's values by weights learnt without its fold: rows × targets. */
  readonly held: Float64Array;
}

function learnColumns(matrix: SparseRows, folds: Int32Array, targets: Targets, count: number, penalties: readonly number[]): Columns {
  const held = new Float64Array(matrix.rows * count);
  for (let fold = 0; fold < INNER_FOLDS; fold += 1) {
    const rowWeights = targets.weights.map((weight, i) => (folds[Math.floor(i / count)] === fold ? 0 : weight));
    const values = multiply(matrix, ridge(matrix, targets.values, rowWeights, count, penalties), count);
    for (let i = 0; i < held.length; i += 1) if (folds[Math.floor(i / count)] === fold) held[i] = values[i] ?? 0;
  }
  return { weights: ridge(matrix, targets.values, targets.weights, count, penalties), held };
}

interface Surroundings {
  readonly prompts: readonly Prompt[];
  readonly models: ModelsFile;
  readonly matrix: SparseRows;
  readonly folds: Int32Array;
  readonly standing: ReadonlyMap<string, number>;
  readonly overall: ReadonlyMap<string, number>;
  readonly vocabulary: Vocabulary;
  readonly general: Float64Array;
}

function fitCluster(cluster: Cluster, rows: readonly number[], around: Surroundings): ClusterFit {
  const { models, standing, overall } = around;
  const prompts = rows.flatMap((row) => around.prompts[row] ?? []);
  const matrix = matrixOf(prompts, around.vocabulary);
  const folds = Int32Array.from(rows, (row) => around.folds[row] ?? 0);
  const general = Float64Array.from(rows.flatMap((row) => [around.general[row * GENERAL_COLUMNS] ?? 0, around.general[row * GENERAL_COLUMNS + 1] ?? 0]));
  const scope = targetsOf(prompts, models);
  const samples = new Map<string, number>();
  for (const prompt of prompts) for (const [model] of measuredOf(prompt, models)) samples.set(model, (samples.get(model) ?? 0) + 1);
  const names = [...samples].filter(([, count]) => count >= MODEL_SAMPLES_MIN).map(([name]) => name);

  const columns = learnColumns(matrix, folds, clusterTargets(scope, names), names.length + 1, [DIFFICULTY_PENALTY, ...names.map(() => SPECIFIC_PENALTY)]);
  const basis = basisOf(columns.held, names.length, Math.min(DIRECTIONS_MAX, Math.floor(rows.length / PROMPTS_PER_DIRECTION)));
  const count = basis.length + 1;
  const held = project(columns.held, basis, names.length);
  const known = prompts.map((prompt) => shareOfOthers(prompt, around.vocabulary)).sort((left, right) => left - right);
  const knownFull = known[Math.floor(known.length * FAMILIAR_QUANTILE)] ?? 1;
  const variances = names.map((name) => Math.max(VARIANCE_MIN, scope.variances.get(name) ?? 0.25));
  const prior = names.map((name) => scope.additive.ability.get(name) ?? 0);

  const observations = prompts.flatMap((prompt, row) => {
    const outcomes = measuredOf(prompt, models).filter(([name]) => names.includes(name));
    return outcomes.map(([name, outcome]): Observation => {
      const model = names.indexOf(name);
      let specific = 0;
      basis.forEach((direction, i) => (specific += ((direction[model] ?? 0) * (held[row * count + 1 + i] ?? 0)) / (variances[model] ?? 0.25)));
      const needed = (standing.get(name) ?? 0) * (general[row * GENERAL_COLUMNS + 1] ?? 0);
      const hardness = -(general[row * GENERAL_COLUMNS] ?? 0);
      return { model, outcome, weight: 1 / Math.sqrt(outcomes.length), factors: [-(held[row * count] ?? 0), hardness, specific, needed] };
    });
  });
  const own = calibrate(observations, prior, FACTORS.length);
  const factors = Object.fromEntries(FACTORS.map((name, i) => [name, own.factors[i] ?? 0])) as Record<(typeof FACTORS)[number], number>;
  const offset = names.reduce((sum, name, i) => sum + (own.abilities[i] ?? 0) - (overall.get(name) ?? 0), 0) / names.length;
  return {
    terms: { cluster, directions: basis.length, ...factors, offset, knownFloor: knownFull - FAMILIAR_SPAN, knownFull, lengthShape: lengthShape(prompts, around.vocabulary) },
    weights: project(columns.weights, basis, names.length),
    cells: cellsOf(cluster, names, own, basis, variances, samples, prompts, models),
  };
}

function cellsOf(cluster: Cluster, names: readonly string[], own: Calibration, basis: readonly Float64Array[], variances: readonly number[], samples: ReadonlyMap<string, number>, prompts: readonly Prompt[], models: ModelsFile): Map<string, ModelCell> {
  return new Map(names.map((name, i): [string, ModelCell] => [name, {
    cluster,
    ability: own.abilities[i] ?? 0,
    deviation: own.deviations[i] ?? 1,
    directions: basis.map((direction) => (direction[i] ?? 0) / (variances[i] ?? 0.25)),
    outputTokens: meanOutputTokens(prompts, models, name) ?? 1,
    samples: samples.get(name) ?? 0,
  }]));
}

/** Column 0: difficulty with the level of the data set; then one column per model. */
function clusterTargets(scope: Scope, names: readonly string[]): Targets {
  const count = names.length + 1;
  const values = new Float64Array(scope.rows.length * count);
  const weights = new Float64Array(values.length);
  scope.rows.forEach((row, i) => {
    values[i * count] = row.difficulty + row.level;
    weights[i * count] = 1;
    names.forEach((name, model) => {
      const residual = row.residuals.get(name);
      if (residual === undefined) return;
      values[i * count + 1 + model] = residual;
      weights[i * count + 1 + model] = 1;
    });
  });
  return { values, weights };
}

/** The directions in which predicted departures vary most. */
function basisOf(held: Float64Array, models: number, directions: number): Float64Array[] {
  const covariance = Array.from({ length: models }, () => new Float64Array(models));
  const count = models + 1;
  for (let from = 1; from < held.length; from += count) {
    for (let i = 0; i < models; i += 1) {
      const row = covariance[i] as Float64Array;
      for (let j = 0; j < models; j += 1) row[j] = (row[j] ?? 0) + (held[from + i] ?? 0) * (held[from + j] ?? 0);
    }
  }
  return leadingDirections(covariance, directions);
}

/** Keeps column 0 and projects the models' columns on the directions. */
function project(values: Float64Array, basis: readonly Float64Array[], models: number): Float64Array {
  const rows = values.length / (models + 1);
  const count = basis.length + 1;
  const result = new Float64Array(rows * count);
  for (let row = 0; row < rows; row += 1) {
    const from = row * (models + 1);
    result[row * count] = values[from] ?? 0;
    basis.forEach((direction, k) => {
      let sum = 0;
      for (let model = 0; model < models; model += 1) sum += (direction[model] ?? 0) * (values[from + 1 + model] ?? 0);
      result[row * count + 1 + k] = sum;
    });
  }
  return result;
}

/** Share of a training prompt's words that another training prompt holds. */
function shareOfOthers({ features }: Prompt, { wordPrompts, knownWords }: Vocabulary): number {
  const others = features.words.filter((word) => (wordPrompts.get(word) ?? 0) > 2);
  return (knownShare(features.words, knownWords) * others.length) / Math.max(1, features.words.filter((word) => (wordPrompts.get(word) ?? 0) > 1).length);
}

function meanOutputTokens(prompts: readonly Prompt[], models: ModelsFile, name: string): number | undefined {
  let sum = 0;
  let count = 0;
  for (const { outcome } of prompts) {
    const tokens = outcome.outputTokens[models.datasets[outcome.dataset]?.models.indexOf(name) ?? -1];
    if (tokens === undefined) continue;
    sum += tokens;
    count += 1;
  }
  return count === 0 ? undefined : Math.max(1, sum / count);
}

/** How the length of answers follows the prompt's shape, in logs. */
function lengthShape(prompts: readonly Prompt[], vocabulary: Vocabulary): number[] {
  const counted = prompts.filter(({ outcome }) => outcome.hasCountedOutput);
  if (counted.length < PROMPTS_MIN) return SHAPE.map(() => 0);
  const logs = counted.map(({ outcome }) => outcome.outputTokens.reduce((sum, tokens) => sum + Math.log(1 + tokens), 0) / outcome.outputTokens.length);
  const groups = new Map<string, { sum: number; count: number }>();
  counted.forEach(({ outcome }, i) => {
    const group = groups.get(outcome.dataset) ?? { sum: 0, count: 0 };
    groups.set(outcome.dataset, group);
    group.sum += logs[i] ?? 0;
    group.count += 1;
  });
  const y = Float64Array.from(counted, ({ outcome }, i) => {
    const group = groups.get(outcome.dataset);
    return (logs[i] ?? 0) - (group === undefined ? 0 : group.sum / group.count);
  });
  const matrix = sparseRows(counted.map(({ features }) => [...standardised(features.shape, vocabulary.shapeMean, vocabulary.shapeDeviation)].map((value, i) => [i, value] as const)), SHAPE.length);
  return [...ridge(matrix, y, new Float64Array(counted.length).fill(1), 1, [LENGTH_PENALTY])];
}

/** Weights as signed bytes, all columns of a bucket together; the shape's weights stay exact. */
function pack(blocks: readonly Float64Array[], widths: readonly number[], vocabulary: Vocabulary): { readonly weights: Int8Array; readonly columns: Column[] } {
  const stride = widths.reduce((sum, width) => sum + width, 0);
  const weights = new Int8Array(BUCKETS * stride);
  const columns: Column[] = [];
  blocks.forEach((block, b) => {
    const width = widths[b] ?? 0;
    for (let column = 0; column < width; column += 1) {
      const values = Float64Array.from({ length: BUCKETS }, (_, bucket) => (block[bucket * width + column] ?? 0) * (vocabulary.bucketWeights[bucket] ?? 0));
      const sorted = values.map(Math.abs).sort();
      const scale = Math.max(1e-9, (sorted[Math.floor(BUCKETS * (1 - CUT_SHARE))] ?? 0) / STEP_MAX);
      const at = columns.length;
      values.forEach((value, bucket) => (weights[bucket * stride + at] = Math.min(STEP_MAX, Math.max(-STEP_MAX, Math.round(value / scale)))));
      columns.push({ scale, shape: SHAPE.map((_, i) => (block[(BUCKETS + i) * width + column] ?? 0) * SHAPE_FACTOR) });
    }
  });
  if (blocks.some((block, b) => block.length !== MATRIX_COLUMNS * (widths[b] ?? 0))) throw new Error('A block of weights has the wrong size.');
  return { weights, columns };
}
