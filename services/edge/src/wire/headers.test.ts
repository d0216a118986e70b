import { expect, jest, test } from '@jest/globals';
import { formatIgnoredParams } from './headers.js';

test('at most twenty ignored names that a header may contain are listed, and no more are read', () => {
  const tested = jest.spyOn(RegExp.prototype, 'test');
  const names = ['a b', 'x\n', ...Array.from({ length: 50_000 }, (_, at) => `x${String(at)}`)];
  expect(formatIgnoredParams(names)).toBe(Array.from({ length: 20 }, (_, at) => `x${String(at)}`).join(','));
  expect(tested).toHaveBeenCalledTimes(22);
  tested.mockRestore();
  expect(formatIgnoredParams([])).toBe('');
});
