import { expect, test } from '@jest/globals';
import { bodyRoomBytes } from './body.js';

const MIB = 1_024 * 1_024;

test('bodies in work fit into the memory of a container, each five times over, beside what edge needs itself', () => {
  const room = bodyRoomBytes(20 * MIB, 512 * MIB);
  expect(room * 5 + 80 * MIB).toBeLessThanOrEqual(512 * MIB);
  // One account may fill half.
  expect(room).toBeGreaterThanOrEqual(2 * 20 * MIB);
});

test('however little memory there is, two of the largest bodies are taken; however much, no more than 1 GiB', () => {
  expect(bodyRoomBytes(20 * MIB, 64 * MIB)).toBe(40 * MIB);
  expect(bodyRoomBytes(20 * MIB, 1_000_000 * MIB)).toBe(1_024 * MIB);
});
