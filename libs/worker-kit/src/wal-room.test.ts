import { expect, test } from '@jest/globals';
import { randomBytes } from '@signalbox/runtime/random';
import { createFakeClock } from '@signalbox/testkit/clock';
import { readdirSync, statSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { frame, journalRig } from './testing/journal-rig.js';
import { localDisk, type WalDisk } from './wal-disk.js';
import { LogFiles } from './wal-files.js';
import { FRAME } from './wal-frame.js';
import { Leaps } from './wal-leaps.js';
import { pruneCold } from './wal-segment.js';

const GIB = 1_024 ** 3;
const RECORD = Buffer.alloc(1_000, 'x');
const segmentsIn = (directory: string): readonly string[] => readdirSync(directory).filter((name) => name.endsWith('.log')).sort();

/** A directory's log on a disk with this many bytes, where each write fills a segment. */
function smallDisk(directory: string, bytesMax: number, code = 'ENOSPC'): WalDisk {
  const disk = localDisk(directory);
  const refuse = (bytes: number): void => {
    const used = readdirSync(directory).reduce((sum, name) => sum + statSync(join(directory, name)).size, 0);
    if (used + bytes > bytesMax) throw Object.assign(new Error('full'), { code });
  };
  return {
    ...disk,
    lock: () => {
      refuse(20);
      return disk.lock();
    },
    create: (number, head) => {
      refuse(head.length);
      const segment = disk.create(number, head);
      const append = (frames: Buffer): void => {
        refuse(frames.length);
        segment.append(frames);
      };
      return { ...segment, number, bytes: GIB, append };
    },
  };
}

/** A log with `records` records in as many segments, of which the ledger has those up to `ledgerSeq`. */
async function filled(records: number, ledgerSeq: number, bytesMax: number, code?: string) {
  const { directory, open } = await journalRig();
  const disk = smallDisk(directory, bytesMax, code);
  const clock = createFakeClock();
  const { writer } = disk.identity('sim', clock, randomBytes);
  const files = new LogFiles(disk, writer, new Map(), 0, true, new Leaps());
  const append = (seq: number): void => files.append(frame(FRAME.outcome, seq, RECORD), seq);
  for (let seq = 1; seq <= records; seq += 1) append(seq);
  files.booked(ledgerSeq);
  files.cool(Number.MAX_SAFE_INTEGER, clock.nowMs());
  return { directory, open, files, append, smallDisk: (bytes: number) => smallDisk(directory, bytes) };
}

const sequences = (files: LogFiles): readonly number[] => files.read(0, 100).map(({ seq }) => seq);

test.each(['ENOSPC', 'EDQUOT'])('if the disk refuses with %s, the oldest segments that the ledger has are removed to make room', async (code) => {
  const { files, append } = await filled(4, 3, 6_000, code);
  for (const seq of [5, 6, 7]) append(seq);
  expect(sequences(files)).toEqual([3, 4, 5, 6, 7]);
  files.close();
});

test('segments that the ledger lacks are never removed: the disk\'s error is thrown, and nothing of the write remains', async () => {
  const { files, append } = await filled(4, 1, 5_000);
  append(5);
  expect(() => append(6)).toThrow('full');
  expect(sequences(files)).toEqual([2, 3, 4, 5]);
  files.close();
});

test('cold segments that a restored ledger lacks are not removed, neither to make room nor because of their age', async () => {
  const { files, append, directory } = await filled(4, 3, 5_000);
  const cold = segmentsIn(directory).filter((name) => name.startsWith('cold'));
  // The ledger has the first record: what lies before it may be removed.
  files.booked(1);
  files.cool(Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  append(5);
  expect(() => append(6)).toThrow('full');
  expect(segmentsIn(directory).filter((name) => name.startsWith('cold'))).toEqual(cold.slice(2));
  expect(sequences(files)).toEqual([2, 3, 4, 5]);
  files.booked(3);
  append(6);
  expect(sequences(files)).toEqual([3, 4, 5, 6]);
  files.close();
});

test('if the next segment cannot be created, for want of a file descriptor, the present one grows until it can', async () => {
  const { directory } = await journalRig();
  const disk = smallDisk(directory, GIB);
  let isOut = false;
  const short: WalDisk = {
    ...disk,
    create: (number, head) => {
      if (isOut) throw Object.assign(new Error('none left'), { code: 'EMFILE' });
      return disk.create(number, head);
    },
  };
  const { writer } = disk.identity('sim', createFakeClock(), randomBytes);
  const files = new LogFiles(short, writer, new Map(), 0, true, new Leaps());
  const append = (seq: number): void => files.append(frame(FRAME.outcome, seq, RECORD), seq);
  append(1);
  isOut = true;
  for (const seq of [2, 3]) append(seq);
  const before = segmentsIn(directory).length;
  isOut = false;
  append(4);
  expect([before, segmentsIn(directory).length, sequences(files)]).toEqual([2, 3, [1, 2, 3, 4]]);
  files.close();
});

test('any other disk error removes nothing from the log', async () => {
  const { files, append } = await filled(4, 3, 5_000, 'EIO');
  expect(() => append(5)).toThrow('full');
  expect(sequences(files)).toEqual([1, 2, 3, 4]);
  files.close();
});

test('a log on a full disk can be opened if the ledger has a part of it', async () => {
  const { directory, open, files, smallDisk: sized } = await filled(3, 2, 100_000);
  files.close();
  const used = segmentsIn(directory).reduce((sum, name) => sum + statSync(join(directory, name)).size, 0);
  const journal = await open(directory, sized(used));
  // The segment before the first record, and that of the record, were removed for the lock and for a new segment.
  expect(segmentsIn(directory)).toEqual(['cold-000000000003.log', 'wal-000000000004.log', 'wal-000000000005.log']);
  await journal.close();
});

test.each([
  { freeGib: 5, stay: ['1', '2', '3'] },
  { freeGib: 3, stay: ['1', '2', '3'] },
  { freeGib: 2, stay: ['2', '3'] },
  { freeGib: 0, stay: ['3'] },
])('of three booked segments of 1 GiB, $stay are kept if $freeGib GiB are free', async ({ freeGib, stay }) => {
  const { directory } = await journalRig();
  for (const digit of ['1', '2', '3']) {
    const path = join(directory, `cold-${digit.padStart(12, '0')}.log`);
    writeFileSync(path, '');
    truncateSync(path, GIB);
  }
  pruneCold(directory, 0, freeGib * GIB, () => true);
  expect(segmentsIn(directory).map((name) => name.at(-5))).toEqual(stay);
});

test('of the segments in the ledger at most 64 GiB are kept, and none that is older than the limit', async () => {
  const { directory } = await journalRig();
  for (const digit of ['1', '2', '3', '4']) {
    const path = join(directory, `cold-${digit.padStart(12, '0')}.log`);
    writeFileSync(path, '');
    truncateSync(path, 30 * GIB);
    if (digit === '3') utimesSync(path, 1, 1);
  }
  pruneCold(directory, 2_000, 10_000 * GIB, () => true);
  expect(segmentsIn(directory).map((name) => name.at(-5))).toEqual(['4']);
});
