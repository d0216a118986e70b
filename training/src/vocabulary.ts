/** What the training prompts are made of: weights of buckets, known words, the usual shape. */
import { BUCKETS, SHAPE } from '@signalbox/router-core/features';
import { standardised, wordBit } from '@signalbox/router-core/quality';
import { WORD_BITS } from '@signalbox/router-core/quality-artefact';
import { sparseRows, type SparseRows } from './matrix.js';
import type { Prompt } from './prompts.js';

const PROMPTS_MIN = 2;
/** Steps of a byte per unit of log(1 + prompts / prompts with the bucket). */
const BYTE_STEPS = 25;
/** Prompts shorter than this share of all count as if they were that long. */
const NORM_QUANTILE = 0.02;
/** Length of the shape's part of a row, where the buckets' part has length 1. */
const SHAPE_LENGTH = 0.5;
export const SHAPE_FACTOR = SHAPE_LENGTH / Math.sqrt(SHAPE.length);
export const MATRIX_COLUMNS = BUCKETS + SHAPE.length;

export interface Vocabulary {
  readonly bucketWeights: Uint8Array;
  readonly knownWords: Uint8Array;
  readonly normMin: number;
  readonly shapeMean: readonly number[];
  readonly shapeDeviation: readonly number[];
  /** Prompts by word hash. */
  readonly wordPrompts: ReadonlyMap<number, number>;
}

export function learnVocabulary(prompts: readonly Prompt[]): Vocabulary {
  const bucketPrompts = new Uint32Array(BUCKETS);
  const wordPrompts = new Map<number, number>();
  const sums = new Float64Array(SHAPE.length);
  for (const { features } of prompts) {
    for (const bucket of features.buckets) bucketPrompts[bucket] = (bucketPrompts[bucket] ?? 0) + 1;
    for (const word of new Set(features.words)) wordPrompts.set(word, (wordPrompts.get(word) ?? 0) + 1);
    features.shape.forEach((value, i) => (sums[i] = (sums[i] ?? 0) + value / prompts.length));
  }
  const variances = new Float64Array(SHAPE.length);
  for (const { features } of prompts) features.shape.forEach((value, i) => (variances[i] = (variances[i] ?? 0) + (value - (sums[i] ?? 0)) ** 2 / prompts.length));
  const bucketWeights = Uint8Array.from(bucketPrompts, (count) => (count < PROMPTS_MIN ? 0 : Math.min(255, Math.round(BYTE_STEPS * Math.log(1 + prompts.length / count)))));
  const knownWords = new Uint8Array(WORD_BITS / 8);
  for (const [word, count] of wordPrompts) {
    if (count < PROMPTS_MIN) continue;
    const bit = wordBit(word);
    knownWords[bit >>> 3] = (knownWords[bit >>> 3] ?? 0) | (1 << (bit & 7));
  }
  const norms = prompts.map(({ features }) => normOf(features.buckets, bucketWeights)).sort((left, right) => left - right);
  return {
    bucketWeights,
    knownWords,
    normMin: Math.max(1, norms[Math.floor(norms.length * NORM_QUANTILE)] ?? 1),
    shapeMean: [...sums],
    shapeDeviation: [...variances].map((variance) => Math.max(1e-3, Math.sqrt(variance))),
    wordPrompts,
  };
}

function normOf(buckets: Uint16Array, weights: Uint8Array): number {
  let squares = 0;
  for (const bucket of buckets) squares += (weights[bucket] ?? 0) ** 2;
  return Math.sqrt(squares);
}

/** Prompts as rows of a matrix: weighted buckets of length 1, then the standardised shape. */
export function matrixOf(prompts: readonly Prompt[], vocabulary: Vocabulary): SparseRows {
  const { bucketWeights, normMin, shapeMean, shapeDeviation } = vocabulary;
  return sparseRows(prompts.map(({ features }) => {
    const norm = Math.max(normMin, normOf(features.buckets, bucketWeights));
    const entries: (readonly [number, number])[] = [];
    for (const bucket of features.buckets) {
      const weight = bucketWeights[bucket] ?? 0;
      if (weight > 0) entries.push([bucket, weight / norm]);
    }
    standardised(features.shape, shapeMean, shapeDeviation).forEach((value, i) => entries.push([BUCKETS + i, value * SHAPE_FACTOR]));
    return entries;
  }), MATRIX_COLUMNS);
}
