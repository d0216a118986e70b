/**
 * Predicted quality: log-odds `a[m,k] − d(x) + g·δ_m(x)` (docs/auto.md).
 *
 * `a` is the measured ability of a model in the prompt's cluster, `d` a difficulty shared by all models, `δ` the difference
 * that this prompt makes for one model. A cluster's own columns fade out if the prompt's words are unknown; general columns,
 * which also predicted subjects left out of training, remain. A model without measurements uses its general ability. For a
 * kind of task without measurements, the text only determines the kind, unless training showed more (`elsewhere.need`).
 */
import { KIN, type Cluster, type PromptSetting } from './clusters.js';
import { BUCKETS_MAX, createFeatureExtractor, SHAPE, type PromptFeatures } from './features.js';
import { GENERAL_DIFFICULTY, GENERAL_NEED, WORD_BITS, type ClusterTerms, type MeasuredModel, type QualityArtefact, type QualityHeader } from './quality-artefact.js';

/** A model to predict for: by its measurements, found by name; else by an ability on the catalog's scale. */
export interface JudgedModel {
  readonly measured: string | undefined;
  /** In [0, 1]. */
  readonly ability: number;
}

/** The prediction for each judged model, in their order. */
export interface Prediction {
  readonly cluster: Cluster;
  /** Log-odds that the prompt's difficulty subtracts for every model. */
  readonly difficulty: number;
  /** 1 = the cluster's own columns count in full, 0 = only general ones. */
  readonly familiarity: number;
  /** Probability of a good answer, in [0, 1]. */
  readonly quality: readonly number[];
  /** Standard deviation of a model's log-odds, for exploration. */
  readonly deviation: readonly number[];
  /** Expected tokens of an answer. */
  readonly outputTokens: readonly number[];
}

export type QualityPredictor = (text: string, setting: PromptSetting) => Prediction;

/** Standardised shape values are clamped to this, so that no single count dominates. */
const SHAPE_MAX = 3;
const WORDS_MIN = 8;
const DEVIATION_OF_UNMEASURED = 1;
const STANDING_MAX = 1;
/** Log-odds of ability per unit of `standing`. */
export const ABILITY_PER_STANDING = 2.5;

const sigmoid = (value: number): number => 1 / (1 + Math.exp(-value));
const clamp = (value: number, low: number, high: number): number => Math.min(high, Math.max(low, value));

/** Position of a word's bit in the set of known words. */
export function wordBit(hash: number): number {
  return Math.imul(hash, 0x9e3779b1) & (WORD_BITS - 1);
}

/** The `standing` of an ability among the measured ones. */
function standingOf(ability: number, middle: number): number {
  return clamp((ability - middle) / ABILITY_PER_STANDING, -STANDING_MAX, STANDING_MAX);
}

/** Share of words that occurred in training; a text with few words counts as unknown. */
export function knownShare(words: Uint32Array, knownWords: Uint8Array): number {
  let known = 0;
  for (let i = 0; i < words.length; i += 1) {
    const bit = wordBit(words[i] ?? 0);
    known += ((knownWords[bit >>> 3] ?? 0) >>> (bit & 7)) & 1;
  }
  return known / Math.max(words.length, WORDS_MIN);
}

/** Standardised and clamped to ±SHAPE_MAX. */
export function standardised(shape: Float64Array, mean: readonly number[], deviation: readonly number[]): Float64Array {
  const values = new Float64Array(SHAPE.length);
  for (let i = 0; i < values.length; i += 1) values[i] = clamp(((shape[i] ?? 0) - (mean[i] ?? 0)) / (deviation[i] || 1), -SHAPE_MAX, SHAPE_MAX);
  return values;
}

/** Creates a predictor for `models`. It reuses buffers, but its answers depend only on its arguments. */
export function createQualityPredictor(artefact: QualityArtefact, models: readonly JudgedModel[]): QualityPredictor {
  const { clusters, elsewhere } = artefact.header;
  const measured = new Set<Cluster>(clusters.map(({ cluster }) => cluster)); // kept: built once from the artefact.
  const extract = createFeatureExtractor((cluster) => elsewhere.need !== 0 || measured.has(cluster));
  const judge = createJudge(artefact, models);
  return (text, setting) => judge(extract(text, setting));
}

interface Panel {
  readonly abilities: Float64Array;
  /** models × directions. */
  readonly directions: Float64Array;
  readonly deviations: readonly number[];
  readonly outputTokens: Float64Array;
}

/** Columns summed at once: the rows lie far apart in memory, the columns of one beside each other. */
const BLOCK = 4;

/** Sums BLOCK columns over `rows`, from the column `first` on, into `sums`. */
function sumBlock(sums: Int32Array, weights: Int8Array, rows: Int32Array, first: number): void {
  let [a, b, c, d] = [0, 0, 0, 0];
  for (let i = 0; i < rows.length; i += 1) {
    const at = (rows[i] ?? 0) + first;
    a += weights[at] ?? 0;
    b += weights[at + 1] ?? 0;
    c += weights[at + 2] ?? 0;
    d += weights[at + 3] ?? 0;
  }
  sums[first] = a;
  sums[first + 1] = b;
  sums[first + 2] = c;
  sums[first + 3] = d;
}

/** Fills `rows` with the offsets of the rows of those `buckets` that have a weight; returns their number and the sum of their squared weights. */
function findRows(rows: Int32Array, buckets: Uint16Array, bucketWeights: Uint8Array, stride: number): { readonly count: number; readonly squares: number } {
  let count = 0;
  let squares = 0;
  for (let i = 0; i < buckets.length; i += 1) {
    const bucket = buckets[i] ?? 0;
    const weight = bucketWeights[bucket] ?? 0;
    if (weight === 0) continue;
    squares += weight * weight;
    rows[count] = bucket * stride;
    count += 1;
  }
  return { count, squares };
}

