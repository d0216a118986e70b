import { expect, test } from '@jest/globals';
import { isOnlySimulator, providersWithKeys } from './only-simulator.js';

const madeBy = (...makers: readonly string[]): readonly { readonly owned_by: string }[] => makers.map((maker) => ({ owned_by: maker }));

test.each<[boolean, readonly string[]]>([
  [true, ['signalbox', 'simulator', 'simulator']],
  [false, ['signalbox', 'simulator', 'openai']],
  [false, ['signalbox', 'openai']],
  // Nothing can be used, or nothing is known yet.
  [false, ['signalbox']],
  [false, []],
])('only the simulator answers: %s, of models made by %j', (is, makers) => {
  expect(isOnlySimulator(madeBy(...makers))).toBe(is);
});

test('the simulator takes no key of an account', () => {
  expect(providersWithKeys(['openai', 'simulator', 'xai'])).toEqual(['openai', 'xai']);
});
