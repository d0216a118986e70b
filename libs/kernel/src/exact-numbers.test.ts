import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { markExactNumbers, restoreExactNumbers, rewriteJson } from './exact-numbers.js';

/** As wires do with a schema. */
const passed = (json: string): string | undefined => rewriteJson(json, (value) => value);

test.each([
  '{"enum":[9007199254740993,-9223372036854775808,18446744073709551615],"n":1}',
  '{"const":0.12345678901234567890,"default":1.2345678901234567e-30}',
  '[12345678901234567890]',
  '12345678901234567890',
  '{"description":"id 9007199254740993, \\"9007199254740993\\"","9007199254740993":9007199254740993}',
])('numbers keep every digit: %s', (json) => {
  expect(passed(json)).toBe(json);
});

test.each(['{"a":"\u00919007199254740993\u0091"}', '{"a":"\u00910\u0091","b":9007199254740993}'])('text that looks like a mark stays text: %s', (json) => {
  expect(JSON.parse(passed(json) ?? '')).toEqual(JSON.parse(json));
});

test.each(['{"a":1,"b":[1.5,-2e3,1234567890123456]}', '{"a":"9007199254740993"}', '{"a":"\u0091","b":9007199254740993}', '{"a":"\\u0091","b":9007199254740993}'])('what needs no mark, or has the mark itself, is left alone: %s', (json) => {
  expect(markExactNumbers(json)).toBe(json);
});

test('a text that has the mark beside other text is not restored', () => {
  expect(restoreExactNumbers('{"a":"\u0091x\u0091"}')).toBe('{"a":"\u0091x\u0091"}');
});

test('numbers of JSON inside a text are restored in it', () => {
  const schema = JSON.stringify(JSON.parse(markExactNumbers('{"const":9007199254740993}')));
  expect(restoreExactNumbers(JSON.stringify({ content: `Conform to ${schema}` }))).toBe('{"content":"Conform to {\\"const\\":9007199254740993}"}');
});

test('whatever the JSON, it is as it was but for white space', () => {
  const json = fc.letrec((tie) => ({
    value: fc.oneof({ maxDepth: 3 }, fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String), fc.string().map((text) => JSON.stringify(text)), tie('list'), tie('object')),
    list: fc.array(tie('value'), { maxLength: 4 }).map((items) => `[${items.join(',')}]`),
    object: fc.dictionary(fc.string({ minLength: 1 }).map((name) => `k${name}`), tie('value'), { maxKeys: 4 }).map((members) => `{${Object.entries(members).map(([name, value]) => `${JSON.stringify(name)}:${String(value)}`).join(',')}}`),
  })).value;
  fc.assert(fc.property(json, (text) => {
    const told = String(text);
    fc.pre(!told.includes('\u0091'));
    expect(passed(told)).toBe(told);
  }), { numRuns: 50 });
});
