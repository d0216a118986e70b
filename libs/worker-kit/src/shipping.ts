/**
 * Ships the log to the ledger: publishes contiguous ranges on the bus, at least once, until billing's watermark says that
 * they are committed. The bus is transport only: what it loses is sent again from the watermark. Records are sent as the
 * bytes that are in the log.
 */
import type { Bus } from '@signalbox/bus/bus';
import type { DeregisterRequest, DeregisterResponse__Output, RegisterRequest, RegisterResponse__Output, WatermarkRequest, WatermarkResponse__Output } from '@signalbox/contracts/billing';
import type { UsageRecorded, UsageRecorded__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { RpcClient } from '@signalbox/rpc/call';
import type { Log } from '@signalbox/runtime/log';
import { rareWarning } from '@signalbox/runtime/rare-warning';
import type { ShippedRecord } from './wal-files.js';
import { OwedSince } from './owed-since.js';
import { WaitingRecords, type RecordBatch } from './waiting-records.js';

export const usageCodec = messageCodec<UsageRecorded, UsageRecorded__Output>('signalbox.events.v1.UsageRecorded');

/** Most records in one message, some 100 kB. NATS takes 1 MiB, unless it is told otherwise. */
const BATCH_RECORDS = 256;
/** Most messages sent before any of them is confirmed, so that shipping keeps up with a log that grows fast. */
const BATCHES_MAX = 8;
/** 50 ms, so that the records of one request are sent together. */
const GATHER_MS = 50;
/** At least 300 ms between two sends, unless much is waiting: each one wakes this process, the bus and billing, however little it carries. The ledger lags by this and by billing's own delay. */
const SPACING_MS = 300;
const WATERMARK_BUSY_MS = 1_000;
/** While somebody waits for the ledger, as recovery does after a kill. */
const WATERMARK_AWAITED_MS = 20;
/** Between two tries to reach billing at the end. */
const AWAY_MS = 250;
const WATERMARK_IDLE_MS = 15_000;
/** After 30 s without progress of the watermark, what was sent counts as lost and is sent again. */
const STALL_MS = 30_000;
const BACKOFF_MIN_MS = 100;
const BACKOFF_MAX_MS = 5_000;
/** Most records that wait in memory, also while the bus is away; beyond that they are read from the log again. */
const WAITING_MAX = 8_192;
/** This many waiting records are sent without gathering more. */
const MUCH = BATCH_RECORDS * BATCHES_MAX;
const SHARDS = 16;

export interface ShippingOptions {
  readonly writer: string;
  readonly provider: string;
  readonly bus: Bus;
  readonly billing: RpcClient;
  readonly clock: Clock;
  readonly log: Log;
  /** Newest sequence written. */
  lastSeq(): number;
  /** When the oldest attempt without an end was reserved, in milliseconds since the epoch; 0 = there is none. */
  openSinceMs(): number;
  /** Reads ended attempts and outcomes with `after` < seq from the files, ascending, at most `limit`. */
  read(after: number, limit: number): readonly ShippedRecord[];
  /** The ledger answered for the first time, with its watermark. */
  onRegistered(ledgerSeq: number): void;
  onLedger(ledgerSeq: number): void;
  /** True while somebody waits until the ledger has everything that is written. */
  isAwaited(): boolean;
}

export interface Shipping {
  /** Starts registration in the background. */
  begin(): void;
  /** The records of one write, now in the log, ascending. */
  add(records: readonly ShippedRecord[]): void;
  shippedSeq(): number;
  ledgerSeq(): number;
  /** How long the oldest unbooked record has waited; records of an earlier process count from the start of this one. 0 = none waits. */
  unbookedMs(): number;
  /** Sends what is waiting now; resolves when it is with the bus, or when the bus refused it (it is retried later). */
  flush(): Promise<void>;
  /** To be called when nothing more is written and no attempt is open. Waits until the ledger has everything and then tells billing that the writer has ended. Gives up after `waitMs` and two calls; billing then waits for the writer as if it had been killed. */
  end(waitMs: number): Promise<void>;
  close(): void;
}

/** A range of the log, both ends included. */
interface Message {
  readonly first: number;
  readonly last: number;
  readonly payload: Buffer;
}

/** Subject of a writer, `usage.v1.<shard>`: always the same, so that its ranges stay in order. */
function usageSubject(writer: string): string {
  let sum = 0;
  for (let i = 0; i < writer.length; i += 1) sum = (sum * 31 + writer.charCodeAt(i)) >>> 0;
  return `usage.v1.${sum % SHARDS}`;
}

/** Builds a UsageRecorded from records that are already encoded, by concatenation: the fields of a protobuf message may come in any order. */
export function joinUsage(range: { readonly writer: string; readonly firstSeq: number; readonly lastSeq: number }, { fields }: RecordBatch): Buffer {
  return Buffer.concat([usageCodec.encode(range), fields]);
}

export function createShipping(options: ShippingOptions): Shipping {
  const { writer, provider, bus, billing, clock, log } = options;
  const subject = usageSubject(writer);
  const waiting = new WaitingRecords();
  const warnTooLarge = rareWarning(log, clock, 'The bus takes no message as large as one record of usage: this record and all behind it are not booked until max_payload of NATS, or max_msg_size of its stream USAGE, is raised.');
  /** Records after `shipped` are missing from `waiting` and must be read from the files. */
  let isBehind = false;
  let isRegistered = false;
  let shipped = 0;
  /** How often the log was sent again. Part of the message ids, since the bus would otherwise drop what is sent again as a duplicate. */
  let resends = 0;
  let ledger = 0;
  /** Id of the latest report that billing answered; empty = none yet, or billing runs an earlier version without these ids. */
  let reportId = '';
  /** Newest record that is to be booked. Which one that is in an earlier process's log is not known, so it starts at the end. */
  let owed = options.lastSeq();
  const owedSince = new OwedSince();
  if (owed > 0) owedSince.written(owed, clock.monotonicMs());
  let progressAtMs = clock.monotonicMs();
  let shippedAtMs = -Infinity;
  /** Records in one message: fewer once the bus took none of that size. */
  let batchRecords = BATCH_RECORDS;
  let isShipping = false;
  /** The current or last run of `ship`. */
  let shipping = Promise.resolve();
  /** The question for the watermark that is not answered yet. */
  let polling: Promise<boolean> | undefined;
  /** Number of callers of `flush` that are waiting. */
  let flushes = 0;
  let backoffMs = BACKOFF_MIN_MS;
  let isClosed = false;
  const timers = new Map<string, Timer>(); // kept: a few names, with timers that hold nothing of a request.

  const busyMs = (): number => (options.isAwaited() ? WATERMARK_AWAITED_MS : WATERMARK_BUSY_MS);

  function arm(name: string, delayMs: number, fire: () => void): void {
    if (isClosed || timers.has(name)) return;
    timers.set(name, clock.setTimer(delayMs, () => {
      timers.delete(name);
      if (!isClosed) fire();
    }, { unref: true }));
  }

  function refill(): void {
    waiting.clear();
    const records = options.read(shipped, WAITING_MAX);
    for (const record of records) waiting.add(record);
    isBehind = records.length === WAITING_MAX && (records.at(-1)?.seq ?? shipped) < options.lastSeq();
  }

  /** The oldest waiting records, as messages of contiguous ranges. */
  function nextMessages(): Message[] {
    const messages: Message[] = [];
    let first = shipped + 1;
    for (let passed = 0; messages.length < BATCHES_MAX; passed += batchRecords) {
      const batch = waiting.oldest(batchRecords, passed);
      if (batch === undefined) break;
      // Start records at the end of the range have nothing to book, but the range must cover their sequences.
      const last = passed + batchRecords >= waiting.count && !isBehind ? options.lastSeq() : batch.newestSeq;
      messages.push({ first, last, payload: joinUsage({ writer, firstSeq: first, lastSeq: last }, batch) });
      first = last + 1;
    }
    return messages;
  }

  /** Names the whole range, since a later message with the same end may begin earlier. */
  const messageIdOf = ({ first, last }: Message): string => `${writer}:${first}-${last}${resends === 0 ? '' : `:${resends}`}`;

  /** Resolves when the bus has all messages. Messages before the first that it refused are not sent again. */
  async function send(messages: readonly Message[]): Promise<void> {
    const answers = await Promise.allSettled(messages.map((message) => bus.publish(subject, message.payload, { messageId: messageIdOf(message) })));
    const refusedAt = answers.findIndex(({ status }) => status === 'rejected');
    const stored = messages[(refusedAt === -1 ? messages.length : refusedAt) - 1];
    // If the watermark moved `shipped` meanwhile, continue from there.
    if (!isClosed && stored !== undefined && shipped + 1 === messages[0]?.first) {
      shipped = stored.last;
      waiting.dropUpTo(stored.last);
      arm('watermark-busy', busyMs(), () => void poll());
    }
    const refused = answers[refusedAt];
    if (refused?.status === 'rejected') throw refused.reason;
  }

  /** Sends what is waiting. What arrives meanwhile is gathered for the next run, or sent in this one if it is much or a `flush` waits. */
  async function ship(): Promise<void> {
    if (isShipping || !isRegistered || isClosed) return;
    isShipping = true;
    try {
      for (let sent = 0; ; sent += 1) {
        if (waiting.count === 0 && isBehind) refill();
        if (sent > 0 && waiting.count < MUCH && !isBehind && flushes === 0) {
          if (waiting.count > 0) offer();
          return;
        }
        const messages = nextMessages();
        if (messages.length === 0) return;
        shippedAtMs = clock.monotonicMs();
        await send(messages);
        if (isClosed) return;
        backoffMs = BACKOFF_MIN_MS;
      }
    } catch (error) {
      // For good, since the bus will not take more the next time.
      if (error instanceof Fault && error.code === 'bad_message') {
        if (batchRecords === 1) warnTooLarge({ writer, seq: shipped + 1 });
        batchRecords = Math.max(1, Math.floor(batchRecords / 2));
      }
      log.warn('The bus did not take usage; it is sent again.', { writer, error: error instanceof Fault ? error.code : 'unknown' });
      arm('ship', backoffMs, () => start());
      backoffMs = Math.min(backoffMs * 2, BACKOFF_MAX_MS);
    } finally {
      isShipping = false;
    }
  }

  function start(): void {
    if (!isShipping) shipping = ship();
  }

  /** Schedules sending of what is waiting. */
  function offer(): void {
    // A retry is scheduled already and will send these records too.
    if (timers.has('ship')) return;
    const spacingMs = options.isAwaited() ? 0 : shippedAtMs + SPACING_MS - clock.monotonicMs();
    if (waiting.count >= MUCH) start();
    else arm('gather', Math.max(GATHER_MS, spacingMs), () => start());
  }

  function resend(): void {
    resends += 1;
    shipped = ledger;
    waiting.clear();
    isBehind = true;
    progressAtMs = clock.monotonicMs();
    arm('ship', 0, () => start());
  }

  function seen(next: number): void {
    if (next < ledger) {
      log.warn('The ledger went back; usage is sent again from its watermark.', { writer, ledger_seq: String(next) });
      ledger = next;
      owedSince.written(owed, clock.monotonicMs());
      resend();
    } else if (next > ledger || next === options.lastSeq()) {
      ledger = next;
      owedSince.booked(ledger);
      progressAtMs = clock.monotonicMs();
      if (shipped < ledger) {
        shipped = ledger;
        waiting.dropUpTo(ledger);
      }
    } else if (shipped > ledger && clock.monotonicMs() - progressAtMs > STALL_MS) resend();
    options.onLedger(ledger);
  }

  /** Asks for the watermark; true if billing answered. One question at a time: of two at different replicas, the older answer may come last, and would look like a ledger that went back. */
  function poll(): Promise<boolean> {
    return (polling ??= askWatermark().finally(() => (polling = undefined)));
  }

  async function askWatermark(): Promise<boolean> {
    let isAnswered = false;
    try {
      const request: WatermarkRequest = { writer, lastSeq: String(options.lastSeq()), openSinceMs: String(options.openSinceMs()), owedSeq: String(owed) };
      const answer = await billing.unary<WatermarkRequest, WatermarkResponse__Output>('Watermark', request);
      isAnswered = true;
      reportId = answer.reportId;
      seen(Number(answer.ledgerSeq));
    } catch {
      // Billing is away: the log waits, and nothing else depends on it.
    }
    const isBusy = ledger < shipped;
    for (const name of ['watermark', 'watermark-busy']) {
      timers.get(name)?.cancel();
      timers.delete(name);
    }
    arm('watermark', isBusy ? busyMs() : WATERMARK_IDLE_MS, () => void poll());
    return isAnswered;
  }

  /** Tells billing that the writer has ended; true if it accepted. False if the named report is no longer the latest: another poll gets a new one. */
  async function deregister(): Promise<boolean> {
    const lastSeq = options.lastSeq();
    if (reportId === '' || ledger < lastSeq) return false;
    const request: DeregisterRequest = { writer, lastSeq: String(lastSeq), reportId };
    return (await billing.unary<DeregisterRequest, DeregisterResponse__Output>('Deregister', request)).ended;
  }

  async function end(waitMs: number): Promise<void> {
    const endMs = clock.monotonicMs() + waitMs;
    while (isRegistered) {
      const isAnswered = await poll();
      // An earlier version of billing names no report and cannot be told.
      const isOver = isAnswered && (reportId === '' || (await deregister().catch(() => false)));
      if (isOver || clock.monotonicMs() >= endMs) return;
      await new Promise<void>((resolve) => clock.setTimer(isAnswered ? WATERMARK_AWAITED_MS : AWAY_MS, resolve));
    }
  }

  async function register(): Promise<void> {
    try {
      const request: RegisterRequest = { writer, provider, lastSeq: String(options.lastSeq()) };
      const answer = await billing.unary<RegisterRequest, RegisterResponse__Output>('Register', request);
      if (isClosed) return;
      backoffMs = BACKOFF_MIN_MS;
      ledger = Number(answer.ledgerSeq);
      shipped = ledger;
      owedSince.booked(ledger);
      isRegistered = true;
      options.onRegistered(ledger);
      waiting.clear();
      isBehind = true;
      start();
      arm('watermark', busyMs(), () => void poll());
    } catch (error) {
      log.debug('Billing did not register the writer; it is asked again.', { writer, error: error instanceof Error ? error.name : 'unknown' });
      arm('register', backoffMs, () => void register());
      backoffMs = Math.min(backoffMs * 2, BACKOFF_MAX_MS);
    }
  }

  return {
    begin: () => void register(),
    add: (records) => {
      const newest = records.at(-1);
      if (newest !== undefined) owedSince.written((owed = newest.seq), clock.monotonicMs());
      if (isBehind || waiting.count + records.length > WAITING_MAX) isBehind = true;
      else for (const record of records) waiting.add(record);
      offer();
    },
    shippedSeq: () => shipped,
    ledgerSeq: () => ledger,
    unbookedMs: () => owedSince.ageMs(clock.monotonicMs()),
    flush: async () => {
      flushes += 1;
      start();
      await shipping;
      flushes -= 1;
    },
    end,
    close: () => {
      isClosed = true;
      for (const timer of timers.values()) timer.cancel();
      timers.clear();
    },
  };
}
