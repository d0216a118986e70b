import { expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { argumentsObject, base64Json, PlainJson, RawJson, writeJson } from './raw-json.js';

test('arguments that a client sends back are not parsed to see that they are JSON', () => {
  const text = `{"a":[${'[],'.repeat(10_000)}0]}`;
  const parse = jest.spyOn(JSON, 'parse');
  expect(argumentsObject(text)).toEqual({ text });
  expect(parse).not.toHaveBeenCalled();
  parse.mockRestore();
});

test('what is no object is kept in one', () => expect([argumentsObject(' '), argumentsObject('[1]'), argumentsObject('{"a":')]).toEqual([{}, { arguments: '[1]' }, { arguments: '{"a":' }]));

test('any value is written as JSON.stringify has it', () => {
  fc.assert(fc.property(fc.jsonValue(), (value) => expect(writeJson(value)).toBe(JSON.stringify(value))));
  expect(writeJson({ a: undefined, b: [undefined, null], c: { d: undefined, e: 1 } })).toBe('{"b":[null,null],"c":{"e":1}}');
});

test('raw text stands as it is, wherever it is', () => {
  expect(writeJson([{ a: new RawJson('1.10') }, new PlainJson({ b: 1, c: undefined }), base64Json('AA==')])).toBe('[{"a":1.10},{"b":1},"AA=="]');
});

test('a file within several levels is copied into the text once', () => {
  const joined = jest.spyOn(Array.prototype, 'join');
  writeJson([{ content: [{ source: { data: base64Json('A'.repeat(100_000)) } }] }]);
  expect(joined.mock.results.filter(({ value }) => String(value).length > 1_000)).toEqual([]);
  joined.mockRestore();
});

test('a schema is written natively, and not before the rest', () => {
  const properties = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`p${String(at)}`, { type: 'string' }]));
  const stringify = jest.spyOn(JSON, 'stringify');
  const schema = new PlainJson({ type: 'object', properties });
  expect(stringify).not.toHaveBeenCalled();
  const text = writeJson({ tools: [{ input_schema: schema }] });
  expect(stringify.mock.calls.length).toBeLessThan(10);
  stringify.mockRestore();
  expect(JSON.parse(text)).toEqual({ tools: [{ input_schema: { type: 'object', properties } }] });
});
