import { expect, test } from '@jest/globals';
import { decisionInWords, triedInWords } from './decision.js';
import type { RequestDetail } from './types.js';

test('of a request on an own key it is told who asks for the amount, and that its tokens count here', () => {
  const request = { routed_from: null, model: 'openai/gpt-4o', status: 'completed', attempts: [], byok: true, savings_usd: 0, cost_usd: 1, charge: { adjustments: [] } } as unknown as RequestDetail;
  const words = decisionInWords(request).join(' ');
  expect(words).toContain('not charged here. Its tokens count towards your plan, overage included.');
  expect(words).not.toContain('nothing');
});

test.each([
  ['whose reader left', { failure: null, status: 200 }, 'm at p was left after 1.71 s, before its answer was whole.'],
  ['that its provider broke off', { failure: 'disconnected', status: 200 }, 'm at p failed (disconnected).'],
])('of an answer %s the words say so', (_name, over, sentence) => {
  const attempt = { model: 'm', provider: 'p', latency_ms: 1_710, finish_reason: 'error', ...over };
  const request = { routed_from: 'm', model: 'm', status: 'completed', attempts: [attempt], byok: false, savings_usd: 0, cost_usd: 1, charge: { adjustments: [] } } as unknown as RequestDetail;
  expect(decisionInWords(request)).toContain(sentence);
});

test('what was tried of providers is told in words', () => {
  expect(triedInWords([{ provider: 'openai', code: 'connect' }, { provider: 'openai', code: 'connect' }, { provider: 'groq', code: 'rate_limited' }])).toBe('Tried: openai (connect), groq (rate limited).');
  expect(triedInWords([])).toBe('');
});