/** From features to a prediction. */
export function createJudge({ header, weights, bucketWeights, knownWords }: QualityArtefact, models: readonly JudgedModel[]): (features: PromptFeatures) => Prediction {
  const byName = new Map(header.models.map((model) => [model.name, model])); // kept: built once from the artefact.
  const measured = models.map((model) => (model.measured === undefined ? undefined : byName.get(model.measured)));
  const middle = header.models.reduce((sum, model) => sum + model.ability, 0) / header.models.length;
  const general = models.map((model, index) => measured[index]?.ability ?? header.catalogAbility.offset + header.catalogAbility.slope * model.ability);
  const standings = measured.map((model, index) => model?.standing ?? standingOf(general[index] ?? middle, middle));
  const panelOf = (terms: ClusterTerms | undefined): Panel => buildPanel(terms, measured, general, header.elsewhere);
  const panels = new Map(header.clusters.map((terms) => [terms.cluster, { terms, panel: panelOf(terms) }])); // kept: built once from the artefact.
  const unmeasured = panelOf(undefined);
  const panelOfKin = (cluster: Cluster): Panel => panels.get(KIN[cluster] ?? cluster)?.panel ?? unmeasured;
  const stride = header.columns.length;
  const rowSpace = new Int32Array(BUCKETS_MAX);
  const sums = new Int32Array(stride + BLOCK);

  return ({ cluster, buckets, words, shape }) => {
    const entry = panels.get(cluster);
    const terms = entry?.terms;
    const panel = entry?.panel ?? panelOfKin(cluster);
    const own: number[] = [];
    let [familiarity, difficulty, need, lengthFactor] = [0, 0, 0, 1];
    if (terms !== undefined || header.elsewhere.need !== 0) {
      const { count, squares } = findRows(rowSpace, buckets, bucketWeights, stride);
      const rows = rowSpace.subarray(0, count);
      const norm = Math.max(Math.sqrt(squares), header.normMin);
      const standard = standardised(shape, header.shapeMean, header.shapeDeviation);
      const valueOf = (column: number): number => {
        const { scale, shape: shapeWeights } = header.columns[column] ?? { scale: 0, shape: [] };
        let value = ((sums[column] ?? 0) * scale) / norm;
        for (let i = 0; i < standard.length; i += 1) value += (shapeWeights[i] ?? 0) * (standard[i] ?? 0);
        return value;
      };
      sumBlock(sums, weights, rows, 0);
      need = (terms ?? header.elsewhere).need * valueOf(GENERAL_NEED);
      if (terms !== undefined) {
        const { firstColumn, directions } = terms;
        const generalDifficulty = terms.generalDifficulty * valueOf(GENERAL_DIFFICULTY);
        // The last block ends with the row: reading behind the table would make V8 check each access.
        for (let first = Math.max(BLOCK, firstColumn); first <= firstColumn + directions; first += BLOCK) sumBlock(sums, weights, rows, Math.max(0, Math.min(first, stride - BLOCK)));
        familiarity = clamp((knownShare(words, knownWords) - terms.knownFloor) / (terms.knownFull - terms.knownFloor), 0, 1);
        difficulty = generalDifficulty + terms.difficulty * familiarity * valueOf(firstColumn);
        for (let i = 1; i <= directions; i += 1) own.push(terms.specific * familiarity * valueOf(firstColumn + i));
        lengthFactor = Math.exp(terms.lengthShape.reduce((sum, weight, i) => sum + weight * (standard[i] ?? 0), 0));
      }
    }
    const quality: number[] = new Array<number>(models.length);
    const outputTokens: number[] = new Array<number>(models.length);
    for (let model = 0; model < models.length; model += 1) {
      let logOdds = (panel.abilities[model] ?? 0) - difficulty + need * (standings[model] ?? 0);
      for (let i = 0; i < own.length; i += 1) logOdds += (panel.directions[model * own.length + i] ?? 0) * (own[i] ?? 0);
      quality[model] = sigmoid(logOdds);
      outputTokens[model] = (panel.outputTokens[model] ?? 0) * lengthFactor;
    }
    return { cluster, difficulty, familiarity, quality, deviation: panel.deviations, outputTokens };
  };
}

function buildPanel(terms: ClusterTerms | undefined, measured: readonly (MeasuredModel | undefined)[], general: readonly number[], elsewhere: QualityHeader['elsewhere']): Panel {
  const directions = terms?.directions ?? 0;
  const panel = { abilities: new Float64Array(measured.length), directions: new Float64Array(measured.length * directions), deviations: new Array<number>(measured.length).fill(DEVIATION_OF_UNMEASURED), outputTokens: new Float64Array(measured.length) };
  measured.forEach((model, index) => {
    const cell = model?.cells.find((candidate) => candidate.cluster === terms?.cluster);
    panel.abilities[index] = cell?.ability ?? (general[index] ?? 0) + (terms ?? elsewhere).offset;
    panel.deviations[index] = cell?.deviation ?? DEVIATION_OF_UNMEASURED;
    panel.outputTokens[index] = cell?.outputTokens ?? model?.outputTokens ?? elsewhere.outputTokens;
    if (cell !== undefined) panel.directions.set(cell.directions, index * directions);
  });
  return panel;
}
