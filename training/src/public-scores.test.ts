import { describe, expect, test } from '@jest/globals';
import { loadModels } from './outcomes.js';
import { expectedAbilities, generalAbilities, loadPublicScores, withoutSource, type PublicScores } from './public-scores.js';
import type { CellMean } from './abilities.js';

/** Models m0 … m7, abler with their number: logits of 0.2 a step, of which the score says all. */
const NAMES = Array.from({ length: 8 }, (_, i) => `m${String(i)}`);
const share = (logOdds: number): number => 1 / (1 + Math.exp(-logOdds));
const scoresOf = (names: readonly string[], source = 'exam'): PublicScores => new Map(names.map((name) => [name, { [source]: Number(name.slice(1)) * 0.3 }]));
const cell = (model: string, group: string, logOdds: number, samples = 2_000): CellMean => ({ model, group, mean: share(logOdds), samples });
const measured = NAMES.map((name, i) => cell(name, 'set', 0.2 * i - 0.5));

describe('published scores', () => {
  test('place a model without outcomes among those that have some', () => {
    const abilities = generalAbilities(measured, new Map([...scoresOf(NAMES), ['between', { exam: 1.05 }], ['abler', { exam: 3 }]]));
    const of = (name: string): number => abilities.get(name) ?? NaN;
    expect(of('between')).toBeGreaterThan(of('m2'));
    expect(of('between')).toBeLessThan(of('m5'));
    expect(of('abler')).toBeGreaterThan(of('m7'));
  });

  test('yield to outcomes: a model much better than its score stands on what it did', () => {
    const surprise = [...measured, cell('late', 'set', 1.5)];
    const scores = new Map([...scoresOf(NAMES), ['late', { exam: -1 }]]);
    const abilities = generalAbilities(surprise, scores);
    expect(expectedAbilities(scores, measured, generalAbilities(measured, scoresOf(NAMES))).get('late')).toBeLessThan(-0.2);
    expect(abilities.get('late')).toBeGreaterThan(abilities.get('m6') ?? NaN);
    expect(abilities.get('late')).toBeLessThan(1.5);
  });

  test('tie data sets together that share no model', () => {
    // The second set is far harder: by outcomes alone its able models look weak.
    const hard = NAMES.slice(4).map((name, i) => cell(name, 'hard', 0.2 * i - 2));
    const apart = [...measured.slice(0, 4), ...hard];
    const gap = (scores: PublicScores): number => {
      const abilities = generalAbilities(apart, scores);
      return (abilities.get('m4') ?? NaN) - (abilities.get('m3') ?? NaN);
    };
    expect(gap(new Map())).toBeLessThan(-0.3);
    expect(gap(scoresOf(NAMES))).toBeGreaterThan(0);
  });

  test.each<[string, PublicScores]>([
    ['too few models have both', scoresOf(NAMES.slice(0, 5))],
    ['they run against the outcomes', new Map(NAMES.map((name, i) => [name, { exam: -i }]))],
    ['the source was left out', withoutSource(scoresOf(NAMES), 'exam')],
  ])('say nothing where %s', (_why, scores) => {
    expect(generalAbilities(measured, new Map([...scores, ['other', scores.get('m0') ?? {}]]))).toEqual(generalAbilities(measured, new Map()));
  });

  test('that are shipped hold none of the benchmarks that train and judge, but MMLU, which is left out with its set', () => {
    const { datasets, prices } = loadModels();
    const scores = loadPublicScores();
    const sources = new Set([...scores.values()].flatMap((own) => Object.keys(own)));
    expect([...sources].filter((source) => source in datasets)).toEqual(['mmlu']);
    expect([...scores.keys()].sort()).toEqual(Object.keys(prices).sort());
    for (const own of scores.values()) expect(Object.values(own).length > 0 && Object.values(own).every((score) => Number.isFinite(score))).toBe(true);
  });
});
