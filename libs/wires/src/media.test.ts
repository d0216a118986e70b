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

test('nothing is no base64', () => expect(() => readMediaSource('', 'image', 'p')).toThrow(Unsendable));

test('a file is not put together anew for each of its characters', () => {
  const replaced = [jest.spyOn(String.prototype, 'replaceAll'), jest.spyOn(String.prototype, 'replace')];
  expect(base64Of(`${PNG}A${'-A_A\n'.repeat(100_000)}`)).toHaveLength(400_012);
  expect(replaced.flatMap(({ mock }) => mock.contexts).filter((context) => String(context).length > 1_000)).toEqual([]);
  jest.restoreAllMocks();
});
