/** The log as a row of segments: where it goes on, what is read again, and what may go. */
import { withRoom, type WalDisk } from './wal-disk.js';
import { FRAME, FrameBuffer } from './wal-frame.js';
import { LEAP, type Leaps } from './wal-leaps.js';
import type { SegmentFile, SegmentWriter } from './wal-segment.js';

/** 16 MiB: some 20,000 attempts. */
const SEGMENT_BYTES = 16 * 1_024 * 1_024;
/** 72 h of segments that are in the ledger, for a ledger restored from an older backup, as long as there is room. */
const COLD_MS = 72 * 3_600_000;

/** A record that the ledger books, as it stands in the log. */
export interface ShippedRecord {
  readonly seq: number;
  readonly kind: typeof FRAME.end | typeof FRAME.outcome;
  /** AttemptEnded or OutcomeTold, encoded. */
  readonly payload: Buffer;
}

/** Newest sequence of a segment that nothing is appended to any more: the next one's head tells it. */
function newestOf(disk: WalDisk, file: SegmentFile, next: SegmentFile | undefined): number {
  const first = next === undefined ? undefined : disk.firstSeq(next);
  if (first !== undefined) return first - 1;
  let newest = 0;
  disk.read(file, ({ kind, seq }) => {
    newest = Math.max(newest, kind === FRAME.head ? seq - 1 : seq);
  });
  return newest;
}

/** Newest sequence by number of the log's cold segments, which hold no open attempt and are not read through. */
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
  /** Sequences below it may have been given to records that the log lost. */
  private leastSeq: number;
  /** What the ledger said last that it has: one that was restored from a backup lacks a part of what is cold. Until it speaks, what is cold is believed to be there. */
  private ledgerSeq = Infinity;
  /** What closing a full segment threw. */
  private failure: Error | undefined;

  /** `newest`: newest sequence of every segment that is there, by number. `isWhole`: nothing behind it can be lost. `leaps`: those of before. Begins a new segment; throws the system's error. */
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

  /** Newest sequence that is written. */
  get lastSeq(): number {
    return this.newestSeq;
  }

  /** Sequence of the next record. */
  get nextSeq(): number {
    return Math.max(this.leastSeq, this.newestSeq + 1);
  }

  /** Records above a sequence; none is counted that only has its number left out. */
  recordsAfter(seq: number): number {
    return this.leaps.between(seq, this.newestSeq);
  }

  /** Number of the segment that is written to. */
  get openSegment(): number {
    return this.segment.number;
  }

  /** Appends whole frames, of which `newestSeq` is the newest sequence. After an error nothing of them is there. Throws the system's error. */
  append(frames: Buffer, newestSeq: number): void {
    if (this.segment.bytes >= SEGMENT_BYTES) this.rotate();
    withRoom(this.disk, this.isInLedger, () => this.segment.append(frames));
    this.newestSeq = newestSeq;
    this.newest.set(this.segment.number, newestSeq);
  }

  /** Sequences up to `seq` are taken: the ledger knows them, though the log lost them. */
  skipTo(seq: number): void {
    this.newestSeq = Math.max(this.newestSeq, seq);
  }

  /** Ended attempts and outcomes above a sequence, ascending; segments that end below it are not read. */
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

  /** The ledger has all up to `seq`, and no more is known to be there. */
  booked(seq: number): void {
    this.ledgerSeq = seq;
  }

  /** Moves segments aside that are wholly in the ledger, oldest first, up to the one where the oldest open attempt began; removes cold ones of old. */
  cool(oldestOpen: number, nowMs: number): void {
    const keep = Math.min(oldestOpen, this.segment.number);
    for (const [number, newest] of [...this.newest].sort(([a], [b]) => a - b)) {
      if (number >= keep || newest > this.ledgerSeq) break;
      this.disk.cool(number);
    }
    this.disk.prune(nowMs - COLD_MS, this.isInLedger);
    const kept = new Set(this.disk.list().map((file) => file.number));
    for (const number of this.newest.keys()) if (!kept.has(number)) this.newest.delete(number);
  }

  /** Makes what is written durable, in the background. */
  sync(done: () => void): void {
    this.segment.sync(done);
  }

  /** Throws where anything that was written may not be on the disk, be it in a segment of before: the log is then no whole one. */
  close(): void {
    this.segment.close();
    if (this.failure !== undefined) throw this.failure;
  }

  private readonly isInLedger = (number: number): boolean => (this.newest.get(number) ?? 0) <= this.ledgerSeq;

  private rotate(): void {
    const next = createHeaded(this.disk, this.segment.number + 1, this.writer, this.newestSeq + 1, this.isInLedger);
    const full = this.segment;
    this.segment = next;
    this.newest.set(next.number, this.newestSeq);
    try {
      full.close();
    } catch (error) {
      // It can be read as long as the power does not fail.
      this.failure ??= error as Error;
    }
  }
}
