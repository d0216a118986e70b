/**
 * Records decisions so that they can be explained later. Records are made a moment after the request and passed on in
 * batches; the latest ones stay in memory. Bounded by rate and number: under load, only a share is recorded.
 */
import type { Clock, Timer } from '@signalbox/kernel/clock';
import type { Snapshot } from '@signalbox/router-core/catalog';
import type { Plan, Refusal } from '@signalbox/router-core/decide';
import { mayKeep, recordOf, type DecisionRecord } from '@signalbox/router-core/record';
import type { RouteRequest } from '@signalbox/router-core/request';

/** How long a decision may wait for its batch. */
const FLUSH_MS = 1_000;
/** Records made per turn: this many block the event loop for about a millisecond. */
const PART_MAX = 8;
/** Bounds, in number and bytes, on decisions kept in memory for queries that come before the store has them. */
const REMEMBERED_MAX = 1_000;
const REMEMBERED_BYTES_MAX = 1024 * 1024;
/** Size of a burst, in seconds' worth of records. */
const BURST_SECONDS = 10;
/** Decisions for a pinned model show little of how routing works, so they get at most this share of the rate. */
const PINNED_SHARE = 0.2;
/** Records kept free for pinned models. With room for fewer, edge is not asked to report each request that it serves from a kept plan, so that requests that do call routing find room. */
const SPARE_RECORDS = 5;

export interface Decided {
  readonly id: string;
  readonly requestId: string;
  readonly accountId: string;
  readonly atMs: number;
  readonly viaAuto: boolean;
  readonly request: RouteRequest;
  readonly snapshot: Snapshot;
  readonly seed: number;
  readonly result: Plan | Refusal;
}

export interface RecordedDecision extends Pick<Decided, 'id' | 'requestId' | 'accountId' | 'atMs' | 'viaAuto'> {
  /** JSON of a DecisionRecord. */
  readonly record: Buffer;
}

export interface Decisions {
  /** True if the decision should be noted; false if the request's data must not be kept, or the rate is used up. Call once per decision. */
  takes(request: RouteRequest, viaAuto: boolean): boolean;
  /** True if several more decisions for pinned models could be recorded now. */
  hasRoom(): boolean;
  /** Notes a decision for which `takes` returned true. */
  note(decided: Decided): void;
  /** Finds a decision of the account by id, or by request if `id` is empty. */
  find(query: { readonly accountId: string; readonly id: string; readonly requestId: string }): RecordedDecision | undefined;
  /** Passes on all waiting records; for the shutdown of the service. */
  flush(): void;
}

export interface DecisionsOptions {
  readonly clock: Clock;
  /** Most records per second; 0 = none. */
  readonly perSecondMax: number;
  /** Receives each batch; must not throw. */
  readonly handOn: (records: readonly RecordedDecision[]) => void;
  readonly onSkipped: () => void;
}

interface Bucket {
  take(): boolean;
  /** Tokens left in the bucket. */
  left(): number;
}

/** A token bucket that refills with time. */
function bucketOf(clock: Clock, perSecond: number): Bucket {
  const most = perSecond * BURST_SECONDS;
  let tokens = most;
  let atMs = clock.monotonicMs();
  const left = (): number => {
    const nowMs = clock.monotonicMs();
    tokens = Math.min(most, tokens + ((nowMs - atMs) * perSecond) / 1_000);
    atMs = nowMs;
    return tokens;
  };
  return {
    left,
    take: () => {
      if (left() < 1) return false;
      tokens -= 1;
      return true;
    },
  };
}

/** Copies the text to a buffer outside Node's shared pool: a kept slice of the pool would keep 64 KB alive. */
function bytesOf(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}

export function createDecisions({ clock, perSecondMax, handOn, onSkipped }: DecisionsOptions): Decisions {
  const ofAuto = bucketOf(clock, perSecondMax);
  const ofPinned = bucketOf(clock, perSecondMax * PINNED_SHARE);
  let waiting: Decided[] = [];
  /** Records of the current batch. */
  const made: RecordedDecision[] = [];
  let timer: Timer | undefined;
  // A Map iterates in the order of insertion: the first entry is the oldest.
  const remembered = new Map<string, RecordedDecision>(); // kept: thousands, for look-ups; entries are old when they leave anyway.
  let rememberedBytes = 0;

  function recorded({ id, requestId, accountId, atMs, viaAuto, request, snapshot, seed, result }: Decided): RecordedDecision | undefined {
    const record: DecisionRecord | undefined = recordOf(request, snapshot, seed, result);
    if (record === undefined) return undefined;
    const kept = { id, requestId, accountId, atMs, viaAuto, record: bytesOf(JSON.stringify(record)) };
    remembered.set(id, kept);
    rememberedBytes += kept.record.length;
    for (const [oldest, { record: bytes }] of remembered) {
      if (oldest === id || (remembered.size <= REMEMBERED_MAX && rememberedBytes <= REMEMBERED_BYTES_MAX)) break;
      remembered.delete(oldest);
      rememberedBytes -= bytes.length;
    }
    return kept;
  }

  function flushSome(): void {
    timer = undefined;
    for (const decided of waiting.splice(0, PART_MAX)) {
      const record = recorded(decided);
      if (record !== undefined) made.push(record);
    }
    if (waiting.length > 0) timer = clock.setTimer(0, flushSome, { unref: true });
    else if (made.length > 0) handOn(made.splice(0));
  }

  return {
    takes: (request, viaAuto) => {
      if (!mayKeep(request)) return false;
      const isTaken = (viaAuto ? ofAuto : ofPinned).take();
      if (!isTaken) onSkipped();
      return isTaken;
    },
    hasRoom: () => ofPinned.left() >= SPARE_RECORDS,
    note: (decided) => {
      waiting.push(decided);
      timer ??= clock.setTimer(FLUSH_MS, flushSome, { unref: true });
    },
    find: ({ accountId, id, requestId }) => {
      const isAsked = (entry: Pick<Decided, 'id' | 'requestId' | 'accountId'>): boolean => entry.accountId === accountId && (id === '' ? entry.requestId === requestId : entry.id === id);
      const pending = waiting.find(isAsked);
      if (pending !== undefined) {
        waiting = waiting.filter((entry) => entry !== pending);
        const record = recorded(pending);
        if (record !== undefined) handOn([record]);
        return record;
      }
      if (id !== '') {
        const found = remembered.get(id);
        return found?.accountId === accountId ? found : undefined;
      }
      for (const entry of remembered.values()) if (isAsked(entry)) return entry;
      return undefined;
    },
    flush: () => {
      timer?.cancel();
      while (waiting.length > 0 || made.length > 0) {
        flushSome();
        timer?.cancel();
      }
      timer = undefined;
    },
  };
}
