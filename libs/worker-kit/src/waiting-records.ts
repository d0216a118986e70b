/**
 * Records on their way to the ledger, kept encoded as in the message that will carry them. Many wait for long enough that as
 * objects they would burden the garbage collector.
 */
import type { ShippedRecord } from './wal-files.js';
import { FRAME } from './wal-frame.js';

/** Tags of UsageRecorded: `ended` = 4 and `outcomes` = 5, both length-delimited. */
const ENDED_TAG = 0x22;
const OUTCOMES_TAG = 0x2a;
/** A tag of one byte and a length of up to 32 bits. */
const PREFIX_BYTES_MAX = 6;
/** 128 KiB: the waiting records of a few hundred attempts. */
const SPACE_BYTES = 131_072;

export interface RecordBatch {
  readonly newestSeq: number;
  /** Fields of a UsageRecorded; valid until the records change. */
  readonly fields: Buffer;
}

export class WaitingRecords {
  private space = Buffer.allocUnsafeSlow(SPACE_BYTES);
  /** For each record, ascending: its sequence, and where its bytes end. */
  private seqs: number[] = [];
  private ends: number[] = [];

  get count(): number {
    return this.seqs.length;
  }

  /** Appends a record; sequences must ascend. */
  add({ seq, kind, payload }: ShippedRecord): void {
    let at = this.used();
    this.room(at + PREFIX_BYTES_MAX + payload.length);
    const { space } = this;
    space[at] = kind === FRAME.end ? ENDED_TAG : OUTCOMES_TAG;
    at += 1;
    let rest = payload.length;
    for (; rest > 0x7f; rest >>>= 7) {
      space[at] = (rest & 0x7f) | 0x80;
      at += 1;
    }
    space[at] = rest;
    at += 1;
    space.set(payload, at);
    this.seqs.push(seq);
    this.ends.push(at + payload.length);
  }

  /** The oldest records after the first `passed`, at most `most`; undefined when there are none. */
  oldest(most: number, passed = 0): RecordBatch | undefined {
    const end = Math.min(passed + most, this.seqs.length);
    const newestSeq = end > passed ? this.seqs[end - 1] : undefined;
    return newestSeq === undefined ? undefined : { newestSeq, fields: this.space.subarray(passed === 0 ? 0 : this.ends[passed - 1], this.ends[end - 1]) };
  }

  /** Drops the records up to `seq`. */
  dropUpTo(seq: number): void {
    const kept = this.seqs.findIndex((each) => each > seq);
    const count = kept === -1 ? this.seqs.length : kept;
    if (count === 0) return;
    const from = this.ends[count - 1] ?? 0;
    this.space.copyWithin(0, from, this.used());
    this.seqs = this.seqs.slice(count);
    this.ends = this.ends.slice(count).map((end) => end - from);
    // Space that grew for a long queue must not be kept for ever.
    if (this.seqs.length === 0 && this.space.length > 8 * SPACE_BYTES) this.space = Buffer.allocUnsafeSlow(SPACE_BYTES);
  }

  clear(): void {
    this.dropUpTo(Infinity);
  }

  private used(): number {
    return this.ends.at(-1) ?? 0;
  }

  private room(bytes: number): void {
    if (bytes <= this.space.length) return;
    const space = Buffer.allocUnsafeSlow(Math.max(bytes, this.space.length * 2));
    this.space.copy(space, 0, 0, this.used());
    this.space = space;
  }
}
