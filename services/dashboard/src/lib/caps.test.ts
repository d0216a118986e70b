import { expect, test } from '@jest/globals';
import { capLines, limitLines } from './caps.js';

test('every cap of a key is told, one, several or none', () => {
  const none = { requests_per_minute: null, cost_cap_usd: null, cost_cap_period: null, allowed_models: null };
  const one = { ...none, cost_cap_usd: 5, cost_cap_period: 'day' } as const;
  expect([none, one, { ...one, cost_caps: [{ cap_usd: 5, period: 'day' as const }, { cap_usd: 0.000000001, period: 'total' as const }] }].map(capLines)).toEqual([[], ['$5.00 a day'], ['$5.00 a day', '$0.000000001 in all']]);
});

test('so are its rate and its models, which may be many', () => {
  const limits = { requests_per_minute: 1_000, cost_cap_usd: 5, cost_cap_period: 'day' as const, allowed_models: ['a/one', 'b/two'] };
  expect(limitLines(limits)).toEqual(['$5.00 a day', '1,000 requests a minute', 'only a/one, b/two']);
  expect(limitLines({ ...limits, requests_per_minute: 1, allowed_models: ['1', '2', '3', '4'] })).toEqual(['$5.00 a day', '1 request a minute', 'only 4 models']);
});
