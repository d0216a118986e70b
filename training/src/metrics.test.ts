import { describe, expect, test } from '@jest/globals';
import { manyFigures, pairFigures } from './metrics.js';
import { foldOf, stemOf } from './outcomes.js';
import { leadingDirections, ridge, sparseRows } from './matrix.js';

describe('figures of a pair', () => {
  const weak = Array.from({ length: 100 }, (_, i) => Number(i >= 50));
  const strong = weak.map(() => 1);

  test('are those of chance when scores say nothing of the gain, and the best possible when they say all', () => {
    const none = pairFigures(weak.map((_, i) => i % 50), strong, weak);
    expect(none.apgr).toBeCloseTo(0.5, 1);
    const all = pairFigures(weak.map((value) => 1 - value), strong, weak);
    expect(all.apgr).toBeCloseTo(0.75);
    expect([all.cpt50, all.cpt80]).toEqual([0.25, 0.4]);
    expect(pairFigures(weak, strong, weak).apgr).toBeCloseTo(0.25);
  });

  test('do not depend on the order of the rows: equal scores are in none', () => {
    const equal = pairFigures(weak.map(() => 1), strong, weak);
    expect(equal.apgr).toBeCloseTo(0.5);
    expect([equal.cpt50, equal.cpt80].map((share) => Number(share.toFixed(6)))).toEqual([0.5, 0.8]);
    const scores = weak.map((_, i) => (i * 7) % 5);
    const { apgr } = pairFigures(scores, strong, weak);
    expect(pairFigures([...scores].reverse(), [...strong].reverse(), [...weak].reverse()).apgr).toBeCloseTo(apgr, 12);
  });
});

describe('figures of many models', () => {
  const quality = [[1, 0], [0, 1], [1, 0], [0, 1]];
  const cost = quality.map(() => [1, 2]);

  test('are above the single models for a router that knows, and never below the cheapest for one that does not', () => {
    const knowing = manyFigures({ quality, cost, expectedQuality: quality, expectedCost: cost });
    expect(knowing.bestSingle).toBe(0.5);
    expect(knowing.router.aiqLog).toBeGreaterThan(knowing.singles.aiqLog + 0.2);
    const blind = manyFigures({ quality, cost, expectedQuality: quality.map(() => [0.5, 0.5]), expectedCost: cost });
    expect(blind.router.aiqLog).toBeCloseTo(blind.singles.aiqLog);
  });

  test('tell the cost saved at a share of the best model’s quality', () => {
    const both = { quality: [[0, 1], [1, 1]], cost: [[1, 10], [1, 10]] };
    const { router, singles } = manyFigures({ ...both, expectedQuality: both.quality, expectedCost: both.cost });
    expect(singles.save98).toBeCloseTo(1 - (1 + 9 * 0.96) / 10);
    expect(router.save98).toBeCloseTo(1 - (1 + 4.5 * 0.96) / 10);
  });
});

describe('a split', () => {
  test('keeps a question together, whatever its answers and closing cue', () => {
    expect(stemOf('What is 2 + 2?\nA. 4\nB. 5\nAnswer:')).toBe(stemOf('what is 2+2?\nA. 3\nB. 4\nC. 5'));
    expect(foldOf('a question', 5, 'salt')).toBe(foldOf('a question', 5, 'salt'));
  });
});

describe('the arithmetic of training', () => {
  test('ridge regression finds the weights that made the outcomes, less what the penalty holds back', () => {
    const rows = sparseRows(Array.from({ length: 200 }, (_, i) => [[0, Math.sin(i)], [1, Math.cos(i * 2)]] as const), 2);
    const y = Float64Array.from({ length: 200 }, (_, i) => 2 * Math.sin(i) - Math.cos(i * 2));
    const ones = new Float64Array(200).fill(1);
    const [first = 0, second = 0] = ridge(rows, y, ones, 1, [1e-6]);
    expect(first).toBeCloseTo(2, 1);
    expect(second).toBeCloseTo(-1, 1);
    expect(Math.abs(ridge(rows, y, ones, 1, [100])[0] ?? 0)).toBeLessThan(first);
  });

  test('directions come by size', () => {
    const [first, second] = leadingDirections([Float64Array.of(4, 0), Float64Array.of(0, 1)], 2);
    expect(Math.abs(first?.[0] ?? 0)).toBeCloseTo(1);
    expect(Math.abs(second?.[1] ?? 0)).toBeCloseTo(1);
  });
});
