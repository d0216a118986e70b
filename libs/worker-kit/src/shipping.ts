/**
 * Carries the log to the ledger: contiguous ranges of it on the bus, at least once, until billing's watermark
 * says that they are committed. The bus is transport only: what it lost is sent again from the watermark.
 */
import type { Bus } from '@signalbox/bus/bus';
import type { RegisterRequest, RegisterResponse__Output, WatermarkRequest, WatermarkResponse__Output } from '@signalbox/contracts/billing';
import type { AttemptEnded, OutcomeTold, UsageRecorded, UsageRecorded__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import type { RpcClient } from '@signalbox/rpc/call';
import type { Log } from '@signalbox/runtime/log';

export const usageCodec = messageCodec<UsageRecorded, UsageRecorded__Output>('signalbox.events.v1.UsageRecorded');

const BATCH_RECORDS = 256;
/** 50 ms: a batch for the bus and for Postgres; totals lag by as much. */
const GATHER_MS = 50;
const WATERMARK_BUSY_MS = 1_000;
const WATERMARK_IDLE_MS = 15_000;
/** 30 s without progress of the watermark: what was sent is taken for lost and sent again. */
const STALL_MS = 30_000;
const BACKOFF_MIN_MS = 100;
const BACKOFF_MAX_MS = 5_000;
/** Records waiting in memory; beyond it they are read from the log again. */
const WAITING_MAX = 20_000;
const SHARDS = 16;

export type ShippedRecord = { readonly seq: bigint; readonly ended: AttemptEnded } | { readonly seq: bigint; readonly outcome: OutcomeTold };

export interface ShippingOptions {
  readonly writer: string;
  readonly provider: string;
  readonly bus: Bus;
  readonly billing: RpcClient;
  readonly clock: Clock;
  readonly log: Log;
  /** Newest sequence that is written. */
  lastSeq(): bigint;
  /** Ended attempts and outcomes with `after` < seq, ascending, at most `limit`: from the files. */
  read(after: bigint, limit: number): readonly ShippedRecord[];
  /** The ledger answered for the first time, with its watermark. */
  onRegistered(ledgerSeq: bigint): void;
  onLedger(ledgerSeq: bigint): void;
}

export interface Shipping {
  /** Starts registration in the background. */
  begin(): void;
  /** All records of one write that are now in the log, ascending. */
  add(records: readonly ShippedRecord[]): void;
  shippedSeq(): bigint;
  ledgerSeq(): bigint;
  /** Sends what is waiting now; resolves when it is with the bus, or when the bus refused it (it is retried later). */
  flush(): Promise<void>;
  close(): void;
}

/** `usage.v1.<shard>` of a writer: always the same, so that one writer's ranges stay in order. */
export function usageSubject(writer: string): string {
  let sum = 0;
  for (let i = 0; i < writer.length; i += 1) sum = (sum * 31 + writer.charCodeAt(i)) >>> 0;
  return `usage.v1.${sum % SHARDS}`;
}

export function createShipping(options: ShippingOptions): Shipping {
  const { writer, provider, bus, billing, clock, log } = options;
  const subject = usageSubject(writer);
  let waiting: ShippedRecord[] = [];
  /** True when records after `shipped` are missing from `waiting` and must be read from the files. */
  let isBehind = false;
  let isRegistered = false;
  let shipped = 0n;
  let ledger = 0n;
  let progressAtMs = clock.monotonicMs();
  let isShipping = false;
  let backoffMs = BACKOFF_MIN_MS;
  let isClosed = false;
  const timers = new Map<string, Timer>();

  function arm(name: string, delayMs: number, fire: () => void): void {
    if (isClosed || timers.has(name)) return;
    timers.set(name, clock.setTimer(delayMs, () => {
      timers.delete(name);
      if (!isClosed) fire();
    }, { unref: true }));
  }

  function refill(): void {
    waiting = [...options.read(shipped, WAITING_MAX)];
    const newest = waiting.at(-1)?.seq ?? shipped;
    isBehind = waiting.length === WAITING_MAX && newest < options.lastSeq();
  }

  async function ship(): Promise<void> {
    if (isShipping || !isRegistered || isClosed) return;
    isShipping = true;
    try {
      for (;;) {
        if (waiting.length === 0 && isBehind) refill();
        const batch = waiting.slice(0, BATCH_RECORDS);
        const newest = batch.at(-1);
        if (newest === undefined) return;
        // Starts at the end of the range carry nothing to book but belong to the sequence.
        const last = batch.length === waiting.length && !isBehind ? options.lastSeq() : newest.seq;
        const first = shipped + 1n;
        const message: UsageRecorded = {
          writer,
          firstSeq: String(first),
          lastSeq: String(last),
          ended: batch.flatMap((record) => ('ended' in record ? [record.ended] : [])),
          outcomes: batch.flatMap((record) => ('outcome' in record ? [record.outcome] : [])),
        };
        await bus.publish(subject, usageCodec.encode(message), { messageId: `${writer}:${last}` });
        if (isClosed) return;
        backoffMs = BACKOFF_MIN_MS;
        // A watermark that went back meanwhile has moved `shipped`: start again from there.
        if (shipped + 1n !== first) continue;
        shipped = last;
        const sent = new Set(batch);
        waiting = waiting.filter((record) => !sent.has(record));
        arm('watermark-busy', WATERMARK_BUSY_MS, () => void poll());
      }
    } catch (error) {
      log.warn('The bus did not take usage; it is sent again.', { writer, error: error instanceof Error ? error.name : 'unknown' });
      arm('ship', backoffMs, () => void ship());
      backoffMs = Math.min(backoffMs * 2, BACKOFF_MAX_MS);
    } finally {
      isShipping = false;
    }
  }

  function resend(): void {
    shipped = ledger;
    waiting = [];
    isBehind = true;
    progressAtMs = clock.monotonicMs();
    arm('ship', 0, () => void ship());
  }

  function seen(next: bigint): void {
    if (next < ledger) {
      log.warn('The ledger went back; usage is sent again from its watermark.', { writer, ledger_seq: String(next) });
      ledger = next;
      resend();
    } else if (next > ledger || next === options.lastSeq()) {
      ledger = next;
      progressAtMs = clock.monotonicMs();
      if (shipped < ledger) {
        shipped = ledger;
        waiting = waiting.filter((record) => record.seq > ledger);
      }
    } else if (shipped > ledger && clock.monotonicMs() - progressAtMs > STALL_MS) resend();
    options.onLedger(ledger);
  }

  async function poll(): Promise<void> {
    try {
      const request: WatermarkRequest = { writer, lastSeq: String(options.lastSeq()) };
      const answer = await billing.unary<WatermarkRequest, WatermarkResponse__Output>('Watermark', request);
      seen(BigInt(answer.ledgerSeq));
    } catch {
      // Billing is away: the log waits; nothing else depends on it.
    }
    const isBusy = ledger < shipped;
    for (const name of ['watermark', 'watermark-busy']) {
      timers.get(name)?.cancel();
      timers.delete(name);
    }
    arm('watermark', isBusy ? WATERMARK_BUSY_MS : WATERMARK_IDLE_MS, () => void poll());
  }

  async function register(): Promise<void> {
    try {
      const request: RegisterRequest = { writer, provider, lastSeq: String(options.lastSeq()) };
      const answer = await billing.unary<RegisterRequest, RegisterResponse__Output>('Register', request);
      if (isClosed) return;
      backoffMs = BACKOFF_MIN_MS;
      ledger = BigInt(answer.ledgerSeq);
      shipped = ledger;
      isRegistered = true;
      options.onRegistered(ledger);
      waiting = [];
      isBehind = true;
      void ship();
      arm('watermark', WATERMARK_BUSY_MS, () => void poll());
    } catch (error) {
      log.debug('Billing did not register the writer; it is asked again.', { writer, error: error instanceof Error ? error.name : 'unknown' });
      arm('register', backoffMs, () => void register());
      backoffMs = Math.min(backoffMs * 2, BACKOFF_MAX_MS);
    }
  }

  return {
    begin: () => void register(),
    add: (records) => {
      if (isBehind || waiting.length + records.length > WAITING_MAX) isBehind = true;
      else waiting.push(...records);
      if (waiting.length >= BATCH_RECORDS) void ship();
      else arm('gather', GATHER_MS, () => void ship());
    },
    shippedSeq: () => shipped,
    ledgerSeq: () => ledger,
    flush: ship,
    close: () => {
      isClosed = true;
      for (const timer of timers.values()) timer.cancel();
      timers.clear();
    },
  };
}
