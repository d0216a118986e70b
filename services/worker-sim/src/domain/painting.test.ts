import { expect, test } from '@jest/globals';
import { inflateSync } from 'node:zlib';
import { canvasOf, paint } from './painting.js';

test('the same description gives the same image; another description, number or size does not', () => {
  const canvas = { width: 64, height: 48 };
  const picture = paint('a fox', 0, canvas);
  expect(paint('a fox', 0, canvas)).toEqual(picture);
  for (const other of [paint('an owl', 0, canvas), paint('a fox', 1, canvas), paint('a fox', 0, { width: 48, height: 64 })]) expect(other).not.toEqual(picture);
});

test('a width that does not fill its last byte is painted completely', () => {
  const picture = paint('a fox', 0, { width: 33, height: 5 });
  const at = picture.indexOf('IDAT');
  const lines = inflateSync(picture.subarray(at + 4, at + 4 + picture.readUInt32BE(at - 4)));
  expect([picture.readUInt32BE(16), picture.readUInt32BE(20), lines.length]).toEqual([33, 5, 5 * (1 + 9)]);
});

test.each(['', '1024', '0x5', '4096x16', '16x', 'axb', '-1x5', '1e3x5'])('%j is not a valid size', (size) => {
  expect(canvasOf(size)).toBeUndefined();
});
