/**
 * The write-ahead log of a worker: the one record of money facts, on local disk (BILLING, sections 2 and 3).
 *
 * Durability: promises resolve after write(2), so a kill of the process loses nothing; fdatasync runs in the
 * background at most once a second, so a power failure or a crash of the system can lose the last second.
 */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Bus } from '@signalbox/bus/bus';
import type { Clock, RandomBytes, Timer } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { RpcClient } from '@signalbox/rpc/call';
import type { Log } from '@signalbox/runtime/log';
import type { Journal } from './journal.js';
import { createSettlement } from './settlement.js';
import { createShipping, type ShippedRecord } from './shipping.js';
import { ensureIdentity, isDirectoryInUse, lockDirectory, readIdentity } from './wal-directory.js';
import { concludedOutcome, endedEvent, orphanEvent, outcomeEvent, settledCharge, startedFacts, type LiveAttempt } from './wal-events.js';
import { coolSegment, createSegment, encodeLine, listSegments, pruneCold, readSegment, type SegmentWriter, type WalRecord } from './wal-segment.js';

export interface JournalOptions {
  /** Of this worker alone: a second living process is refused. */
  readonly directory: string;
  /** Recorded with the writer at billing. */
  readonly provider: string;
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
  readonly log: Log;
  readonly bus: Bus;
  readonly quota: RpcClient;
  readonly billing: RpcClient;
}

export interface OpenJournal extends Journal {
  /** True once billing knows the writer; stays true when billing goes away later. */
  isRegistered(): boolean;
  /** Resolves when all that is in the log is in the ledger; waits for billing and the bus as long as it takes, rejects with a Fault `cancelled` at `close`. */
  recover(): Promise<void>;
  /** Writes what is waiting, makes it durable and hands it to the bus if that is there. */
  flush(): Promise<void>;
  /** Writes what is waiting and gives the directory back. Safe to call twice. */
  close(): Promise<void>;
}

/** 16 MiB: some 20,000 attempts. */
const SEGMENT_BYTES = 16 * 1_024 * 1_024;
const SYNC_MS = 1_000;
const RETRY_WRITE_MS = 500;
/** 5 s: below the first-byte time-out of every caller. */
const REGISTRATION_WAIT_MS = 5_000;
/** 72 h and 64 GiB at most of segments that are in the ledger, for a ledger restored from an older backup. */
const COLD_MS = 72 * 3_600_000;
const COLD_MAX = 4_096;
/** 30 s without a word of edge after an end: edge died before it told, and the outcome is concluded, as at recovery. A living edge tells at once. */
const CONCLUDE_MS = 30_000;
const CONCLUDE_SWEEP_MS = 5_000;
const SWEEP_MS = 60_000;
const WAITING_MAX = 100_000;

interface Pending {
  readonly kind: 'start' | 'check' | 'end' | 'outcome';
  line(seq: bigint): WalRecord;
  /** After the write; `seq` as written. */
  written(seq: bigint): void;
  failed(fault: Fault): void;
}

interface Live extends LiveAttempt {
  readonly segment: number;
  /** Monotonic, when its end was written. */
  endedAtMs: number | undefined;
  /** Told before the end. */
  early: { readonly outcome: 'DELIVERED' | 'SUPERSEDED' | 'DISCARDED'; readonly toldByEdge: boolean } | undefined;
  hasOutcome: boolean;
  isEnding: boolean;
}

const keyOf = (requestId: string, attempt: number): string => `${requestId} ${attempt}`;

/**
 * Opens (or makes) the log of one worker: replays it, then registers with billing in the background, books what an
 * earlier process left open, and sends on what the ledger lacks. Throws a Fault `store_unavailable` when a living
 * process holds the directory or the disk does not take the first write.
 */
