import { expect, test } from '@jest/globals';
import { BUCKETS } from '@signalbox/router-core/features';
import type { Cluster } from '@signalbox/router-core/clusters';
import { sparseRows } from './matrix.js';
import type { ModelsFile } from './outcomes.js';
import type { Prompt } from './prompts.js';
import { needElsewhere } from './transfer.js';

const MODELS: ModelsFile = { datasets: { set: { models: ['strong', 'weak'], pair: { strong: 'strong', weak: 'weak' } } }, prices: {} };
const STANDING = new Map([['strong', 0.5], ['weak', -0.5]]);
const PROMPTS_OF_A_KIND = 300;

/** Prompts of which every other holds a word; `pays`: the strong model is ahead there (1), nowhere in particular (0), or on the others (-1). */
function needOf(pays: Partial<Readonly<Record<Cluster, number>>>): number {
  const rows = Object.entries(pays).flatMap(([cluster, sign]) => Array.from({ length: PROMPTS_OF_A_KIND }, (_, i) => ({ cluster: cluster as Cluster, sign, hasWord: i % 2 === 0, i })));
  const gainOf = ({ sign, hasWord, i }: (typeof rows)[number]): number => (sign === 0 ? Number(i % 4 < 2) : Number(hasWord === sign > 0));
  const prompts = rows.map((row, at): Prompt => ({
    cluster: row.cluster,
    features: { cluster: row.cluster, buckets: new Uint16Array(0), words: new Uint32Array(0), shape: new Float64Array(0) },
    outcome: { id: String(at), dataset: 'set', subject: '', prompt: '', stem: String(at), inputTokens: 1, quality: [gainOf(row) || Number(row.i % 3 === 0), 0], outputTokens: [1, 1], hasCountedOutput: true },
  }));
  const matrix = sparseRows(rows.map(({ hasWord }) => [[hasWord ? 1 : 2, 1] as const]), BUCKETS);
  return needElsewhere([...new Set(rows.map(({ cluster }) => cluster))], { prompts, models: MODELS, matrix, rows: rows.map((row) => ({ need: gainOf(row) - 0.5 })), standing: STANDING, penalty: 10 });
}

test('what the text says of need counts in an unmeasured kind where every kind measured would have gained from the others', () => {
  expect(needOf({ exam: 1, math: 1, chat: 1 })).toBeGreaterThan(1);
});

test.each<[string, Partial<Readonly<Record<Cluster, number>>>]>([
  ['one kind would have lost', { exam: 1, chat: 1, math: -1 }],
  ['one kind would have gained nothing', { exam: 1, chat: 1, math: 0 }],
  ['there is but one kind', { exam: 1 }],
])('it counts for nothing where %s', (_why, pays) => {
  expect(needOf(pays)).toBeCloseTo(0, 1);
});
