import { expect, test } from '@jest/globals';
import { stemOf, type ModelsFile, type Outcome } from './outcomes.js';
import { preparePrompts } from './prompts.js';
import { targetsOf } from './targets.js';

const MANY = ['a', 'b', 'c', 'd', 'e', 'f'];
const MODELS: ModelsFile = { datasets: { pair: { models: ['a', 'f'], pair: { strong: 'a', weak: 'f' } }, panel: { models: MANY, pair: { strong: 'a', weak: 'f' } } }, prices: {} };
const row = (dataset: string, question: string, quality: readonly number[]): Outcome => ({
  id: `${dataset}-${question}`, dataset, subject: '', prompt: question, stem: stemOf(question), inputTokens: 5, quality, outputTokens: quality.map(() => 10), hasCountedOutput: true,
});

test('a question is as hard in one data set as in another: both say how hard', () => {
  const questions = ['One and one?', 'Two and two?', 'Three and three?', 'Four and four?'];
  // To the pair the second and the last question look alike; the panel fails at the last one alone.
  const rows = questions.flatMap((question, i) => [row('pair', question, [1, i % 2]), row('panel', question, MANY.map(() => (i === 3 ? 0 : 1)))]);
  const { rows: targets } = targetsOf(preparePrompts(rows), MODELS);
  const difficulty = (dataset: string, question: number): number => targets[question * 2 + (dataset === 'pair' ? 0 : 1)]?.difficulty ?? NaN;
  for (let question = 0; question < questions.length; question += 1) expect(difficulty('pair', question)).toBe(difficulty('panel', question));
  expect(difficulty('pair', 3)).toBeGreaterThan(difficulty('pair', 1) + 1);
});
