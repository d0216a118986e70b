import { expect, test } from '@jest/globals';
import { createHash, createHmac } from 'node:crypto';
import { createSessionNames } from './session-name.js';

const PEPPER = 'pepper-of-tests-pepper-of-tests-0';
const nameOf = createSessionNames(PEPPER);

test('every edge with the same pepper gives a conversation the same name', () => {
  expect(createSessionNames(PEPPER)('acct_1', undefined, 'user\nHi\n')).toBe(nameOf('acct_1', undefined, 'user\nHi\n'));
  expect(createSessionNames(PEPPER)('acct_1', 's', 'x')).toBe(nameOf('acct_1', 's', 'x'));
  expect(nameOf('acct_1', 's', 'x')).toMatch(/^[0-9a-f]{32}$/);
});

test('the client’s id is used if there is one, else the opening text', () => {
  expect(nameOf('acct_1', 's', 'one')).toBe(nameOf('acct_1', 's', 'other'));
  expect(nameOf('acct_1', undefined, 'one')).not.toBe(nameOf('acct_1', undefined, 'other'));
});

test('other accounts, texts and peppers give other names', () => {
  const names = [nameOf('acct_1', 's', ''), nameOf('acct_2', 's', ''), nameOf('acct_1', 't', ''), nameOf('acct_1', undefined, 's'), createSessionNames('another pepper of tests')('acct_1', 's', '')];
  // The border between id and text counts: a longer id with a shorter text gives another name.
  names.push(nameOf('acct', 'x', ''), nameOf('acctsession:', 'x', ''), nameOf('acct', 'session:x', ''), nameOf('acct', 'sessionsession:x', ''));
  expect(new Set(names).size).toBe(names.length);
});

test('the name cannot be made without the pepper, nor from other values that are derived from it', () => {
  const opening = 'user\nHi\n';
  const guesses = [opening, `acct_1${opening}`, `acct_1|${opening}`].flatMap((text) => [createHash('sha256').update(text).digest('hex'), createHmac('sha256', PEPPER).update(text).digest('hex')]);
  for (const guess of guesses) expect(nameOf('acct_1', undefined, opening)).not.toBe(guess.slice(0, 32));
});
