import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { PLAIN_SETTING } from './clusters.js';
import { BUCKETS, createFeatureExtractor, SHAPE } from './features.js';
import { createQualityPredictor, type Prediction } from './quality.js';
import type { QualityArtefact, QualityHeader } from './quality-artefact.js';
import { EXAM, SMALL_HEADER, smallArtefact } from './small-artefact.js';

const WORDS = ['which', 'one', 'red', 'blue', 'green', 'none', 'a', 'b', 'c', 'd'];
const known = (changes: Parameters<typeof smallArtefact>[0] = {}): Parameters<typeof smallArtefact>[0] => ({ ...Object.fromEntries(WORDS.map((word) => [word, {}])), ...changes });
const MODELS = [{ measured: 'strong', ability: 0 }, { measured: 'weak', ability: 0 }, { measured: undefined, ability: 0.9 }, { measured: 'nobody', ability: 0.1 }];
const predict = (text: string, words: Parameters<typeof smallArtefact>[0] = known()): Prediction => createQualityPredictor(smallArtefact(words), MODELS)(text, PLAIN_SETTING);
const logOdds = (share: number | undefined): number => Math.log((share ?? 0) / (1 - (share ?? 0)));

describe('predicted quality', () => {
  test('is measured ability where a kind of task was measured, and the catalog’s scale elsewhere', () => {
    const { cluster, familiarity, quality, outputTokens } = predict(EXAM);
    expect([cluster, familiarity]).toEqual(['exam', 1]);
    expect(quality.map(logOdds).map((value) => Number(value.toFixed(6)))).toEqual([1.5, 0, 1.1, -2.1]);
    expect(outputTokens).toEqual([100, 50, 200, 200]);
    expect(predict('Tell me a story.').quality.map(logOdds).map((value) => Number(value.toFixed(6)))).toEqual([1, -1, 0.6, -2.6]);
  });

  test('is, in a kind of task that nobody measured, the ability in its kin, and nothing that was learnt of words there', () => {
    const kinOf = (header: QualityHeader): QualityHeader => JSON.parse(JSON.stringify(header).replaceAll('"exam"', '"word-problem"')) as QualityHeader;
    const artefact = smallArtefact({ ...known(), value: { difficulty: 50, direction: 50 } });
    const { cluster, difficulty, quality } = createQualityPredictor({ ...artefact, header: kinOf(artefact.header) }, MODELS)('What is the value of $\\sqrt{x}$ and $\\pi$?', PLAIN_SETTING);
    expect([cluster, difficulty]).toEqual(['math', 0]);
    expect(quality.map(logOdds).map((value) => Number(value.toFixed(6)))).toEqual([1.5, 0, 1.1, -2.1]);
  });

  test('falls for all models with difficulty, and apart with what sets one of them apart', () => {
    const plain = predict(EXAM);
    const hard = predict(EXAM, known({ red: { difficulty: 50 } }));
    expect(hard.difficulty).toBeCloseTo(0.5);
    hard.quality.forEach((value, i) => expect(logOdds(value)).toBeCloseTo(logOdds(plain.quality[i]) - 0.5));
    const apart = predict(EXAM, known({ red: { direction: 20 } }));
    expect(apart.quality.map((value, i) => Number((logOdds(value) - logOdds(plain.quality[i])).toFixed(6)))).toEqual([0.2, -0.2, 0, 0]);
  });

  test('leaves out what it learnt of words where the other words are unknown', () => {
    const strange = 'Zxqv wkpt jrmn?\nA. red\nB. hgfd\nC. mnbv\nD. lkjh';
    const { familiarity, quality } = predict(strange, { red: { difficulty: 100, direction: 100 } });
    expect(familiarity).toBe(0);
    expect(quality.map(logOdds).slice(0, 2).map((value) => Number(value.toFixed(6)))).toEqual([1.5, 0]);
  });

  test('knows no certainty, however many words agree', () => {
    const { quality } = predict(EXAM, known(Object.fromEntries(WORDS.map((word) => [word, { difficulty: -127 }]))));
    for (const value of quality) expect(value < 1 && value > 0).toBe(true);
  });

  test('is that of its definition, whatever columns a kind of task has in the table', () => {
    const zeros = SHAPE.map(() => 0);
    fc.assert(fc.property(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 4 }), fc.integer(), (before, directions, after, salt) => {
      const firstColumn = 2 + before;
      const stride = firstColumn + directions + 1 + after;
      const weights = Int8Array.from({ length: BUCKETS * stride }, (_, index) => Math.imul(index + salt, 0x9e3779b1) >> 24);
      const cell = { cluster: 'exam', ability: 0.5, deviation: 0.1, directions: Array.from({ length: directions }, (_, index) => index + 1), outputTokens: 10, samples: 1 } as const;
      const header: QualityHeader = {
        ...SMALL_HEADER, columns: Array.from({ length: stride }, () => ({ scale: 0.001, shape: zeros })), models: [{ name: 'strong', ability: 1, standing: 0.5, outputTokens: 10, cells: [cell] }],
        clusters: [{ cluster: 'exam', firstColumn, directions, difficulty: 0.7, generalDifficulty: 0.3, specific: 0.1, need: 0.2, offset: 0, knownFloor: -2, knownFull: -1, lengthShape: zeros }],
      };
      const artefact: QualityArtefact = { ...smallArtefact(), header, weights, bucketWeights: new Uint8Array(BUCKETS).fill(30) };
      const buckets = [...createFeatureExtractor()(EXAM, PLAIN_SETTING).buckets];
      const norm = Math.sqrt(buckets.length * 30 ** 2);
      const valueOf = (column: number): number => (buckets.reduce((sum, bucket) => sum + (weights[bucket * stride + column] ?? NaN), 0) * 0.001) / norm;
      const own = cell.directions.reduce((sum, direction, index) => sum + direction * 0.1 * valueOf(firstColumn + 1 + index), 0);
      const { quality } = createQualityPredictor(artefact, [{ measured: 'strong', ability: 0 }])(EXAM, PLAIN_SETTING);
      expect(logOdds(quality[0])).toBeCloseTo(0.5 - 0.3 * valueOf(0) - 0.7 * valueOf(firstColumn) + 0.2 * 0.5 * valueOf(1) + own, 9);
    }), { numRuns: 20 });
  });
});
