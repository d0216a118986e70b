import { expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { isWellFormedApiKey, makeApiKey, API_KEY_LENGTH } from './api-key.js';
import { createIdSource, idTimeMs, parseId } from './ids.js';

const clock = { nowMs: () => 1_795_200_000_123, monotonicMs: () => 0, setTimer: () => ({ cancel: () => undefined }) };

test('ids are unique, carry their time and parse only as their own kind', () => {
  const makeId = createIdSource(clock, randomBytes);
  const ids = Array.from({ length: 2_000 }, () => makeId('request'));
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) {
    expect(parseId('request', id)).toBe(id);
    expect(parseId('key', id)).toBeUndefined();
    expect(idTimeMs(id)).toBe(clock.nowMs());
  }
});

test('a key with any one character changed is refused by its checksum', () => {
  const key = makeApiKey(randomBytes);
  expect(key).toHaveLength(API_KEY_LENGTH);
  expect(isWellFormedApiKey(key)).toBe(true);
  for (let i = 0; i < key.length; i += 1) {
    const other = key[i] === 'a' ? 'b' : 'a';
    expect(isWellFormedApiKey(key.slice(0, i) + other + key.slice(i + 1))).toBe(false);
  }
});
