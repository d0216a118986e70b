import { expect, test } from '@jest/globals';
import { lookup } from 'node:dns/promises';
import { isOutOfDescriptors } from './descriptors.js';

const coded = (code: string, syscall: string): Error => Object.assign(new Error(code), { code, syscall });
const noneLeft = (): void => {
  throw coded('EMFILE', 'open');
};

test.each(['EMFILE', 'ENFILE'])('%s says that no descriptor is left', (code) => {
  expect(isOutOfDescriptors(coded(code, 'connect'))).toBe(true);
});

test('a name that the resolver does not find is no proof of it, unless nothing can be opened', async () => {
  const unknown: unknown = await lookup('name.invalid').catch((error: unknown) => error);
  expect([isOutOfDescriptors(unknown), isOutOfDescriptors(unknown, noneLeft)]).toEqual([false, true]);
});

test('other failures to connect are those of the other side, whatever can be opened', () => {
  expect(['ECONNREFUSED', 'ETIMEDOUT', 'UND_ERR_CONNECT_TIMEOUT'].map((code) => isOutOfDescriptors(coded(code, 'connect'), noneLeft))).toEqual([false, false, false]);
  expect([isOutOfDescriptors(undefined, noneLeft), isOutOfDescriptors('EMFILE', noneLeft)]).toEqual([false, false]);
});
