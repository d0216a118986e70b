/**
 * Files of the write-ahead log: numbered segments of lines `crc32 json`. A line that a crash tore apart is
 * left out when read; nothing is ever appended to a file of an earlier process.
 */
import { closeSync, existsSync, fdatasync, fsyncSync, ftruncateSync, openSync, readdirSync, readFileSync, renameSync, statSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { AttemptEnded, OutcomeTold } from '@signalbox/contracts/events';
import type { TokenCounts } from '@signalbox/kernel/tokens';

/** All that an `end` repeats of its `start`, as it stands in the event. */
export type StartedFacts = Omit<AttemptEnded, 'seq' | 'tokens' | 'costNanoUsd' | 'savingsNanoUsd' | 'source' | 'flags' | 'status' | 'failure' | 'ttftMs' | 'totalMs' | 'finishReason' | 'endedAtMs' | 'deliveredUnknown'>;

/** One line. `q` is the sequence as decimal text; checkpoints have none. */
export type WalRecord =
  | { readonly k: 'head'; readonly writer: string; readonly next: string }
  | { readonly k: 'start'; readonly q: string; readonly base: StartedFacts; readonly promptTokens: number }
  | { readonly k: 'check'; readonly r: string; readonly a: number; readonly t: TokenCounts }
  | { readonly k: 'end'; readonly q: string; readonly event: AttemptEnded }
  | { readonly k: 'outcome'; readonly q: string; readonly event: OutcomeTold };

const NAME = /^(wal|cold)-(\d{12})\.log$/;

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

export function encodeLine(record: WalRecord): string {
  const json = JSON.stringify(record);
  return `${(crc32(json) >>> 0).toString(16).padStart(8, '0')} ${json}\n`;
}

/** The records of a segment, and how many lines did not verify (a torn tail is at most one). */
export function readSegment(path: string): { readonly records: readonly WalRecord[]; readonly damaged: number } {
  const records: WalRecord[] = [];
  let damaged = 0;
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    if (line === '') continue;
    const json = line.slice(9);
    if (line.charAt(8) === ' ' && (crc32(json) >>> 0).toString(16).padStart(8, '0') === line.slice(0, 8)) records.push(JSON.parse(json) as WalRecord);
    else damaged += 1;
  }
  return { records, damaged };
}

/** Moves a segment aside; it can still be read. Safe to repeat. */
export function coolSegment(directory: string, number: number): void {
  const digits = String(number).padStart(12, '0');
  const from = join(directory, `wal-${digits}.log`);
  if (existsSync(from)) renameSync(from, join(directory, `cold-${digits}.log`));
}

/** Removes cold segments that were last written before `beforeMs` (epoch), and the oldest beyond `keepMax`. */
export function pruneCold(directory: string, beforeMs: number, keepMax: number): void {
  const cold = listSegments(directory).filter((segment) => segment.isCold);
  for (const [index, segment] of cold.entries()) {
    if (index < cold.length - keepMax || statSync(segment.path).mtimeMs < beforeMs) unlinkSync(segment.path);
  }
}

/** The open end of the log. */
export interface SegmentWriter {
  readonly number: number;
  readonly bytes: number;
  /** One write(2) of all lines; after an error the file is as it was before. Throws the system's error. */
  append(lines: string): void;
  /** fdatasync in the background. */
  sync(done: () => void): void;
  close(): void;
}

/** Opens a new segment. Throws when the file exists: numbers are never used twice. */
export function createSegment(directory: string, number: number): SegmentWriter {
  const descriptor = openSync(join(directory, `wal-${String(number).padStart(12, '0')}.log`), 'wx', 0o600);
  let bytes = 0;
  let isClosed = false;
  return {
    number,
    get bytes() {
      return bytes;
    },
    append: (lines) => {
      const buffer = Buffer.from(lines, 'utf8');
      let offset = 0;
      try {
        while (offset < buffer.length) offset += writeSync(descriptor, buffer, offset, buffer.length - offset, bytes + offset);
      } catch (error) {
        ftruncateSync(descriptor, bytes);
        throw error;
      }
      bytes += buffer.length;
    },
    sync: (done) => {
      if (isClosed) done();
      else fdatasync(descriptor, () => done());
    },
    close: () => {
      if (isClosed) return;
      isClosed = true;
      try {
        fsyncSync(descriptor);
      } finally {
        closeSync(descriptor);
      }
    },
  };
}
