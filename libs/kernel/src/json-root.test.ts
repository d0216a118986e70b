import { expect, jest, test } from '@jest/globals';
import { JSON_TEXT_DEPTH_MAX, jsonRootOf, type JsonRoot } from './json-root.js';

function parsedRoot(text: string): JsonRoot | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value !== 'object' || value === null ? 'scalar' : Array.isArray(value) ? 'array' : 'object';
  } catch {
    return undefined;
  }
}

test.each([
  ['{}', 'object'], [' { "a" : [ ] , "b" : {"c":[1,-2.5e+3,{}]} } ', 'object'], ['[]', 'array'], ['[[],[{}]]', 'array'], ['"x"', 'scalar'], ['-0.5', 'scalar'], ['null', 'scalar'], [' true\n', 'scalar'], ['"\\ud83d\\"\\/"', 'scalar'],
  ['', undefined], [' ', undefined], ['{', undefined], ['[1,]', undefined], ['{"a":1,}', undefined], ['{a:1}', undefined], ['{"a"}', undefined], ['{"a":}', undefined], ['[1}', undefined], ['{"a":1]', undefined], ['[]]', undefined], ['1 2', undefined],
  ['"\n"', undefined], ['"\\x"', undefined], ['"\\u12g4"', undefined], ['"\\u12', undefined], ['"a', undefined], ['"a\\', undefined], ['01', undefined], ['1.', undefined], ['.5', undefined], ['+1', undefined], ['1e', undefined], ['--1', undefined], ['-', undefined], ['tru', undefined], ['truex', undefined],
])('%j is %s, as JSON.parse has it', (text, root) => {
  expect(jsonRootOf(text)).toBe(root);
  expect(parsedRoot(text)).toBe(root);
});

test('agrees with JSON.parse on mutated texts', () => {
  const seed = ' {"long":"0123456789\\\\","a":[1,-2.5e3,"x\\n\\u00e9",true,false,null,{"b":{}}],"c":"é","d":[[]]}';
  const alphabet = '{}[]",:\\0123eE+-.tfnu \n\u0001é';
  let state = 12_345;
  const next = (bound: number): number => (state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0) % bound;
  for (let round = 0; round < 20_000; round += 1) {
    let text = seed;
    for (let edits = 1 + next(3); edits > 0; edits -= 1) {
      const at = next(text.length);
      text = text.slice(0, at) + (next(2) === 0 ? alphabet.charAt(next(alphabet.length)) : '') + text.slice(at + next(2));
    }
    expect([text, jsonRootOf(text)]).toEqual([text, parsedRoot(text)]);
  }
});

test('nesting has an end', () => {
  const nested = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;
  expect([jsonRootOf(nested(JSON_TEXT_DEPTH_MAX)), jsonRootOf(nested(JSON_TEXT_DEPTH_MAX + 1)), jsonRootOf('['.repeat(1_000_000))]).toEqual(['array', undefined, undefined]);
});

test('nothing is parsed, however much there is', () => {
  const parse = jest.spyOn(JSON, 'parse');
  expect(jsonRootOf(`[${'[],'.repeat(100_000)}[]]`)).toBe('array');
  expect(parse).not.toHaveBeenCalled();
  parse.mockRestore();
});

test('a text that breaks off deep within itself is nothing to the next', () => {
  expect([jsonRootOf('[[[{'), jsonRootOf('{"a":{"b":[{}]}}'), jsonRootOf('{"a":{"b":{'), jsonRootOf('[[[[1]]]]')]).toEqual([undefined, 'object', undefined, 'array']);
});
