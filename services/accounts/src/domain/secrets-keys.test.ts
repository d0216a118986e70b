import { expect, test } from '@jest/globals';
import { createEnvelope } from './envelope.js';
import { spellingsOf, valuesIn } from './secrets-keys.js';
import { randomBytes } from '@signalbox/runtime/random';
import { Secret } from '@signalbox/runtime/secret';

const OWNER = ['acct_1', 'openai'];
const secretsOf = (texts: readonly string[]): Secret[] => texts.map((text) => new Secret(text));

test.each([
  ['alone', 'one', 'one'],
  ['among others', 'one', 'zero,one,two'],
  ['with blanks around it', 'one', 'zero, one , two'],
  ['that ended with a line break', 'one\n', 'one'],
  ['that ended with one, among others', 'one\n', 'zero,one'],
  ['that ended with one of another system', 'one\r\n', 'one'],
  ['told with the line break that it never had', 'one', 'one\n'],
  ['that began with a blank', ' one', ' one'],
  ['with commas in it', 'one,and,more', 'one,and,more'],
  ['with commas in it, among others', 'one, and more\n', 'zero,one, and more,two'],
])('a value of before opens what is under it: %s', (_what, before, told) => {
  const sealed = createEnvelope(new Secret(before), [], randomBytes).seal(new Secret('sk-own'), OWNER);
  const turned = createEnvelope(new Secret('the new one'), secretsOf(valuesIn(told)), randomBytes);
  const fresh = turned.rewrap(sealed, OWNER);
  expect([turned.open(sealed, OWNER), fresh?.keyId]).toEqual(['sk-own', turned.keyId]);
});

test.each([['one\n', 'one'], ['one', 'one\n'], ['one', ' one']])('the same value, told another time with a line break or a blank at its end, opens it too: %j as %j', (before, told) => {
  const sealed = createEnvelope(new Secret(before), [], randomBytes).seal(new Secret('sk-own'), OWNER);
  expect(createEnvelope(new Secret(told), secretsOf(spellingsOf(told)), randomBytes).open(sealed, OWNER)).toBe('sk-own');
});

test('nothing is no value', () => {
  expect([valuesIn(''), valuesIn(' , ,\n'), spellingsOf(' ')].flat().filter((value) => value.trim() === '')).toEqual([]);
});
