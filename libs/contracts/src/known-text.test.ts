import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { knownText } from './known-text.js';

/** Few characters, so that many texts share a slot; bytes that are no UTF-8, and those of one character in two ways, among them. */
const byte = fc.oneof(fc.constantFrom(0x00, 0x30, 0x61, 0x7f, 0x80, 0xa9, 0xc3, 0xe9, 0xff), fc.integer({ min: 0x61, max: 0x64 }));
const part = fc.oneof(fc.array(byte, { maxLength: 45 }), fc.array(fc.constantFrom(0x61, 0x62), { maxLength: 45 }), fc.string({ unit: 'grapheme', maxLength: 20 }).map((text) => [...Buffer.from(text)]));

test('reads what the bytes say, whatever was read before', () => {
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 30 }), fc.nat(7), (parts, before) => {
      const bytes = Buffer.from([...Array.from({ length: before }, () => 0x78), ...parts.flat()]);
      for (let round = 0; round < 2; round += 1) {
        let at = before;
        for (const { length } of parts) {
          expect(knownText(bytes, at, at + length)).toBe(bytes.toString('utf8', at, at + length));
          at += length;
        }
      }
    }),
    { numRuns: 2_000 },
  );
});

test('a text stays what it was when its bytes are written over', () => {
  const bytes = Buffer.from('2026-11-26');
  const first = knownText(bytes, 0, bytes.length);
  bytes.fill(0x39);
  expect(first).toBe('2026-11-26');
  expect(knownText(bytes, 0, bytes.length)).toBe('9999999999');
  expect(knownText(Buffer.from('2026-11-26'), 0, 10)).toBe('2026-11-26');
});
