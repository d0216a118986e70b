import { expect, test } from '@jest/globals';
import { whileItLoads } from './use-api.js';

test.each([
  ['/api/requests?model=a&limit=50', '/api/requests?model=a&limit=50&after=req_1'],
  ['/api/auth?limit=50&after=key_2', '/api/auth?limit=50&after=key_1'],
])('until another page of a list is there the one before stands: %s, then %s', (before, path) => {
  expect(whileItLoads(path)('before', { queryKey: [before] })).toBe('before');
});

test.each([
  ['/api/usage?group_by=day&from=2026-11-15', '/api/usage?group_by=day&from=2026-11-15&model=openai%2Fgpt-4o'],
  ['/api/usage?group_by=day&from=2026-11-15', '/api/usage?group_by=day&from=2026-10-23'],
  ['/api/memory', '/api/memory?user=anna'],
  ['/api/memory?user=anna', '/api/memory?user=bert'],
  ['/api/requests/req_1', '/api/requests/req_2'],
  ['/api/requests?model=a', '/api/requests?model=b&after=req_1'],
])('what answers another question never does: %s, then %s', (before, path) => {
  expect(whileItLoads(path)('before', { queryKey: [before] })).toBeUndefined();
});

test('nor is there anything before the first', () => {
  expect(whileItLoads('/api/memory')(undefined, undefined)).toBeUndefined();
});