export async function openJournal(options: JournalOptions): Promise<OpenJournal> {
  const { directory, clock, log } = options;
  const { writer, provider } = ensureIdentity(directory, options.provider, clock, options.randomBytes);
  const unlock = lockDirectory(directory);
  const live = new Map<string, Live>();
  /** Newest sequence by segment number; cold ones included. */
  const segmentSeq = new Map<number, bigint>();
  let lastSeq = 0n;
  let segment: SegmentWriter;
  try {
    for (const file of listSegments(directory)) {
      const { records, damaged } = readSegment(file.path);
      if (damaged > 0) log.warn('A segment of the write-ahead log holds damaged lines.', { writer, segment: file.number, damaged });
      for (const record of records) replay(record, file.number);
      segmentSeq.set(file.number, lastSeq);
    }
    segment = createSegment(directory, Math.max(0, ...segmentSeq.keys()) + 1);
    segment.append(encodeLine({ k: 'head', writer, next: String(lastSeq + 1n) }));
  } catch (error) {
    unlock();
    throw error instanceof Fault ? error : new Fault('store_unavailable', `The write-ahead log in ${directory} cannot be opened.`, { cause: error });
  }
  segmentSeq.set(segment.number, lastSeq);
  /** What an earlier process left without an end or an outcome. */
  const leftovers = new Set(live.keys());

  function replay(record: WalRecord, number: number): void {
    if (record.k === 'head') {
      const before = BigInt(record.next) - 1n;
      if (before > lastSeq) lastSeq = before;
      return;
    }
    if (record.k === 'check') {
      const attempt = live.get(keyOf(record.r, record.a));
      if (attempt !== undefined) attempt.checkpoint = record.t;
      return;
    }
    const seq = BigInt(record.q);
    if (seq > lastSeq) lastSeq = seq;
    if (record.k === 'start') {
      live.set(keyOf(record.base.requestId ?? '', record.base.attempt ?? 0), { base: record.base, promptTokens: record.promptTokens, checkpoint: undefined, end: undefined, segment: number, endedAtMs: undefined, early: undefined, hasOutcome: false, isEnding: false });
      return;
    }
    const key = keyOf(record.event.requestId ?? '', record.event.attempt ?? 0);
    const attempt = live.get(key);
    if (record.k === 'outcome') live.delete(key);
    else if (attempt !== undefined) {
      attempt.end = record.event;
      attempt.isEnding = true;
      attempt.endedAtMs = clock.monotonicMs();
    }
  }

  let pending: Pending[] = [];
  let isFlushArmed = false;
  let isClosed = false;
  let isDirty = false;
  let lastCoolMs = clock.monotonicMs();
  let syncTimer: Timer | undefined;
  let retryTimer: Timer | undefined;
  let registered = false;
  const registrationWaiters = new Set<() => void>();
  let recoveryWaiters: { resolve: () => void; reject: (fault: Fault) => void }[] = [];

  const settlement = createSettlement({ writer, quota: options.quota, clock });
  const shipping = createShipping({
    writer, provider, bus: options.bus, billing: options.billing, clock, log,
    lastSeq: () => lastSeq,
    read,
    onRegistered: (ledgerSeq) => {
      if (ledgerSeq > lastSeq) {
        log.error('The ledger knows more of this writer than its log: the newest records were lost with the system.', { writer, ledger_seq: String(ledgerSeq), last_seq: String(lastSeq) });
        lastSeq = ledgerSeq;
      }
      registered = true;
      bookLeftovers();
      for (const resolve of registrationWaiters) resolve();
      registrationWaiters.clear();
      checkRecovered();
    },
    onLedger: (ledgerSeq) => {
      settlement.committed(ledgerSeq);
      coolSegments(ledgerSeq);
      checkRecovered();
    },
  });

  function checkRecovered(): void {
    if (!registered || pending.length > 0 || leftovers.size > 0 || shipping.ledgerSeq() < lastSeq) return;
    for (const { resolve } of recoveryWaiters) resolve();
    recoveryWaiters = [];
  }

  /** Ended attempts and outcomes above a sequence, from the files; segments that end below it are not read. */
  function read(after: bigint, limit: number): readonly ShippedRecord[] {
    const found: ShippedRecord[] = [];
    for (const file of listSegments(directory)) {
      if ((segmentSeq.get(file.number) ?? 0n) <= after) continue;
      for (const record of readSegment(file.path).records) {
        if (record.k !== 'end' && record.k !== 'outcome') continue;
        const seq = BigInt(record.q);
        if (seq <= after) continue;
        found.push(record.k === 'end' ? { seq, ended: record.event } : { seq, outcome: record.event });
        if (found.length >= limit) return found;
      }
    }
    return found;
  }

  /** Moves segments aside that are wholly in the ledger, oldest first; one with an attempt that is still open stays, and all after it. */
  function coolSegments(ledgerSeq: bigint): void {
    const now = clock.monotonicMs();
    if (now - lastCoolMs < SWEEP_MS) return;
    lastCoolMs = now;
    const oldestOpen = Math.min(segment.number, ...[...live.values()].map((attempt) => attempt.segment));
    for (const [number, newest] of [...segmentSeq].sort(([a], [b]) => a - b)) {
      if (number >= oldestOpen || newest > ledgerSeq) break;
      coolSegment(directory, number);
    }
    pruneCold(directory, clock.nowMs() - COLD_MS, COLD_MAX);
    const kept = new Set(listSegments(directory).map((file) => file.number));
    for (const number of segmentSeq.keys()) if (!kept.has(number)) segmentSeq.delete(number);
  }

  function rotate(): void {
    if (segment.bytes < SEGMENT_BYTES) return;
    const next = createSegment(directory, segment.number + 1);
    next.append(encodeLine({ k: 'head', writer, next: String(lastSeq + 1n) }));
    segment.close();
    segment = next;
    segmentSeq.set(segment.number, lastSeq);
  }

  function write(entry: Pending): void {
    if (isClosed) {
      entry.failed(new Fault('store_unavailable', 'The write-ahead log is closed.'));
      return;
    }
    if (pending.length >= WAITING_MAX) {
      entry.failed(new Fault('overloaded', 'Too many records wait for the disk.'));
      return;
    }
    pending.push(entry);
    if (isFlushArmed || retryTimer !== undefined) return;
    isFlushArmed = true;
    setImmediate(writePending);
  }

  /** One write(2) for all records of this turn. When the disk refuses, starts fail and the rest waits to be written. */
  function writePending(): void {
    isFlushArmed = false;
    if (pending.length === 0) return;
    const group = pending;
    pending = [];
    let seq = lastSeq;
    let text = '';
    const seqs: bigint[] = [];
    for (const entry of group) {
      if (entry.kind !== 'check') seq += 1n;
      seqs.push(seq);
      text += encodeLine(entry.line(seq));
    }
    try {
      rotate();
      segment.append(text);
    } catch (error) {
      log.error('The write-ahead log could not be written.', { writer }, error);
      for (const entry of group) if (entry.kind === 'start') entry.failed(new Fault('store_unavailable', 'The write-ahead log could not be written.', { cause: error }));
      pending = [...group.filter((entry) => entry.kind !== 'start' && entry.kind !== 'check'), ...pending];
      if (!isClosed) {
        retryTimer = clock.setTimer(RETRY_WRITE_MS, () => {
          retryTimer = undefined;
          writePending();
        });
      }
      return;
    }
    lastSeq = seq;
    segmentSeq.set(segment.number, seq);
    const shipped: ShippedRecord[] = [];
    for (const [index, entry] of group.entries()) {
      const at = seqs[index] ?? seq;
      const record = entry.line(at);
      if (record.k === 'end') shipped.push({ seq: at, ended: record.event });
      else if (record.k === 'outcome') shipped.push({ seq: at, outcome: record.event });
      entry.written(at);
    }
    if (shipped.length > 0) shipping.add(shipped);
    armSync();
  }

  function armSync(): void {
    isDirty = true;
    if (syncTimer !== undefined || isClosed) return;
    syncTimer = clock.setTimer(SYNC_MS, () => {
      isDirty = false;
      segment.sync(() => {
        syncTimer = undefined;
        if (isDirty) armSync();
      });
    }, { unref: true });
  }

  function writeEnd(attempt: Live, event: Parameters<typeof endedEvent>[1] | undefined): Promise<void> {
    attempt.isEnding = true;
    return new Promise((resolve, reject) => {
      write({
        kind: 'end',
        line: (seq) => ({ k: 'end', q: String(seq), event: { ...(event === undefined ? orphanEvent(attempt, clock.nowMs()) : endedEvent(attempt.base, event)), seq: String(seq) } }),
        written: () => {
          attempt.end = event === undefined ? orphanEvent(attempt, clock.nowMs()) : endedEvent(attempt.base, event);
          attempt.endedAtMs = clock.monotonicMs();
          if (attempt.early !== undefined) writeOutcome(attempt, attempt.early.outcome, attempt.early.toldByEdge);
          resolve();
        },
        failed: reject,
      });
    });
  }

  function writeOutcome(attempt: Live, outcome: 'DELIVERED' | 'SUPERSEDED' | 'DISCARDED', toldByEdge: boolean): void {
    if (attempt.hasOutcome) return;
    attempt.hasOutcome = true;
    write({
      kind: 'outcome',
      line: (seq) => ({ k: 'outcome', q: String(seq), event: { ...outcomeEvent(attempt.base, outcome, toldByEdge), seq: String(seq) } }),
      written: (seq) => {
        const key = keyOf(attempt.base.requestId ?? '', attempt.base.attempt ?? 0);
        live.delete(key);
        leftovers.delete(key);
        settlement.released(attempt.base.requestId ?? '');
        const charge = settledCharge(attempt, outcome);
        if (charge !== undefined) settlement.finished({ ...charge, seq });
      },
      failed: () => {
        attempt.hasOutcome = false;
      },
    });
  }

  /** Ends and outcomes for what an earlier process left open. */
  function bookLeftovers(): void {
    for (const key of leftovers) {
      const attempt = live.get(key);
      if (attempt === undefined) continue;
      if (attempt.end !== undefined) writeOutcome(attempt, concludedOutcome(attempt.end), false);
      else {
        const orphan = orphanEvent(attempt, clock.nowMs());
        attempt.early = { outcome: concludedOutcome(orphan), toldByEdge: false };
        // The end is written in this turn or retried; the outcome follows from it.
        void writeEnd(attempt, undefined).catch(() => undefined);
      }
    }
  }

  let sweepTimer: Timer | undefined;
  function armSweep(): void {
    sweepTimer = clock.setTimer(CONCLUDE_SWEEP_MS, () => {
      const now = clock.monotonicMs();
      for (const attempt of live.values()) {
        if (attempt.end !== undefined && attempt.endedAtMs !== undefined && now - attempt.endedAtMs > CONCLUDE_MS) writeOutcome(attempt, concludedOutcome(attempt.end), false);
      }
      armSweep();
    }, { unref: true });
  }
  armSweep();

  async function waitForRegistration(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const timer = clock.setTimer(REGISTRATION_WAIT_MS, () => {
        registrationWaiters.delete(done);
        reject(new Fault('billing_unavailable', 'The worker is not registered with billing yet.'));
      });
      const done = (): void => {
        timer.cancel();
        resolve();
      };
      registrationWaiters.add(done);
    });
  }

  const journal: OpenJournal = {
    start: async (record) => {
      if (!registered) await waitForRegistration();
      const key = keyOf(record.requestId, record.attempt);
      if (live.has(key)) throw new Fault('bad_message', 'This attempt was started before.');
      const attempt: Live = { base: startedFacts(record), promptTokens: record.promptTokens, checkpoint: undefined, end: undefined, segment: segment.number, endedAtMs: undefined, early: undefined, hasOutcome: false, isEnding: false };
      live.set(key, attempt);
      await new Promise<void>((resolve, reject) => {
        write({
          kind: 'start',
          line: (seq) => ({ k: 'start', q: String(seq), base: attempt.base, promptTokens: attempt.promptTokens }),
          written: () => {
            settlement.live(record.accountId, record.requestId);
            resolve();
          },
          failed: (fault) => {
            live.delete(key);
            reject(fault);
          },
        });
      });
    },
    checkpoint: (requestId, attemptNumber, tokens) => {
      const attempt = live.get(keyOf(requestId, attemptNumber));
      if (attempt === undefined || attempt.isEnding) return;
      attempt.checkpoint = tokens;
      write({ kind: 'check', line: () => ({ k: 'check', r: requestId, a: attemptNumber, t: tokens }), written: () => undefined, failed: () => undefined });
    },
    end: async (requestId, attemptNumber, end) => {
      const attempt = live.get(keyOf(requestId, attemptNumber));
      if (attempt === undefined || attempt.isEnding) return;
      await writeEnd(attempt, end);
    },
    outcome: (requestId, attemptNumber, outcome, toldByEdge) => {
      const attempt = live.get(keyOf(requestId, attemptNumber));
      if (attempt === undefined || attempt.hasOutcome) return;
      if (attempt.end === undefined) attempt.early ??= { outcome, toldByEdge };
      else writeOutcome(attempt, outcome, toldByEdge);
    },
    state: () => ({ writer, lastSeq, shippedSeq: shipping.shippedSeq(), ledgerSeq: shipping.ledgerSeq() }),
    isRegistered: () => registered,
    recover: () =>
      new Promise((resolve, reject) => {
        recoveryWaiters.push({ resolve, reject });
        checkRecovered();
      }),
    flush: async () => {
      writePending();
      await new Promise<void>((resolve) => segment.sync(resolve));
      await shipping.flush();
    },
    close: async () => {
      if (isClosed) return;
      // Outcomes that follow from ends are written in a second turn.
      for (let turn = 0; turn < 2; turn += 1) writePending();
      isClosed = true;
      for (const timer of [syncTimer, retryTimer, sweepTimer]) timer?.cancel();
      const fault = new Fault('store_unavailable', 'The write-ahead log is closed.');
      for (const entry of pending) entry.failed(fault);
      await shipping.flush();
      shipping.close();
      settlement.close();
      for (const { reject } of recoveryWaiters) reject(new Fault('cancelled', 'The write-ahead log is closed.'));
      recoveryWaiters = [];
      segment.close();
      unlock();
    },
  };
  shipping.begin();
  return journal;
}

