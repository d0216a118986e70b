import { expect, jest, test } from '@jest/globals';
import { readMediaSource } from './media.js';
import { Unsendable } from './unsendable.js';

const PNG = 'iVBORw0KGgo';
const base64Of = (data: string): string => {
  const source = readMediaSource(`data:image/png;base64,${data}`, 'image', 'p');
  return source.kind === 'inline' ? source.base64 : '';
};

test.each([
  ['padded', `${PNG}A`, `${PNG}A`],
  ['without its padding', PNG, `${PNG}=`],
  ['of the alphabet for addresses', `${PNG}A-_-_`, `${PNG}A+/+/`],
  ['in lines', `${PNG}A\r\nAAAA \t`, `${PNG}AAAAA`],
  ['with escapes', `${PNG}%41AA%3D%3D`, `${PNG}AAA==`],
])('base64 %s is sent in the standard alphabet', (_what, given, sent) => expect(base64Of(given)).toBe(sent));

test.each([`${PNG}A!AAA`, `${PNG}AA`, `${PNG}A===`, `${PNG}A=AAA`, `${PNG}\u0141`, `${PNG}é`])('%j is no base64', (given) => expect(() => base64Of(given)).toThrow(Unsendable));

const fileOf = (type: string, bytes: string): unknown => {
  const source = readMediaSource(`data:${type};base64,${Buffer.from(bytes, 'latin1').toString('base64')}`, 'file', 'p');
  return source.kind === 'inline' ? [source.mediaType, Buffer.from(source.base64, 'base64').toString('latin1')] : source;
};

test.each([
  ['behind blank lines', 'application/pdf', '\r\n\r\n%PDF-1.7 x'],
  ['behind a byte order mark, of no type', '', '\xef\xbb\xbf%PDF-1.4'],
  ['as late as readers look for it', 'application/octet-stream', `${'j'.repeat(1_019)}%PDF-`],
  ['under an old name', 'application/x-pdf', '%PDF-1.7'],
  ['under the name of no file', 'binary/octet-stream', '%PDF-1.7'],
])('the signature of a PDF may stand %s', (_where, type, bytes) => expect(fileOf(type, bytes)).toEqual(['application/pdf', bytes]));

test.each([
  ['a PDF without its signature', 'application/pdf', 'hello'],
  ['one whose signature nobody looks for', 'application/pdf', `${'j'.repeat(1_020)}%PDF-`],
])('%s is refused', (_what, type, bytes) => expect(() => fileOf(type, bytes)).toThrow(Unsendable));

test('a text that speaks of PDFs is a text', () => expect(fileOf('text/plain', 'a file begins %PDF-')).toEqual(['text/plain', 'a file begins %PDF-']));

test('nothing is no base64', () => expect(() => readMediaSource('', 'image', 'p')).toThrow(Unsendable));

test('a file is not put together anew for each of its characters', () => {
  const replaced = [jest.spyOn(String.prototype, 'replaceAll'), jest.spyOn(String.prototype, 'replace')];
  expect(base64Of(`${PNG}A${'-A_A\n'.repeat(100_000)}`)).toHaveLength(400_012);
  expect(replaced.flatMap(({ mock }) => mock.contexts).filter((context) => String(context).length > 1_000)).toEqual([]);
  jest.restoreAllMocks();
});

test.each([
  ['is no data URL without a comma', `data:${';'.repeat(8_000_000)}`, undefined],
  ['does no harm before one', `data:image/png${';a'.repeat(4_000_000)};BASE64,${PNG}A`, ['image/png', `${PNG}A`]],
])('a heap of parameters %s', (_what, url, read) => {
  const given = (): unknown => {
    const source = readMediaSource(url, 'image', 'p');
    return source.kind === 'inline' ? [source.mediaType, source.base64] : source;
  };
  if (read === undefined) expect(given).toThrow(Unsendable);
  else expect(given()).toEqual(read);
});

test.each([
  ['data:,a%20b', ['text/plain', 'a b']],
  ['data:;base64,JVBERi0=', ['application/pdf', '%PDF-']],
  ['data:text/plain;charset=utf-8,a;base64,b', ['text/plain', 'a;base64,b']],
  ['data:text/plain;x=y;base64,YQ==', ['text/plain', 'a']],
  ['data:base64,YQ==', ['base64', 'YQ==']],
])('%s is read by its parts', (url, read) => {
  const source = readMediaSource(url.replace('data:,', 'data:text/plain,'), 'file', 'p');
  expect(source.kind === 'inline' ? [source.mediaType, Buffer.from(source.base64, 'base64').toString()] : source).toEqual(read);
});
