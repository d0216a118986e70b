import { expect, test } from '@jest/globals';
import { toStoreFault } from '@signalbox/sql/faults';
import { wordsOfStartFailure } from './start-failure.js';

const full = toStoreFault(Object.assign(new Error('no space'), { code: '53100' }));

test('a private database whose disk is full is named by its folder, and a given one by its setting', () => {
  expect(wordsOfStartFailure(full, {})).toBe('store_unavailable: The private database in DATA_DIR refused (its disk is full, 53100).');
  expect(wordsOfStartFailure(full, { DATABASE_URL: '' })).toBe(wordsOfStartFailure(full, {}));
  expect(wordsOfStartFailure(full, { DATABASE_URL: 'postgres://db/x' })).toBe('store_unavailable: The database at DATABASE_URL refused (its disk is full, 53100).');
});

test('what is no error is told of as such', () => {
  expect(wordsOfStartFailure('secret', {})).toBe('unknown cause');
});
