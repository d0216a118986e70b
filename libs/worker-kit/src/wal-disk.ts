/** Where a log lies: the files of one directory in service, whatever a simulation gives it in tests. */
import { unlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock, RandomBytes } from '@signalbox/kernel/clock';
import { codeOf, ensureIdentity, isWhole, lockDirectory, setTorn, type WriterIdentity } from './wal-directory.js';
import type { Frame } from './wal-frame.js';
import { coolSegment, createSegment, dropOldestCold, firstSeqOf, freeBytesAt, listSegments, pruneCold, readSegment, type SegmentFile, type SegmentWriter } from './wal-segment.js';

/** The log of one writer. Every call throws the system's error. */
export interface WalDisk {
  /** The log's writer, made at first use and durable before this returns. */
  identity(provider: string, clock: Clock, randomBytes: RandomBytes): WriterIdentity;
  /** Its last process ended in an orderly way, or there was none: all that it wrote is on the disk. To be asked before `lock`. */
  isWhole(): boolean;
  /** False once something was written behind what may be lost: numbers go on from there. Survives this process. */
  setTorn(isTorn: boolean): void;
  /** Takes the log for this process; answers the function that gives it back. Throws a Fault `store_unavailable` when a living process holds it. */
  lock(): () => void;
  /** All segments, oldest first, cold ones included. */
  list(): readonly SegmentFile[];
  /** Hands over a segment's frames; answers how many places did not verify. */
  read(file: SegmentFile, onFrame: (frame: Frame) => void): number;
  /** Sequence of the first record that a segment may hold; undefined when its head is damaged. */
  firstSeq(file: SegmentFile): number | undefined;
  /** A new segment that begins with these frames; after an error its number is free. */
  create(number: number, head: Buffer): SegmentWriter;
  /** Moves a segment aside; it can still be read. Safe to repeat. */
  cool(number: number): void;
  /** Removes cold segments that were last written before `beforeMs` (epoch), and the oldest beyond 64 GiB or as much as is free beside them: only such as `mayGo`, by number. */
  prune(beforeMs: number, mayGo: (number: number) => boolean): void;
  /** Removes the oldest cold segment that `mayGo`, by its number; false when there is none. */
  makeRoom(mayGo: (number: number) => boolean): boolean;
}

/** Of a disk, or of what this user may have of it. */
const FULL: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT']);

/** A write that a full disk refuses is tried again, each time with the oldest of what is cold and `mayGo` gone. Throws the system's error. */
export function withRoom<T>(disk: Pick<WalDisk, 'makeRoom'>, mayGo: (number: number) => boolean, write: () => T): T {
  for (;;) {
    try {
      return write();
    } catch (error) {
      if (!FULL.has(codeOf(error)) || !disk.makeRoom(mayGo)) throw error;
    }
  }
}

/** A directory of local files. */
export function localDisk(directory: string): WalDisk {
  return {
    identity: (provider, clock, randomBytes) => ensureIdentity(directory, provider, clock, randomBytes),
    isWhole: () => isWhole(directory),
    setTorn: (isTorn) => setTorn(directory, isTorn),
    lock: () => lockDirectory(directory),
    list: () => listSegments(directory),
    read: (file, onFrame) => readSegment(file.path, onFrame),
    firstSeq: (file) => firstSeqOf(file.path),
    create: (number, head) => {
      const segment = createSegment(directory, number);
      try {
        segment.append(head);
        return segment;
      } catch (error) {
        segment.close();
        unlinkSync(join(directory, `wal-${String(number).padStart(12, '0')}.log`));
        throw error;
      }
    },
    cool: (number) => coolSegment(directory, number),
    prune: (beforeMs, mayGo) => pruneCold(directory, beforeMs, freeBytesAt(directory), mayGo),
    makeRoom: (mayGo) => dropOldestCold(directory, mayGo),
  };
}
