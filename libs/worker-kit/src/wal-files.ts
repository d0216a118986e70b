/** The log as a sequence of segments: appending, reading again, and removing old ones. */
import { withRoom, type WalDisk } from './wal-disk.js';
import { FRAME, FrameBuffer } from './wal-frame.js';
import { LEAP, type Leaps } from './wal-leaps.js';
import type { SegmentFile, SegmentWriter } from './wal-segment.js';

/** 16 MiB: about 20,000 attempts. */
const SEGMENT_BYTES = 16 * 1_024 * 1_024;
/** Segments that are in the ledger are kept for 72 h if there is room, for a ledger that is restored from an older backup. */
const COLD_MS = 72 * 3_600_000;

/** A record that the ledger books, as in the log. */
export interface ShippedRecord {
  readonly seq: number;
  readonly kind: typeof FRAME.end | typeof FRAME.outcome;
  /** AttemptEnded or OutcomeTold, encoded. */
  readonly payload: Buffer;
}

/** Newest sequence of a segment that is no longer written: taken from the head of the next one. */
function newestOf(disk: WalDisk, file: SegmentFile, next: SegmentFile | undefined): number {
  const first = next === undefined ? undefined : disk.firstSeq(next);
  if (first !== undefined) return first - 1;
  let newest = 0;
  disk.read(file, ({ kind, seq }) => {
    newest = Math.max(newest, kind === FRAME.head ? seq - 1 : seq);
  });
  return newest;
}

/** Newest sequence of each cold segment, by number. Cold segments hold no open attempt and are not read in full. */
export function coldSequences(disk: WalDisk, files: readonly SegmentFile[]): Map<number, number> {
  const newest = new Map<number, number>();
  for (const [index, file] of files.entries()) if (file.isCold) newest.set(file.number, newestOf(disk, file, files[index + 1]));
  return newest;
}

function createHeaded(disk: WalDisk, number: number, writer: string, nextSeq: number, mayGo: (number: number) => boolean): SegmentWriter {
  const head = new FrameBuffer();
  head.add(FRAME.head, nextSeq, Buffer.from(writer));
  return withRoom(disk, mayGo, () => disk.create(number, head.bytes()));
}

export class LogFiles {
  private segment: SegmentWriter;
  /** Least sequence for the next record: lower ones may have been given to records that the log lost. */
  private leastSeq: number;
  /** Latest watermark of the ledger. A ledger that was restored from a backup may lack part of the cold segments. Until it is known, they are assumed to be in the ledger. */
  private ledgerSeq = Infinity;
  /** Error from closing a full segment. */
  private failure: Error | undefined;

  /** Begins a new segment; throws the system error. `newest`: newest sequence of every existing segment, by number. `isWhole`: no records can be lost after it. `leaps`: the earlier ones. */
  constructor(
    private readonly disk: WalDisk,
    private readonly writer: string,
    private readonly newest: Map<number, number>,
    private newestSeq: number,
    isWhole: boolean,
    private readonly leaps: Leaps,
  ) {
    this.leastSeq = newestSeq + 1 + (isWhole ? 0 : LEAP);
    leaps.note(newestSeq, this.leastSeq);
    this.segment = createHeaded(disk, Math.max(0, ...newest.keys()) + 1, writer, newestSeq + 1, this.isInLedger);
    newest.set(this.segment.number, newestSeq);
  }

  /** Newest sequence written. */
  get lastSeq(): number {
    return this.newestSeq;
  }

  /** Sequence of the next record. */
  get nextSeq(): number {
    return Math.max(this.leastSeq, this.newestSeq + 1);
  }

  /** Number of records above a sequence, without the numbers that were skipped. */
  recordsAfter(seq: number): number {
    return this.leaps.between(seq, this.newestSeq);
  }

  /** Number of the segment that is being written. */
  get openSegment(): number {
    return this.segment.number;
  }

  /** Appends whole frames; `newestSeq` is their newest sequence. Throws the system error, and then none of them is in the log. */
  append(frames: Buffer, newestSeq: number): void {
    if (this.segment.bytes >= SEGMENT_BYTES) this.rotate();
    withRoom(this.disk, this.isInLedger, () => this.segment.append(frames));
    this.newestSeq = newestSeq;
    this.newest.set(this.segment.number, newestSeq);
  }

  /** Skips sequences up to `seq`, which the ledger knows although the log lost them. */
  skipTo(seq: number): void {
    this.newestSeq = Math.max(this.newestSeq, seq);
  }

  /** Ended attempts and outcomes above a sequence, ascending; older segments are not read. */
  read(after: number, limit: number): readonly ShippedRecord[] {
    const found: ShippedRecord[] = [];
    for (const file of this.disk.list()) {
      if ((this.newest.get(file.number) ?? 0) <= after) continue;
      this.disk.read(file, ({ kind, seq, payload }) => {
        if ((kind === FRAME.end || kind === FRAME.outcome) && seq > after && found.length < limit) found.push({ kind, seq, payload });
      });
      if (found.length >= limit) break;
    }
    return found;
  }

  /** The ledger's watermark is `seq`. */
  booked(seq: number): void {
    this.ledgerSeq = seq;
  }

  /** Marks segments as cold that are wholly in the ledger, oldest first, up to the one where the oldest open attempt began. Removes old cold ones. */
  cool(oldestOpen: number, nowMs: number): void {
    this.coolBelow(Math.min(oldestOpen, this.segment.number));
    this.disk.prune(nowMs - COLD_MS, this.isInLedger);
    const kept = new Set(this.disk.list().map((file) => file.number));
    for (const number of this.newest.keys()) if (!kept.has(number)) this.newest.delete(number);
  }

  /** Makes what is written durable, in the background. Calls back with the system error if that may have failed. */
  sync(done: (error?: Error | null) => void): void {
    this.segment.sync(done);
  }

  /**
   * Throws if anything that was written, also in an earlier segment, may not be on disk: then the log must not count as whole.
   * `isOver`: no attempt is open, and nobody will tell more about one in the log. What the ledger has becomes cold then, so
   * that the next process does not replay it.
   */
  close(isOver = false): void {
    this.segment.close();
    if (this.failure !== undefined) throw this.failure;
    if (isOver) this.coolBelow(Infinity);
  }

  private readonly isInLedger = (number: number): boolean => (this.newest.get(number) ?? 0) <= this.ledgerSeq;

  private coolBelow(end: number): void {
    for (const [number, newest] of [...this.newest].sort(([a], [b]) => a - b)) {
      if (number >= end || newest > this.ledgerSeq) break;
      this.disk.cool(number);
    }
  }

  /** Begins the next segment. If that cannot be created, for instance without a free file descriptor, the present one simply grows: it may still be written, and endings wait for that. */
  private rotate(): void {
    let next: SegmentWriter;
    try {
      next = createHeaded(this.disk, this.segment.number + 1, this.writer, this.newestSeq + 1, this.isInLedger);
    } catch {
      return;
    }
    const full = this.segment;
    this.segment = next;
    this.newest.set(next.number, this.newestSeq);
    try {
      full.close();
    } catch (error) {
      // It can still be read, unless the power fails.
      this.failure ??= error as Error;
    }
  }
}
