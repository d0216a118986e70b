/** Storage of a log: the files of one directory in production, anything that a simulation provides in tests. */
import { unlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock, RandomBytes } from '@signalbox/kernel/clock';
import { codeOf, ensureIdentity, isWhole, lockDirectory, setTorn, type WriterIdentity } from './wal-directory.js';
import type { Frame } from './wal-frame.js';
import { coolSegment, createSegment, dropOldestCold, firstSeqOf, freeBytesAt, listSegments, pruneCold, readSegment, type SegmentFile, type SegmentWriter } from './wal-segment.js';

/** The storage of one writer's log. Every call may throw a system error. */
export interface WalDisk {
  /** The log's writer; created at first use, and durable before this returns. */
  identity(provider: string, clock: Clock, randomBytes: RandomBytes): WriterIdentity;
  /** True if the last process shut down in order, or there was none, so that everything it wrote is on disk. To be called before `lock`. */
  isWhole(): boolean;
  /** Durable mark that records may be lost. It is removed once later records have been written and closed, since the sequence then continues after them. */
  setTorn(isTorn: boolean): void;
  /** Locks the log for this process and returns the function that unlocks it. Throws a Fault `store_unavailable` if a live process holds it. */
  lock(): () => void;
  /** All segments, oldest first, cold ones included. */
  list(): readonly SegmentFile[];
  /** Calls back with each frame of a segment; returns the number of damaged places. */
  read(file: SegmentFile, onFrame: (frame: Frame) => void): number;
  /** Sequence of the first record that a segment may hold; undefined when its head is damaged. */
  firstSeq(file: SegmentFile): number | undefined;
  /** Creates a segment that begins with these frames; after an error its number is free. */
  create(number: number, head: Buffer): SegmentWriter;
  /** Marks a segment as cold; it can still be read. Safe to repeat. */
  cool(number: number): void;
  /** Removes cold segments that were last written before `beforeMs` (epoch), and the oldest ones as long as cold segments take more than 64 GiB or more than is free on the disk. Only those for which `mayGo(number)` is true. */
  prune(beforeMs: number, mayGo: (number: number) => boolean): void;
  /** Removes the oldest cold segment for which `mayGo(number)` is true; false if there is none. */
  makeRoom(mayGo: (number: number) => boolean): boolean;
}

/** The disk, or this user's quota of it, is full. */
const FULL: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT']);

/** Repeats a write that a full disk refuses, each time after removing the oldest cold segment that `mayGo`. Throws the system error if that does not help. */
export function withRoom<T>(disk: Pick<WalDisk, 'makeRoom'>, mayGo: (number: number) => boolean, write: () => T): T {
  for (;;) {
    try {
      return write();
    } catch (error) {
      if (!FULL.has(codeOf(error)) || !disk.makeRoom(mayGo)) throw error;
    }
  }
}

/** Storage in a local directory. */
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
        try {
          segment.close();
        } catch {
          // A broken disk refuses this too. The name must not stay taken.
        }
        unlinkSync(join(directory, `wal-${String(number).padStart(12, '0')}.log`));
        throw error;
      }
    },
    cool: (number) => coolSegment(directory, number),
    prune: (beforeMs, mayGo) => pruneCold(directory, beforeMs, freeBytesAt(directory), mayGo),
    makeRoom: (mayGo) => dropOldestCold(directory, mayGo),
  };
}