/** Directories with a writer's identity, at most two levels below the root. */
function writerDirectories(root: string): readonly string[] {
  if (!existsSync(root)) return [];
  const found: string[] = [];
  const walk = (directory: string, depth: number): void => {
    if (readIdentity(directory) !== undefined) found.push(directory);
    if (depth === 0) return;
    for (const name of readdirSync(directory)) {
      const path = join(directory, name);
      if (statSync(path).isDirectory()) walk(path, depth - 1);
    }
  };
  walk(root, 2);
  return found;
}

/**
 * Brings the logs of writers that no process holds into the ledger, also of providers that are no longer configured:
 * opens each directory below `walRoot`, books what was left open, and waits until its watermark is its newest sequence.
 * Resolves with the writers that were read; those in use by a living process are left alone. Safe to call again.
 */
export async function recoverDirectories(walRoot: string, options: Omit<JournalOptions, 'directory' | 'provider'>): Promise<readonly string[]> {
  const recovered: string[] = [];
  for (const directory of writerDirectories(walRoot)) {
    if (isDirectoryInUse(directory)) continue;
    let journal: OpenJournal;
    try {
      journal = await openJournal({ ...options, directory, provider: 'unknown' });
    } catch (error) {
      options.log.warn('A write-ahead log was left alone.', { reason: error instanceof Error ? error.message : 'unknown' });
      continue;
    }
    try {
      await journal.recover();
      recovered.push(journal.state().writer);
    } finally {
      await journal.close();
    }
  }
  return recovered;
}
