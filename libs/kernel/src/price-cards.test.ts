import { expect, test } from '@jest/globals';
import { priceCardOf } from './price-cards.js';

const text = { id: 'card_1', inputUncached: '1', cacheRead: '2', cacheWrite: '3', outputText: '4', outputReasoning: '5', audio: '6', image: '7', requestNanoUsd: '8' };
const PRICED = ['inputUncached', 'cacheRead', 'cacheWrite', 'outputText', 'outputReasoning', 'audio', 'image', 'requestNanoUsd'] as const;

test('equal cards are one object', () => {
  expect(priceCardOf({ ...text })).toBe(priceCardOf({ ...text }));
  expect(priceCardOf(text)).toEqual({ id: 'card_1', inputUncached: 1n, cacheRead: 2n, cacheWrite: 3n, outputText: 4n, outputReasoning: 5n, audio: 6n, image: 7n, requestNanoUsd: 8n });
});

test.each(PRICED)('a card of the same id with another %s is read anew', (field) => {
  priceCardOf(text);
  expect(priceCardOf({ ...text, [field]: '99' })[field]).toBe(99n);
  expect(priceCardOf(text)[field]).not.toBe(99n);
});

test('refuses a negative price, also of a card it knows', () => {
  priceCardOf(text);
  expect(() => priceCardOf({ ...text, image: '-1' })).toThrow(RangeError);
});
