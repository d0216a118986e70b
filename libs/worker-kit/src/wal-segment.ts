/**
 * Files of the write-ahead log: numbered segments of frames. Frames that a crash left incomplete are skipped when read; nothing
 * is ever appended to a file of an earlier process.
 */
import { closeSync, existsSync, fdatasync, fsyncSync, ftruncateSync, openSync, readdirSync, readFileSync, readSync, renameSync, statfsSync, statSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { syncDirectory, syncDirectoryLater } from './directory-sync.js';
import { FRAME, readFrames, type Frame } from './wal-frame.js';

const NAME = /^(wal|cold)-(\d{12})\.log$/;
/** 64 GiB. */
const COLD_BYTES_MAX = 64 * 1_024 ** 3;
/** Bound for a segment's first frame: its header and a writer's id. */
const HEAD_BYTES_MAX = 256;

export interface SegmentFile {
  readonly number: number;
  readonly path: string;
  readonly isCold: boolean;
}

/** All segments of a directory, oldest first, cold ones (fully in the ledger, kept for a restored ledger) included. */
export function listSegments(directory: string): readonly SegmentFile[] {
  const found: SegmentFile[] = [];
  for (const name of readdirSync(directory)) {
    const match = NAME.exec(name);
    if (match !== null) found.push({ number: Number(match[2]), path: join(directory, name), isCold: match[1] === 'cold' });
  }
  return found.sort((a, b) => a.number - b.number);
}

/** Calls back with each frame of a segment; returns the number of damaged places. */
export function readSegment(path: string, onFrame: (frame: Frame) => void): number {
  return readFrames(readFileSync(path), onFrame);
}

/** Sequence of the first record that a segment may hold; undefined when its head is damaged. Reads no more than the head. */
export function firstSeqOf(path: string): number | undefined {
  const descriptor = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(HEAD_BYTES_MAX);
    const length = readSync(descriptor, bytes, 0, HEAD_BYTES_MAX, 0);
    let first: number | undefined;
    readFrames(bytes.subarray(0, length), (frame) => {
      if (frame.kind === FRAME.head) first ??= frame.seq;
    });
    return first;
  } finally {
    closeSync(descriptor);
  }
}

/** Renames a segment to a cold one; it can still be read. Safe to repeat. */
export function coolSegment(directory: string, number: number): void {
  const digits = String(number).padStart(12, '0');
  const from = join(directory, `wal-${digits}.log`);
  if (existsSync(from)) renameSync(from, join(directory, `cold-${digits}.log`));
}

/** Free bytes that this user may use in the directory's file system. */
export function freeBytesAt(directory: string): number {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize;
}

/** Removes cold segments that were last written before `beforeMs` (epoch), and the oldest ones as long as cold segments take more than 64 GiB or more than half of the space that they and `freeBytes` make up. Only those for which `mayGo(number)` is true. */
export function pruneCold(directory: string, beforeMs: number, freeBytes: number, mayGo: (number: number) => boolean): void {
  const cold = listSegments(directory)
    .filter((segment) => segment.isCold)
    .map(({ number, path }) => ({ number, path, stat: statSync(path) }));
  let coldBytes = cold.reduce((sum, { stat }) => sum + stat.size, 0);
  const coldBytesMax = Math.min(COLD_BYTES_MAX, (freeBytes + coldBytes) / 2);
  for (const { number, path, stat } of cold) {
    if (!mayGo(number)) continue;
    if (coldBytes <= coldBytesMax && stat.mtimeMs >= beforeMs) continue;
    unlinkSync(path);
    coldBytes -= stat.size;
  }
}

/** Removes the oldest cold segment for which `mayGo(number)` is true; false if there is none. */
export function dropOldestCold(directory: string, mayGo: (number: number) => boolean): boolean {
  const oldest = listSegments(directory).find((segment) => segment.isCold && mayGo(segment.number));
  if (oldest !== undefined) unlinkSync(oldest.path);
  return oldest !== undefined;
}

/** The segment that is being written. */
export interface SegmentWriter {
  readonly number: number;
  readonly bytes: number;
  /** Appends whole frames, normally in one write(2). Throws the system error, and then the file is as it was before. */
  append(frames: Buffer): void;
  /** Makes what was written durable in the background; the first time, the file's name too. Calls back with the system error if that may have failed. */
  sync(done: (error?: Error | null) => void): void;
  /** Makes everything durable and closes the file. Throws the system error, also an earlier one of `sync`: data that it could not write may be lost, and no later sync would report it. */
  close(): void;
}

/** Creates a segment. Throws if the file exists: numbers are never reused. */
export function createSegment(directory: string, number: number): SegmentWriter {
  const descriptor = openSync(join(directory, `wal-${String(number).padStart(12, '0')}.log`), 'wx', 0o600);
  let bytes = 0;
  let isClosed = false;
  let isNamed = false;
  let failure: Error | undefined;
  const note = (error: Error | null): void => {
    if (!isClosed) failure ??= error ?? undefined;
  };
  return {
    number,
    get bytes() {
      return bytes;
    },
    append: (frames) => {
      let offset = 0;
      try {
        while (offset < frames.length) offset += writeSync(descriptor, frames, offset, frames.length - offset, bytes + offset);
      } catch (error) {
        ftruncateSync(descriptor, bytes);
        throw error;
      }
      bytes += frames.length;
    },
    sync: (done) => {
      if (isClosed) {
        done();
        return;
      }
      fdatasync(descriptor, (error) => {
        note(error);
        if (isNamed || isClosed) {
          done(error);
          return;
        }
        syncDirectoryLater(directory, (unnamed) => {
          note(unnamed);
          isNamed = unnamed === null;
          done(error ?? unnamed);
        });
      });
    },
    close: () => {
      if (isClosed) return;
      isClosed = true;
      try {
        fsyncSync(descriptor);
        if (!isNamed) syncDirectory(directory);
      } finally {
        closeSync(descriptor);
      }
      if (failure !== undefined) throw failure;
    },
  };
}
