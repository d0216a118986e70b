import { expect, test } from '@jest/globals';
import { Secret } from '@signalbox/runtime/secret';
import { warningsOf } from './config.js';

test.each([1, 15])('an ADMIN_TOKEN of %i characters is told of, without it', (length) => {
  expect(warningsOf({ ADMIN_TOKEN: new Secret('z'.repeat(length)) })).toEqual(['ADMIN_TOKEN has fewer than 16 characters: whoever reaches the admin door on this host can guess it.']);
});

test('one of 16 characters is not', () => {
  expect(warningsOf({ ADMIN_TOKEN: new Secret('z'.repeat(16)) })).toEqual([]);
});
