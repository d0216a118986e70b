/** A hand-made artefact for tests: two models measured on exams, one direction, and a word that makes a prompt hard. */
import { BUCKETS, createFeatureExtractor, FEATURE_SCHEMA, SHAPE } from './features.js';
import { WORD_BITS, type QualityArtefact, type QualityHeader } from './quality-artefact.js';
import { wordBit } from './quality.js';
import { PLAIN_SETTING } from './clusters.js';

const zeros = SHAPE.map(() => 0);
const STRIDE = 4;
export const EXAM = 'Which one?\nA. red\nB. blue\nC. green\nD. none';

export const SMALL_HEADER: QualityHeader = {
  featureSchema: FEATURE_SCHEMA,
  dataHash: 'none',
  shapeMean: zeros,
  shapeDeviation: SHAPE.map(() => 1),
  normMin: 100,
  columns: [{ scale: 1, shape: zeros }, { scale: 1, shape: zeros }, { scale: 1, shape: zeros }, { scale: 1, shape: zeros }],
  clusters: [{ cluster: 'exam', firstColumn: 2, directions: 1, difficulty: 1, generalDifficulty: 0, specific: 1, need: 1, offset: -0.5, knownFloor: 0.2, knownFull: 0.6, lengthShape: zeros }],
  elsewhere: { need: 1, offset: -1, outputTokens: 200 },
  catalogAbility: { slope: 4, offset: -2 },
  models: [
    { name: 'strong', ability: 2, standing: 0.5, outputTokens: 300, cells: [{ cluster: 'exam', ability: 1.5, deviation: 0.1, directions: [1], outputTokens: 100, samples: 1_000 }] },
    { name: 'weak', ability: 0, standing: -0.5, outputTokens: 200, cells: [{ cluster: 'exam', ability: 0, deviation: 0.1, directions: [-1], outputTokens: 50, samples: 1_000 }] },
  ],
  metrics: {},
};

/** Weights by word: difficulty and direction in the exam cluster, in steps. All these words are known. */
export function smallArtefact(words: Readonly<Record<string, { readonly difficulty?: number; readonly direction?: number; readonly generalDifficulty?: number }>> = {}): QualityArtefact {
  const weights = new Int8Array(BUCKETS * STRIDE);
  const bucketWeights = new Uint8Array(BUCKETS);
  const knownWords = new Uint8Array(WORD_BITS / 8);
  const extract = createFeatureExtractor();
  for (const [word, { difficulty = 0, direction = 0, generalDifficulty = 0 }] of Object.entries(words)) {
    const features = extract(word, PLAIN_SETTING);
    const bucket = features.buckets[0] ?? 0;
    bucketWeights[bucket] = 10;
    weights.set([generalDifficulty, 0, difficulty, direction], bucket * STRIDE);
    for (const hash of features.words) {
      const bit = wordBit(hash);
      knownWords[bit >>> 3] = (knownWords[bit >>> 3] ?? 0) | (1 << (bit & 7));
    }
  }
  return { id: 'qua_small', header: SMALL_HEADER, weights, bucketWeights, knownWords };
}
