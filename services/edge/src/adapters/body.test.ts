import { afterEach, expect, jest, test } from '@jest/globals';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { bodyRoomBytes, readBody } from './body.js';

afterEach(() => {
  jest.restoreAllMocks();
});

const MIB = 1_024 * 1_024;

test('all bodies in work, at five times their size, fit into a container’s memory beside what edge needs itself', () => {
  const room = bodyRoomBytes(20 * MIB, 512 * MIB);
  expect(room * 5 + 80 * MIB).toBeLessThanOrEqual(512 * MIB);
  // One account may fill half.
  expect(room).toBeGreaterThanOrEqual(2 * 20 * MIB);
});

test('with little memory two of the largest bodies are accepted, and with much at most 1 GiB', () => {
  expect(bodyRoomBytes(20 * MIB, 64 * MIB)).toBe(40 * MIB);
  expect(bodyRoomBytes(20 * MIB, 1_000_000 * MIB)).toBe(1_024 * MIB);
});

test('a body that arrives byte by byte is compacted, and counts with the memory that it takes', async () => {
  const request = new IncomingMessage(new Socket());
  let taken = 0;
  const reading = readBody(request, MIB, (bytes) => {
    taken += bytes;
    return true;
  });
  const join = jest.spyOn(Buffer, 'concat');
  for (let i = 0; i < 300_000; i += 1) request.push(Buffer.of(i % 251));
  request.push(null);
  const read = await reading;
  if (read.kind !== 'ok') throw new Error(read.kind);
  expect(read.body.every((byte, i) => byte === i % 251)).toBe(true);
  expect(read.body.length).toBe(300_000);
  expect(taken).toBeGreaterThan(300_000);
  expect(taken).toBeLessThan(2 * 300_000);
  expect(join.mock.calls.map(([parts]) => parts.length)).toEqual([expect.any(Number)]);
  expect(join.mock.calls[0]?.[0].length).toBeLessThan(100);
});
