import { describe, expect, test } from '@jest/globals';
import { PLAIN_SETTING } from '@signalbox/router-core/clusters';
import { createFeatureExtractor } from '@signalbox/router-core/features';
import { createPanelJudge, type Judgement } from './judge.js';
import { loadModels } from './outcomes.js';
import { readArtefact } from './shipped.js';

const artefact = readArtefact();
const models = loadModels();
const PROMPTS = ['What is the capital of Norway?', 'A baker sells 12 loaves a day at 3 dollars each. How many dollars does he take in a week of 6 days?', 'Which of these is a noble gas?\nA. Oxygen\nB. Neon\nC. Iron\nD. Chlorine', `${'Consider the following statement of the court. '.repeat(20)}\nA. Yes\nB. No\nC. Both\nD. Neither`];

function judge(names: readonly string[], text: string): Judgement {
  return createPanelJudge(artefact, models, names)(createFeatureExtractor()(text, PLAIN_SETTING), 100);
}

describe('the score of a prompt', () => {
  test('of two models is what the abler one gains, in whichever order they are named', () => {
    const [strong, weak] = ['gpt-4-1106-preview', 'mixtral-8x7b-instruct'];
    for (const prompt of PROMPTS) {
      const { score, quality } = judge([weak, strong], prompt);
      expect(score).toBeCloseTo((quality[1] ?? 0) - (quality[0] ?? 0), 12);
      expect(judge([strong, weak], prompt).score).toBeCloseTo(score, 12);
    }
  });

  test('still tells prompts apart where nobody knows the models', () => {
    const scores = PROMPTS.map((prompt) => judge(['made-up-1', 'made-up-2'], prompt).score);
    expect(new Set(scores).size).toBe(PROMPTS.length);
    expect(scores).toEqual(PROMPTS.map((prompt) => judge(['another'], prompt).score));
  });
});
