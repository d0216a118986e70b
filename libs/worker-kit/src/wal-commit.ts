/**
 * Group commit: one write(2) for all records of an event-loop turn. If the disk refuses it, starts fail, checkpoints are
 * dropped, and the other records wait to be written again.
 */
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { Log, LogFields } from '@signalbox/runtime/log';
import { rareWarning } from '@signalbox/runtime/rare-warning';
import { codeOf } from './wal-directory.js';
import type { LogFiles, ShippedRecord } from './wal-files.js';
import { FRAME, FrameBuffer, type FrameKind } from './wal-frame.js';

const SYNC_MS = 1_000;
const RETRY_WRITE_MS = 500;
/** 10 ms: a record that may wait goes with the next write, or by itself after this. */
const LAZY_MS = 10;
const WAITING_MAX = 100_000;

export interface LogEntry {
  readonly kind: Exclude<FrameKind, typeof FRAME.head>;
  /** The encoded record with its sequence. Called again after the disk refused a write. */
  payload(seq: number): Buffer;
  /** The operating system has the record. */
  written(seq: number): void;
  failed(fault: Fault): void;
}

export interface DiskFailures {
  readonly write: number;
  readonly sync: number;
}

export interface GroupCommitOptions {
  readonly files: Pick<LogFiles, 'nextSeq' | 'append' | 'sync'>;
  readonly writer: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Calls back when the present turn of the event loop is over. */
  afterTurn(callback: () => void): void;
  /** Called with those records of a write that the ledger books, ascending. */
  onShippable(records: readonly ShippedRecord[]): void;
}

export class GroupCommit {
  private readonly frames = new FrameBuffer();
  private waiting: LogEntry[] = [];
  private isArmed = false;
  private isClosed = false;
  private isDirty = false;
  private lazyTimer: Timer | undefined;
  private retryTimer: Timer | undefined;
  private syncTimer: Timer | undefined;
  private records = 0;
  private readonly failures = { write: 0, sync: 0 };
  private readonly warnUnsynced: (fields: LogFields) => void;

  constructor(private readonly options: GroupCommitOptions) {
    this.warnUnsynced = rareWarning(options.log, options.clock, 'The disk did not make the write-ahead log durable: a power failure may lose a part of it.');
  }

  /** Queues a record for the write of this turn; the entry is told the result. */
  add(entry: LogEntry): void {
    if (!this.admit(entry) || this.isArmed || this.retryTimer !== undefined) return;
    this.isArmed = true;
    this.options.afterTurn(this.write);
  }

  /** Like `add`, but the record may wait 10 ms for others. For records whose loss in a kill does not matter. */
  addLazily(entry: LogEntry): void {
    if (!this.admit(entry) || this.isArmed || this.retryTimer !== undefined) return;
    this.lazyTimer ??= this.options.clock.setTimer(
      LAZY_MS,
      () => {
        this.lazyTimer = undefined;
        this.write();
      },
      { unref: true },
    );
  }

  isIdle(): boolean {
    return this.waiting.length === 0;
  }

  /** Records written by this process, without checkpoints. */
  get written(): number {
    return this.records;
  }

  /** Records that the disk refused and those queued behind them; retried twice a second. */
  get refusedRecords(): number {
    return this.retryTimer === undefined ? 0 : this.waiting.length;
  }

  /** How often the disk refused a write, and how often it failed to make the log durable. */
  get diskFailures(): DiskFailures {
    return this.failures;
  }

  /** Writes what waits, now. */
  flush(): void {
    this.write();
  }

  /** Fails what still waits. Safe to call twice. */
  close(): void {
    this.isClosed = true;
    for (const timer of [this.lazyTimer, this.retryTimer, this.syncTimer]) timer?.cancel();
    const fault = new Fault('store_unavailable', 'The write-ahead log is closed.');
    for (const entry of this.waiting.splice(0)) entry.failed(fault);
  }

  private admit(entry: LogEntry): boolean {
    if (this.isClosed) entry.failed(new Fault('store_unavailable', 'The write-ahead log is closed.'));
    else if (this.waiting.length >= WAITING_MAX) entry.failed(new Fault('overloaded', 'Too many records wait for the disk.'));
    else {
      this.waiting.push(entry);
      return true;
    }
    return false;
  }

  private readonly write = (): void => {
    this.isArmed = false;
    if (this.waiting.length === 0 || this.isClosed) return;
    const { files } = this.options;
    const first = files.nextSeq;
    const { group, shippable, next } = this.encode(first);
    try {
      files.append(this.frames.bytes(), next - 1);
    } catch (error) {
      this.refused(group, error);
      return;
    }
    this.records += next - first;
    let seq = first;
    for (const entry of group) {
      if (entry.kind === FRAME.check) entry.written(0);
      else {
        entry.written(seq);
        seq += 1;
      }
    }
    if (shippable.length > 0) this.options.onShippable(shippable);
    this.armSync();
  };

  /** Encodes the waiting records into frames. A record that cannot be encoded fails alone. */
  private encode(first: number): { readonly group: readonly LogEntry[]; readonly shippable: readonly ShippedRecord[]; readonly next: number } {
    const { waiting: group, frames } = this;
    let shippable: ShippedRecord[] = [];
    this.waiting = [];
    frames.clear();
    let next = first;
    let kept = 0;
    for (const entry of group) {
      const { kind } = entry;
      const seq = kind === FRAME.check ? 0 : next;
      let payload: Buffer;
      try {
        payload = entry.payload(seq);
      } catch (error) {
        this.options.log.error('A record of the write-ahead log cannot be encoded.', { writer: this.options.writer, kind }, error);
        entry.failed(new Fault('internal_error', 'The record cannot be encoded.', { cause: error }));
        continue;
      }
      frames.add(kind, seq, payload);
      group[kept] = entry;
      kept += 1;
      if (kind === FRAME.end || kind === FRAME.outcome) {
        // Most writes have exactly one; a list created with it has no spare capacity.
        if (shippable.length === 0) shippable = [{ seq, kind, payload }];
        else shippable.push({ seq, kind, payload });
      }
      if (kind !== FRAME.check) next += 1;
    }
    group.length = kept;
    return { group, shippable, next };
  }

  private refused(group: readonly LogEntry[], error: unknown): void {
    this.failures.write += 1;
    this.options.log.error('The write-ahead log could not be written.', { writer: this.options.writer }, error);
    for (const entry of group) if (entry.kind === FRAME.start) entry.failed(new Fault('store_unavailable', 'The write-ahead log could not be written.', { cause: error }));
    this.waiting = [...group.filter(({ kind }) => kind === FRAME.end || kind === FRAME.outcome), ...this.waiting];
    this.retryTimer ??= this.options.clock.setTimer(RETRY_WRITE_MS, () => {
      this.retryTimer = undefined;
      this.write();
    });
  }

  /** The kernel reports this once and may drop what it could not write, so trying again proves nothing. A kill of this process loses nothing of it. */
  private notSynced(error: Error): void {
    this.failures.sync += 1;
    this.warnUnsynced({ writer: this.options.writer, error: String(codeOf(error) ?? 'unknown') });
  }

  /** fdatasync in the background, at most once a second. */
  private armSync(): void {
    this.isDirty = true;
    if (this.syncTimer !== undefined) return;
    this.syncTimer = this.options.clock.setTimer(
      SYNC_MS,
      () => {
        this.isDirty = false;
        this.options.files.sync((error) => {
          this.syncTimer = undefined;
          if (error) this.notSynced(error);
          if (this.isDirty && !this.isClosed) this.armSync();
        });
      },
      { unref: true },
    );
  }
}
