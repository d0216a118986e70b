/**
 * Remembers decisions so that somebody may ask why. Records are made off the request's path, a moment later, and handed
 * on in batches; the latest ones stay in memory. Bounded by rate and by number: under load a share goes unrecorded.
 */
import type { Clock, Timer } from '@signalbox/kernel/clock';
import type { Snapshot } from '@signalbox/router-core/catalog';
import type { Plan, Refusal } from '@signalbox/router-core/decide';
import { mayKeep, recordOf, type DecisionRecord } from '@signalbox/router-core/record';
import type { RouteRequest } from '@signalbox/router-core/request';

/** How long a decision waits for its batch. */
const FLUSH_MS = 1_000;
/** Records made in one go, about a millisecond: making them holds the event loop. */
const PART_MAX = 8;
/** Decisions kept in memory, for who asks before the store has them: this many, and records of this much. */
const REMEMBERED_MAX = 1_000;
const REMEMBERED_BYTES_MAX = 1024 * 1024;
/** Seconds' worth of records that may come at once. */
const BURST_SECONDS = 10;
/** A pinned model says little of how routing decides: of those at most this share of the rate is recorded. */
const PINNED_SHARE = 0.2;
/** Of pinned models: with room for fewer, edge is not asked to tell of each request that it serves by a kept plan, since the next ones would find none. */
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
  /** True when the decision is to be noted: not when the request's data must not be kept, or too many were noted of late. Ask once for each. */
  takes(request: RouteRequest, viaAuto: boolean): boolean;
  /** Some more of pinned models would be taken at once. */
  hasRoom(): boolean;
  /** Of a decision that it takes. */
  note(decided: Decided): void;
  /** By id, or by request when `id` is empty; of that account alone. */
  find(query: { readonly accountId: string; readonly id: string; readonly requestId: string }): RecordedDecision | undefined;
  /** Hands on what waits; for the end of the service. */
  flush(): void;
}

export interface DecisionsOptions {
  readonly clock: Clock;
  /** Records a second at most; 0 = none. */
  readonly perSecondMax: number;
  /** Given each batch; never throws. */
  readonly handOn: (records: readonly RecordedDecision[]) => void;
  readonly onSkipped: () => void;
}

interface Bucket {
  take(): boolean;
  /** Tokens in it. */
  left(): number;
}

/** A bucket of tokens that fills with time. */
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

/** In memory of their own: kept bytes of the pool that all share would keep 64 KB of it each. */
function bytesOf(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}

export function createDecisions({ clock, perSecondMax, handOn, onSkipped }: DecisionsOptions): Decisions {
  const ofAuto = bucketOf(clock, perSecondMax);
  const ofPinned = bucketOf(clock, perSecondMax * PINNED_SHARE);
  let waiting: Decided[] = [];
  /** Of the batch that is being made. */
  const made: RecordedDecision[] = [];
  let timer: Timer | undefined;
  // A Map iterates in the order of insertion: the first entry is the oldest.
  const remembered = new Map<string, RecordedDecision>(); // kept: thousands, to be looked up: what leaves is old whichever table held it.
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
