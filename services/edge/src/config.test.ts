import { expect, test } from '@jest/globals';
import { Secret } from '@signalbox/runtime/secret';
import { warningsOf } from './config.js';

test.each([1, 15])('an ADMIN_TOKEN of %i characters causes a warning, which does not contain it', (length) => {
  expect(warningsOf({ ADMIN_TOKEN: new Secret('z'.repeat(length)) })).toEqual(['ADMIN_TOKEN has fewer than 16 characters: whoever reaches the admin door on this host can guess it.']);
});

test('a token of 16 characters causes none', () => {
  expect(warningsOf({ ADMIN_TOKEN: new Secret('z'.repeat(16)) })).toEqual([]);
});
