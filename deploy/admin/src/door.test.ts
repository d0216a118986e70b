import { expect, test } from '@jest/globals';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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

test('a token that is there and cannot be read is not told as one that is missing', () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-door-'));
  try {
    expect(() => tokenOf({ DATA_DIR: folder })).toThrow(new Refusal('No admin token: set ADMIN_TOKEN, or DATA_DIR to where the server keeps its own.'));
    mkdirSync(join(folder, 'admin-token'));
    expect(() => tokenOf({ DATA_DIR: folder })).toThrow(new Refusal(`${folder}/admin-token cannot be read (EISDIR): run this as the user of the server, or set ADMIN_TOKEN.`));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
