import { describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { isWithin, type JsonBounds } from './json-bounds.js';

const BOUNDS: JsonBounds = { values: 10, escapes: 3, bareBytes: 64 };
const within = (text: string, bounds = BOUNDS): boolean => {
  const bytes = Buffer.from(`x${text}x`);
  return isWithin(bytes, 1, bytes.length - 1, bounds);
};

function valuesIn(value: unknown): number {
  return typeof value === 'object' && value !== null ? Object.values(value).reduce((sum: number, inner) => sum + valuesIn(inner), 1) : 1;
}

describe('what may be parsed', () => {
  test.each<[boolean, string]>([
    [true, '[1,2,3,4,5,6,7,8,9]'],
    [false, '[1,2,3,4,5,6,7,8,9,0]'],
    [false, '[[],[],[],[],[]]'],
    [true, '{"a,[{":",[{,[{,[{,[{,[{"}'],
    [true, `["${'x'.repeat(1_000)}","${'x'.repeat(1_000)}"]`],
    [true, `["${'x'.repeat(100)}\\"\\",,,,,,,,,,,,,"]`],
    [false, '["\\n\\n\\n\\n"]'],
    [false, `["\\n${'x'.repeat(100)}\\n${'x'.repeat(100)}\\n\\n"]`],
    [false, `[${' '.repeat(100)}]`],
    [false, `[${'9'.repeat(100)}]`],
    [true, '[[[['],
    // No JSON: to be told by the parser, at once.
    [true, '"unfinished'],
    [true, '"\\'],
  ])('%s: %j', (expected, text) => expect(within(text)).toBe(expected));

  test('no value of any JSON is missed, and no more than two are seen in one', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const values = valuesIn(JSON.parse(text) as unknown);
        fc.pre(values > 1);
        const wide = { escapes: Infinity, bareBytes: Infinity };
        expect(within(text, { ...wide, values: values - 1 }) && Buffer.byteLength(text) > values - 1).toBe(false);
        expect(within(text, { ...wide, values: 2 * values })).toBe(true);
      }),
    );
  });
});

test('long strings are searched natively, each byte once, whatever is escaped in them', () => {
  const searched = jest.spyOn(Buffer.prototype, 'indexOf');
  const text = `["${`${'x'.repeat(100)}\\"`.repeat(1_000)}","${'y'.repeat(100_000)}"]`;
  expect(within(text, { values: 10, escapes: 1_000, bareBytes: 64 })).toBe(true);
  const bytes = searched.mock.calls.reduce((sum, [, from], at) => {
    const found = searched.mock.results[at]?.value as number;
    return sum + (found === -1 ? text.length : found) - Number(from);
  }, 0);
  searched.mockRestore();
  // For each of two bytes.
  expect(bytes).toBeLessThanOrEqual(2 * (text.length + 2));
});
