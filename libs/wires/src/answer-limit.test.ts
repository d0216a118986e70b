import { expect, test } from '@jest/globals';
import { answerLimit } from './answer-limit.js';

const SONNET = { maxOutputTokens: 64_000, contextWindow: 200_000 };

test.each([
  ['the model’s own where there is room', { ...SONNET, promptTokens: 100_000 }, 64_000],
  ['what an estimate that is a quarter too low leaves', { ...SONNET, promptTokens: 120_000 }, 50_000],
  ['never less than a sixteenth of the window, since the estimate may be too high', { ...SONNET, promptTokens: 170_000 }, 12_500],
  ['likewise behind a prompt that cannot fit', { ...SONNET, promptTokens: 300_000 }, 12_500],
  ['the model’s own, where that is less', { maxOutputTokens: 4_096, contextWindow: 200_000, promptTokens: 199_000 }, 4_096],
  ['the model’s own, where the window is unknown', { maxOutputTokens: 32_000, contextWindow: 0, promptTokens: 170_000 }, 32_000],
  ['the model’s own, where a neighbour of the version before says nothing', { maxOutputTokens: 32_000 }, 32_000],
  ['a modest one, where nothing is known', { maxOutputTokens: 0 }, 8_192],
  ['less than the model’s own behind half a window, of which that is two thirds', { maxOutputTokens: 128_000, contextWindow: 196_608, promptTokens: 80_000 }, 96_608],
])('the limit of a client that sets none: %s', (_what, bounds, limit) => {
  expect(answerLimit(bounds)).toBe(limit);
});
