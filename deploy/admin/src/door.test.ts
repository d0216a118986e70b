import { expect, test } from '@jest/globals';
import { baseOf, Refusal, tokenOf } from './door.js';

test.each([
  [{}, 'http://127.0.0.1:8081'],
  [{ ADMIN_PORT: '9000' }, 'http://127.0.0.1:9000'],
  [{ ADMIN_PORT: '99999', ADMIN_URL: 'https://gateway.internal' }, 'https://gateway.internal'],
])('the door of %j is at %s', (environment, base) => {
  expect(baseOf(environment)).toBe(base);
});

test.each([
  [{ ADMIN_PORT: 'x' }, 'ADMIN_PORT: must be a port from 0 to 65535.'],
  [{ ADMIN_PORT: '99999' }, 'ADMIN_PORT: must be a port from 0 to 65535.'],
  [{ ADMIN_URL: 'gateway' }, 'ADMIN_URL: must be an http or https URL.'],
  [{ ADMIN_URL: 'file:///etc' }, 'ADMIN_URL: must be an http or https URL.'],
  [{ ADMIN_URL: 'http://root:hunter2@gateway.internal' }, 'ADMIN_URL: must have no name and no password in it: ADMIN_TOKEN opens the door.'],
])('%j is refused by its setting, and no password is repeated', (environment, message) => {
  expect(() => baseOf(environment)).toThrow(new Refusal(message));
});

test('a token that no header can hold is refused without being repeated', () => {
  expect(() => tokenOf({ ADMIN_TOKEN: 'two\nlines' })).toThrow(new Refusal('ADMIN_TOKEN: must be one line of printable ASCII, without a line break or a blank at its ends.'));
  expect(tokenOf({ ADMIN_TOKEN: 'a token' })).toBe('a token');
});
