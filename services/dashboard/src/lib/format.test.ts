import { expect, test } from '@jest/globals';
import { formatCounted } from './format.js';

test.each([
  [0, '0 requests'],
  [1, '1 request'],
  [2, '2 requests'],
  [12_345, '12.3K requests'],
])('%i is counted as %s', (value, shown) => {
  expect(formatCounted(value, 'request')).toBe(shown);
});
