import { expect, test } from '@jest/globals';
import { secretHash } from './secret-hash.js';

test('equal bytes have equal hashes, wherever they are; different ones almost never', () => {
  const body = Buffer.from('xkey12345,key12345');
  expect(secretHash(body, 1, 9)).toBe(secretHash(body, 10, 18));
  const hashes = new Set<number>();
  for (let i = 0; i < 20_000; i += 1) {
    const key = Buffer.from(`key${String(i)}`);
    hashes.add(secretHash(key, 0, key.length));
  }
  expect(hashes.size).toBeGreaterThan(19_990);
});

test('every byte counts, from the first to the last, and so does the length', () => {
  const hashes = new Set<number>();
  for (let length = 0; length <= 12; length += 1) {
    const key = Buffer.alloc(length, 0);
    hashes.add(secretHash(key, 0, length));
    for (let at = 0; at < length; at += 1) {
      const other = Buffer.from(key);
      other[at] = 1;
      hashes.add(secretHash(other, 0, length));
    }
  }
  expect(hashes.size).toBe(13 + 78);
});
