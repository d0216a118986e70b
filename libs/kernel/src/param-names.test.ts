import { expect, test } from '@jest/globals';
import { effortOf, effortParam, fieldOfParam, nearestEffort } from './param-names.js';

test.each([
  ['minimal', ['none', 'low', 'medium'], 'low'],
  ['xhigh', ['low', 'medium', 'high'], 'high'],
  ['max', ['none', 'low', 'high', 'max'], 'max'],
  ['medium', ['none', 'low', 'high'], 'low'],
  ['low', ['none', 'high', 'max'], 'high'],
  ['none', ['minimal', 'low'], 'minimal'],
  ['high', ['none'], undefined],
  ['high', [], undefined],
])('for the effort %s an endpoint that has %j is sent %s', (effort, known, sent) => {
  expect(nearestEffort(effort, known)).toBe(sent);
});

test('each effort has a name of its own, since no host need have it, and is told as its field', () => {
  expect(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'].map(effortParam)).toEqual(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'].map((effort) => `reasoning_effort.of.${effort}`));
  expect(['a lot', 5].map(effortParam)).toEqual([undefined, undefined]);
  expect([effortOf('reasoning_effort.of.max'), effortOf('reasoning_effort'), fieldOfParam('reasoning_effort.of.max')]).toEqual(['max', undefined, 'reasoning_effort']);
});
