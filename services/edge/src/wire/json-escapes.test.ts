import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { unescapedBytes } from './json-escapes.js';

/** JSON as PHP, Python and others write it by default. */
const ascii = (value: unknown): string => JSON.stringify(value).replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
/** As JSON.stringify, except for control characters and half surrogate pairs, which it escapes. */
const plain = (value: unknown): string => JSON.stringify(value).replace(/(?<=(?<!\\)(?:\\\\)*)\\u([0-9a-f]{4})/g, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));

test('a text with escapes counts the same as without, whatever it contains', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }), fc.constantFrom('\\u0041', '\\\\u', '\ud83d', '\udca9', 'Привет', '\ud83d\\', '"\\"'))), (texts) => {
      const expected = Buffer.byteLength(plain(texts));
      expect(unescapedBytes(Buffer.from(ascii(texts)))).toBe(expected);
      expect(unescapedBytes(Buffer.from(ascii(texts).replace(/\\u[0-9a-f]{4}/g, (escape) => `\\u${escape.slice(2).toUpperCase()}`)))).toBe(expected);
    }),
    { numRuns: 500 },
  );
});

test.each([
  ['nothing escaped', '{"a":"ü\\n"}', 12],
  ['one byte', '"\\u0041"', 3],
  ['two bytes', '"\\u00fC"', 4],
  ['three bytes', '"\\u20AC"', 5],
  ['a pair', '"\\ud83d\\udca9"', 6],
  ['the halves of a pair in reverse order', '"\\udca9\\ud83d"', 8],
  ['half a pair and half of another after a letter', '"\\ud83da\\udca9"', 9],
  ['a pair after half a pair', '"\\ud83d\\ud83d\\udca9"', 9],
  ['an escaped backslash', '"\\\\u0041"', 9],
  ['an escape after an escaped backslash', '"\\\\\\u0041"', 5],
])('%s', (_what, json, bytes) => {
  JSON.parse(json);
  expect(unescapedBytes(Buffer.from(json))).toBe(bytes);
});
