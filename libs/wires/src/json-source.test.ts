import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { sourceOf } from './json-source.js';

test('a value is given as it was written, digits and spaces too', () => {
  const text = ' {"a" : [ {"b\\u0022": 12345678901234567890 , "c":1.0e2}, "x\\"]" ], "a2":{} } ';
  expect(sourceOf(text, ['a', 0, 'b"'])).toBe('12345678901234567890');
  expect(sourceOf(text, ['a', 0])).toBe('{"b\\u0022": 12345678901234567890 , "c":1.0e2}');
  expect(sourceOf(text, ['a', 1])).toBe('"x\\"]"');
  expect(sourceOf(text, ['a2'])).toBe('{}');
});

test.each([[['b']], [['a', 1]], [['a', 'x']], [[0]]])('nothing at %j', (path) => {
  expect(sourceOf('{"a":[1]}', path)).toBeUndefined();
});

test('of members with one name the last counts, as for JSON.parse', () => {
  expect(sourceOf('{"a":1,"a":[2]}', ['a'])).toBe('[2]');
});

test('every value of any JSON is found where JSON.parse finds it', () => {
  const check = (text: string, value: unknown, path: readonly (string | number)[]): void => {
    expect(JSON.parse(sourceOf(text, path) ?? 'missing')).toEqual(value);
    if (typeof value !== 'object' || value === null) return;
    for (const [key, child] of Object.entries(value)) check(text, child, [...path, Array.isArray(value) ? Number(key) : key]);
  };
  fc.assert(
    fc.property(fc.json(), fc.constantFrom(undefined, 1, '\t'), (json, indent) => {
      const value: unknown = JSON.parse(json);
      check(JSON.stringify(value, null, indent), value, []);
    }),
  );
});
