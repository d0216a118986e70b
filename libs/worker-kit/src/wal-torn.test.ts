import { expect, test } from '@jest/globals';
import { randomBytes } from '@signalbox/runtime/random';
import { createFakeClock } from '@signalbox/testkit/clock';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { journalRig } from './testing/journal-rig.js';
import { isDirectoryInUse } from './wal-directory.js';
import { localDisk } from './wal-disk.js';
import { FRAME, FrameBuffer } from './wal-frame.js';
import { LogFiles } from './wal-files.js';
import { Leaps } from './wal-leaps.js';
import type { SegmentWriter } from './wal-segment.js';

test('a log that was not closed in order still counts as such if the disk does not take the mark', async () => {
  const { directory, open } = await journalRig();
  await (await open()).close();
  // Its process died.
  writeFileSync(join(directory, 'lock'), '999999999 1');
  const disk = localDisk(directory);
  const full = { ...disk, setTorn: () => { throw new Error('ENOSPC'); } };
  await expect(open(directory, full)).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(disk.isWhole()).toBe(false);
});

test('a log with an unreadable segment is not opened, and the error says why', async () => {
  const { directory, open } = await journalRig();
  await (await open()).close();
  // Like a segment that belongs to another user.
  mkdirSync(join(directory, 'wal-000000000009.log'));
  await expect(open()).rejects.toThrow('cannot be opened (EISDIR');
  expect(isDirectoryInUse(directory)).toBe(false);
});

/** A disk on which closing a segment cannot make it durable. */
const failing = (segment: SegmentWriter, bytes = segment.bytes): SegmentWriter => ({
  ...segment, bytes,
  close: () => {
    segment.close();
    throw new Error('EIO');
  },
});

test('a log that could not be made durable when it was closed does not count as whole', async () => {
  const { directory, open } = await journalRig();
  const disk = localDisk(directory);
  const journal = await open(directory, { ...disk, create: (number, head) => failing(disk.create(number, head)) });
  await expect(journal.close()).rejects.toThrow('EIO');
  expect(disk.isWhole()).toBe(false);
});

test('a full segment that could not be made durable does not stop the log, but closing it fails', async () => {
  const { directory } = await journalRig();
  const disk = localDisk(directory);
  let isFirst = true;
  const create = (number: number, head: Buffer): SegmentWriter => {
    const segment = disk.create(number, head);
    if (!isFirst) return segment;
    isFirst = false;
    return failing(segment, 1_000_000_000);
  };
  disk.identity('sim', createFakeClock(), randomBytes);
  const files = new LogFiles({ ...disk, create }, 'wrt_1', new Map(), 0, true, new Leaps());
  for (const seq of [1, 2]) {
    const frames = new FrameBuffer();
    frames.add(FRAME.outcome, seq, Buffer.from('x'));
    files.append(frames.bytes(), seq);
  }
  expect(files.read(0, 10).map(({ seq }) => seq)).toEqual([1, 2]);
  expect(() => files.close()).toThrow('EIO');
});
