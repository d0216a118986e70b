import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { healJson } from './heal-json.js';

const healed = (text: string): unknown => {
  const answer = healJson(text, 'object', false);
  return answer.isJson ? JSON.parse(answer.text) : 'failed';
};

describe('a repair', () => {
  test.each([
    ['a backslash that begins no escape', String.raw`{"re":"\d+\.\w","p":"C:\Users\x"}`, { re: String.raw`\d+\.\w`, p: String.raw`C:\Users\x` }],
    ['an escape of another language', String.raw`{"a":"it\'s"}`, { a: "it's" }],
    ['an apostrophe in single quotes', "{'a': 'it's', 'b': 'd'}", { a: "it's", b: 'd' }],
    ['a quote in single quotes', `{'a': 'say "hi" now'}`, { a: 'say "hi" now' }],
    ['inner quotes before a comma', '{"a":"He said "hi", then "bye", and left","b":1}', { a: 'He said "hi", then "bye", and left', b: 1 }],
    ['inner quotes in brackets', '{"a":"set {"x"} now"}', { a: 'set {"x"} now' }],
    ['an inner quote of which only one is escaped', String.raw`{"a":"say \"hi" now"}`, { a: 'say "hi" now' }],
    ['inches', '{"a":"72"", "b":[1]}', { a: '72"', b: [1] }],
    ['line breaks and tabs', '{"a":"x\n\ty"}', { a: 'x\n\ty' }],
    ['literals of other languages', '{"a": True, "b": [None, NaN], "c": undefined}', { a: true, b: [null, null], c: null }],
    ['numbers of other languages', '{"a": +5, "b": [.5, -.5, 5., 1_000], "c": 0x1F}', { a: 5, b: [0.5, -0.5, 5, 1000], c: 31 }],
    ['concatenated strings', `{"a": "x " + 'y' + "z"}`, { a: 'x yz' }],
    ['comments, quotes and brackets in them', `{"a": 1, # it's }\n "b": "x", // "c"\n "d": "y" /* , */}`, { a: 1, b: 'x', d: 'y' }],
    ['missing commas', '{"a": [1 2 "x" "y"\n true {"z": 1}]\n "b": "c" "d": 4}', { a: [1, 2, 'x', 'y', true, { z: 1 }], b: 'c', d: 4 }],
    ['texts without quotes', '{a: hello (world), b: 12%, c: http://x/y}', { a: 'hello (world)', b: '12%', c: 'http://x/y' }],
    ['a missing quote before a string', '{"a": x", "b": 1}', { a: 'x', b: 1 }],
    ['a code with a leading zero', '{"a": 007}', { a: '007' }],
  ])('keeps %s', (_name, text, value) => {
    expect(healed(text)).toEqual(value);
  });

  test.each([
    ['an ellipsis', '{"a": [1, 2, ...]}'],
    ['a call', '{"a": datetime(2024, 1, 2)}'],
    ['a tuple', '{"a": [(1, 2), (3, 4)]}'],
    ['a thousands separator', '{"a": [1,000]}'],
    ['infinity', '{"a": -Infinity}'],
    ['a missing element', '{"a": [1,,2]}'],
    ['a missing value', "{'a': , 'b': 1}"],
    ['a string that may be two', '{"a": ["He said "hi", "bye" and left"]}'],
    ['a string in an array that may end at the escaped quote before a comma', String.raw`{"a": ["19\", "24 inches"]}`],
    ['a string whose end may be missing before a comma', String.raw`{"a": ["say \"yes\", then go, "6\" pipe"]}`],
    ['a bracket that may be part of a string without its first quote', '{"a": c}", "b": "d}"}'],
    ['a string without its first quote that may begin with the previous element', '{"a": [x, y"], "b": 1}'],
    ['a string that may begin with a number', '{"a": ["z", 1, y"]}'],
    ['a quote that never ends', `{'a': "x, 'b': 1}`],
    ['three quotes', '{"a": """x"""}'],
  ])('is refused for ambiguous text: %s', (_name, text) => {
    expect(healed(text)).toBe('failed');
  });

  test('of a large ordinary answer succeeds', () => {
    const records = Array.from({ length: 1_500 }, (_, id) => ({ id, name: `it is "${String(id)}" or so`, isRight: true, more: null }));
    const written = records.map(({ id, name }) => `{'id': ${String(id)}, 'name': '${name}', 'isRight': True, 'more': None}`);
    expect(healed(`{"list": [${written.join(', ')}]}`)).toEqual({ list: records });
    expect(healed(`{"list": [${records.map((record) => JSON.stringify(record)).join('\n')}]}`)).toEqual({ list: records });
  });

  test.each([
    ['inner quotes', '{"a":"x', '"x'],
    ['quotes', "{a:'", "', '"],
    ['blanks', '{a:"x, ', ' '],
    ['words', '{a:[', 'b '],
    ['brackets', '{a:[', '['],
    ['missing commas', '{a:[1 ', '1 '],
    ['long keys', '{a:"', `", "${'k'.repeat(250)}`],
  ])('of %s without end takes linear time', (_name, head, unit) => {
    const ms = (chars: number): number => {
      const text = head + unit.repeat(Math.floor((chars - head.length) / unit.length));
      const began = performance.now();
      healJson(text, 'object', true);
      return performance.now() - began;
    };
    ms(60_000);
    // Linear time takes four times as long; quadratic time sixteen times as long, which is half a minute.
    expect(ms(240_000)).toBeLessThan(2_000);
  });

  const CHARACTERS = ['a', 'it', 's', ' ', '.', ':', '/', '5', 'é', '\\', '\n', '-', '#'] as const;
  const valuesOf = (...more: readonly string[]) => fc.letrec((tie) => ({
    value: fc.oneof({ depthSize: 'small' }, fc.string({ unit: fc.constantFrom(...CHARACTERS, ...more) }), fc.integer(), fc.boolean(), fc.constant(null), fc.array(tie('value'), { maxLength: 3 }), tie('object')),
    object: fc.dictionary(fc.constantFrom('a', 'b c', 'd_e', 'f'), tie('value'), { minKeys: 1, noNullPrototype: true }),
  })).object;
  type Say = Readonly<{ string?: (text: string) => string; word?: (value: unknown) => string; comma?: string }>;
  const written = (value: unknown, say: Say): string => {
    const { string = JSON.stringify, word = String, comma = ', ' } = say;
    if (Array.isArray(value)) return `[${value.map((each) => written(each, say)).join(comma)}]`;
    if (typeof value === 'object' && value !== null) return `{${Object.entries(value).map(([key, each]) => `${string(key)}: ${written(each, say)}`).join(comma)}}`;
    return typeof value === 'string' ? string(value) : word(value);
  };
  const inside = (text: string): string => JSON.stringify(text).slice(1, -1);
  const MISTAKES: readonly (readonly [string, Say])[] = [
    ['single quotes', { string: (text) => `'${inside(text)}'` }],
    ['typographic quotes', { string: (text) => `“${inside(text)}”` }],
    ['literals of Python', { word: (value) => (value === null ? 'None' : value === true ? 'True' : value === false ? 'False' : String(value)) }],
    ['bad escapes', { string: (text) => `"${text.replaceAll('\n', '\\n').replace(/\\(?!["\\/bfnrtu])/g, '\\')}"` }],
    ['line breaks', { string: (text) => `"${inside(text).replaceAll('\\n', '\n')}"` }],
    ['missing commas', { comma: '\n' }],
    ['comments', { comma: ', // "x" }\n' }],
  ];

  test.each(MISTAKES)('of %s gives the value that was damaged', (_name, say) => {
    fc.assert(fc.property(valuesOf('{x}', '[s]'), (value) => {
      // A backslash before a letter of an escape may be meant as an escape.
      const plain = JSON.parse(JSON.stringify(value).replace(/\\\\(?=[\\"/bfnrtu])/g, '')) as unknown;
      const text = written(plain, say);
      if (text !== JSON.stringify(plain)) expect(healed(text)).toEqual(plain);
    }), { numRuns: 300 });
  });

  // Without commas a quote after a bracket is ambiguous.
  test.each(MISTAKES.filter(([name]) => name !== 'missing commas'))('of %s never gives another value, even with brackets in strings', (_name, say) => {
    fc.assert(fc.property(valuesOf('{', '}', '[', ']'), (value) => {
      const plain = JSON.parse(JSON.stringify(value).replace(/\\\\(?=[\\"/bfnrtu])/g, '')) as unknown;
      const given = healed(written(plain, say));
      if (given !== 'failed') expect(given).toEqual(plain);
    }), { numRuns: 300 });
  });
});
