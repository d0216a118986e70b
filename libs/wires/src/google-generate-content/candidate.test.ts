import { expect, test } from '@jest/globals';
import { withoutSpace } from './candidate.js';

test.each([
  ['{ "a" : [ 1 , 2.50 ],\n\t"b c" : " d  e " }\r\n', '{"a":[1,2.50],"b c":" d  e "}'],
  ['{"quote": "\\" \\\\", "backslash": "\\\\" , "both": "\\\\\\" "}', '{"quote":"\\" \\\\","backslash":"\\\\","both":"\\\\\\" "}'],
  [' { } ', '{}'],
  ['"', '"'],
  ['', ''],
])('white space goes between the tokens of %j, and stays in strings', (json, text) => expect(withoutSpace(json)).toBe(text));

test('a text of millions of escapes is passed over', () => {
  const text = `"${'\\n \\"'.repeat(2_000_000)}"`;
  expect(withoutSpace(`{ "a": ${text} }`)).toBe(`{"a":${text}}`);
});
