import { expect, test } from '@jest/globals';
import type { Fault } from '@signalbox/kernel/fault';
import { silentLog } from '@signalbox/runtime/log';
import { createFakeClock } from '@signalbox/testkit/clock';
import { GroupCommit, type LogEntry } from './wal-commit.js';
import type { ShippedRecord } from './wal-files.js';
import { FRAME, readFrames } from './wal-frame.js';

/** A disk that stores frames, or refuses. */
function world() {
  const clock = createFakeClock();
  const disk = { lastSeq: 0, isFull: false, syncError: undefined as Error | undefined, writes: [] as string[] };
  const files = {
    get nextSeq() {
      return disk.lastSeq + 1;
    },
    append: (bytes: Buffer, newestSeq: number) => {
      if (disk.isFull) throw new Error('ENOSPC');
      const said: string[] = [];
      readFrames(bytes, ({ seq, payload }) => said.push(`${payload.toString()}@${String(seq)}`));
      disk.writes.push(said.join(' '));
      disk.lastSeq = newestSeq;
    },
    sync: (done: (error?: Error) => void) => done(disk.syncError),
  };
  const shipped: ShippedRecord[] = [];
  const told: string[] = [];
  const entry = (kind: LogEntry['kind'], name: string, payload: () => Buffer = () => Buffer.from(name)): LogEntry => ({
    kind,
    payload,
    written: (seq) => told.push(`${name} written ${String(seq)}`),
    failed: (fault: Fault) => told.push(`${name} ${fault.code}`),
  });
  const warnings: object[] = [];
  const commit = new GroupCommit({ files, writer: 'w', clock, log: { ...silentLog, warn: (_text, fields) => void warnings.push(fields ?? {}) }, afterTurn: setImmediate, onShippable: (records) => shipped.push(...records) });
  return { clock, disk, shipped, told, entry, commit, warnings };
}

test('all records of a turn go in one write and are numbered in order, except checkpoints', async () => {
  const { clock, disk, told, shipped, entry, commit } = world();
  commit.add(entry(FRAME.start, 'a'));
  commit.add(entry(FRAME.check, 'b'));
  commit.add(entry(FRAME.end, 'c'));
  await clock.settle();
  expect(disk.writes).toEqual(['a@1 b@0 c@2']);
  expect(told).toEqual(['a written 1', 'b written 0', 'c written 2']);
  expect(shipped.map(({ seq }) => seq)).toEqual([2]);
});

test('a disk that does not make the log durable is counted each time and told of once a minute, while records are still written', async () => {
  const { clock, disk, told, entry, commit, warnings } = world();
  disk.syncError = Object.assign(new Error('no'), { code: 'EIO' });
  for (const name of ['a', 'b', 'c']) {
    commit.add(entry(FRAME.end, name));
    await clock.settle();
    await clock.advanceAsync(1_000);
  }
  expect([commit.diskFailures, warnings]).toEqual([{ write: 0, sync: 3 }, [{ writer: 'w', error: 'EIO' }]]);
  expect(told).toEqual(['a written 1', 'b written 2', 'c written 3']);
  disk.syncError = undefined;
  commit.add(entry(FRAME.end, 'd'));
  await clock.settle();
  await clock.advanceAsync(60_000);
  expect(commit.diskFailures.sync).toBe(3);
});

test('a lazy record waits 10 ms for another, in order', async () => {
  const { clock, disk, entry, commit } = world();
  commit.addLazily(entry(FRAME.outcome, 'a'));
  await clock.advanceAsync(9);
  expect(disk.writes).toEqual([]);
  commit.add(entry(FRAME.start, 'b'));
  await clock.settle();
  commit.addLazily(entry(FRAME.outcome, 'c'));
  await clock.advanceAsync(10);
  expect(disk.writes).toEqual(['a@1 b@2', 'c@3']);
});

test('if the disk refuses, starts fail, checkpoints are dropped, and the rest is written in order once it works again', async () => {
  const { clock, disk, told, entry, commit } = world();
  disk.isFull = true;
  commit.add(entry(FRAME.start, 'a'));
  commit.add(entry(FRAME.check, 'b'));
  commit.add(entry(FRAME.end, 'c'));
  await clock.settle();
  commit.add(entry(FRAME.outcome, 'd'));
  expect(told).toEqual(['a store_unavailable']);
  expect([commit.refusedRecords, commit.diskFailures]).toEqual([2, { write: 1, sync: 0 }]);
  disk.isFull = false;
  await clock.advanceAsync(500);
  expect(disk.writes).toEqual(['c@1 d@2']);
  commit.addLazily(entry(FRAME.outcome, 'e'));
  expect(commit.refusedRecords).toBe(0);
});

test('a record that cannot be encoded fails alone', async () => {
  const { clock, disk, told, entry, commit } = world();
  commit.add(entry(FRAME.end, 'a', () => {
    throw new RangeError('too large');
  }));
  commit.add(entry(FRAME.end, 'b'));
  await clock.settle();
  expect(disk.writes).toEqual(['b@1']);
  expect(told).toEqual(['a internal_error', 'b written 1']);
});

test('records that wait when the log is closed fail', async () => {
  const { clock, told, entry, commit } = world();
  commit.addLazily(entry(FRAME.outcome, 'a'));
  commit.close();
  commit.add(entry(FRAME.start, 'b'));
  await clock.advanceAsync(100);
  expect(told).toEqual(['a store_unavailable', 'b store_unavailable']);
});
