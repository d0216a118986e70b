import { expect, test } from '@jest/globals';
import { decisionInWords } from './decision.js';
import type { RequestDetail } from './types.js';

test('of a request on an own key it is told who asks for the amount, and that its tokens count here', () => {
  const request = { routed_from: null, model: 'openai/gpt-4o', status: 'completed', attempts: [], byok: true, savings_usd: 0, cost_usd: 1, charge: { adjustments: [] } } as unknown as RequestDetail;
  const words = decisionInWords(request).join(' ');
  expect(words).toContain('not charged here. Its tokens count towards your plan, overage included.');
  expect(words).not.toContain('nothing');
});
