/**
 * Tells quota what becomes of holds: they are still in use, or have turned into a charge. Messages are batched and repeated
 * until they are acknowledged or the ledger has the fact; losing one is harmless, since the ledger's totals follow. After a
 * loss of quota's store, everything that is under way or not yet in the ledger is told again.
 */
import type { Draw__Output, PeriodSet__Output } from '@signalbox/contracts/common';
import type { FinishRequest, HeartbeatRequest, HeartbeatResponse__Output, LiveHold, ReregisterRequest } from '@signalbox/contracts/quota';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { LiveMap } from '@signalbox/kernel/live-map';
import type { CallOptions, RpcClient } from '@signalbox/rpc/call';

/** 10 s: a third of the hold's lease of 30 s. */
const HEARTBEAT_MS = 10_000;
/** 2 s: accounts with limits stay closed for as long after a loss of quota's store, so even an idle worker asks this often. */
const PRESENCE_MS = 2_000;
/** 250 ms: a request that is over by then needs no heartbeat, since its charge ends the hold. */
const FIRST_HEARTBEAT_MS = 250;
/** 10 ms, to batch what a busy worker finishes. */
const GATHER_MS = 10;
/** 250 ms, for requests served from an advance: an advance has ample room, so nobody waits for what such a hold gives back. */
const GATHER_DRAWN_MS = 250;
const RETRY_MS = 500;
/** 500 ms, twice: a request that no limit watches starts anyway if quota does not answer. */
const TELL_DEADLINE_MS = 500;
const TELL_TRIES_MAX = 2;
const BATCH_MAX = 512;
/** At the limit the oldest is dropped; the ledger's totals correct quota. */
export const FINISHED_MAX = 50_000;
/** Entries dropped at once from a full list. Dropping moves all the others, so it must not happen for each one. */
const DROPPED_AT_ONCE = 1_000;

/** A hold that has turned into a charge, in the terms of quota's contract. */
export interface FinishedHold {
  readonly accountId: string;
  readonly keyId: string;
  readonly requestId: string;
  /** Decimal text. */
  readonly chargeNanoUsd: string;
  /** Decimal text. */
  readonly tokens: string;
  readonly byok: boolean;
  readonly periods: PeriodSet__Output | null;
  /** The part of an advance that served the request. */
  readonly draw?: Draw__Output | null;
}

export interface Settlement {
  /** The hold is in use from now on: quota is told after 250 ms, then every 10 s until `released`. */
  live(accountId: string, requestId: string, draw?: Draw__Output | null): void;
  /** The hold is no longer in use by this attempt. */
  released(requestId: string): void;
  /** The hold has turned into a charge; `seq` is that of the outcome in the log. */
  finished(hold: FinishedHold, seq: number): void;
  /** Like `finished`, but in an earlier process: quota is told only after a loss of its store. */
  finishedBefore(hold: FinishedHold, seq: number): void;
  /** Like `finishedBefore`, if another worker's log may have more rounds of the request: it is reported as held, which does not conflict with what others report. */
  finishedInPart(hold: FinishedHold, seq: number): void;
  /** The ledger has everything up to `seq`: what is queued up to there need not be told. */
  committed(seq: number): void;
  /** From now on the facts known here are complete; they are told whenever quota's store begins a new epoch. */
  begin(): void;
  /** Tells the present epoch of quota's store all that is known here; does nothing before `begin`. Rejects with the fault of the call. */
  tell(): Promise<void>;
  /** True if `epoch` is the latest known epoch of quota's store. */
  isPresent(epoch: string): boolean;
  /** True if that epoch has been known for longer than `ageMs`, so that what was admitted within `ageMs` was admitted in it. */
  isPresentFor(ageMs: number): boolean;
  /** Tells quota of a request that no limit watched, if quota has no hold of it. Resolves even if quota cannot be reached: the next heartbeat tells it. */
  tellUnwatched(accountId: string, requestId: string, draw?: Draw__Output | null): Promise<void>;
  /** Asks quota whether the request has a hold, in that epoch of its store. Rejects with the fault of the call. */
  confirm(accountId: string, requestId: string, epoch: string, draw?: Draw__Output | null): Promise<boolean>;
  /** Sends queued charges now. Tries once, for at most 500 ms, and resolves even if quota cannot be reached: the ledger's totals follow. */
  flush(): Promise<void>;
  close(): void;
}

interface LiveUse {
  readonly accountId: string;
  readonly requestId: string;
  readonly draw: Draw__Output | null;
  /** Number of attempts that use the hold. */
  uses: number;
  /** Quota has been told, or is being told. */
  isTold: boolean;
}

interface Finished {
  readonly seq: number;
  readonly hold: FinishedHold;
  readonly isPart?: boolean;
}

const isDrawn = ({ draw }: FinishedHold): boolean => draw !== undefined && draw !== null;

function partOf({ accountId, keyId, requestId, chargeNanoUsd, tokens, byok, periods }: FinishedHold): LiveHold {
  return { accountId, keyId, requestId, amountNanoUsd: chargeNanoUsd, tokens, byok, periods, started: true };
}

export interface SettlementOptions {
  readonly writer: string;
  readonly quota: RpcClient;
  readonly clock: Clock;
  /** The holds of all attempts that are about to start or have no outcome yet, as reported to that epoch of quota's store. */
  liveHolds(epoch: string): readonly LiveHold[];
  /** Those of these requests that no limit watched when they were admitted; it is not known whether any epoch of quota's store has them. */
  unwatchedHolds(requestIds: ReadonlySet<string>): readonly LiveHold[];
}

export function createSettlement({ writer, quota, clock, liveHolds, unwatchedHolds }: SettlementOptions): Settlement {
  const holds = new LiveMap<string, LiveUse>();
  let queue: Finished[] = [];
  let isSending = false;
  let sending: Promise<void> = Promise.resolve();
  let isClosed = false;
  /** Finished holds that are not known to be in the ledger. */
  let unbooked: Finished[] = [];
  /** Entries up to this sequence were dropped from `unbooked`. Until the ledger has them, no complete report is possible. */
  let droppedSeq = 0;
  let ledgerSeq = 0;
  /** Epoch of quota's store that was, or is being, told everything; empty = none. */
  let epoch = '';
  let epochSinceMs = 0;
  let isComplete = false;
  let beats = 0;
  let gather: Timer | undefined;
  /** When the gathering ends. It may be brought forward, except after quota has just failed. */
  let gatherEndMs = Infinity;
  let isRetrying = false;
  let firstBeat: Timer | undefined;
  let firstBeatArmedMs = 0;
  let beat: Timer | undefined;

  const sendBeat = async (live: readonly Pick<LiveUse, 'accountId' | 'requestId' | 'draw'>[], options?: CallOptions): Promise<void> => {
    const request: HeartbeatRequest = { writer, holds: live.map(({ accountId, requestId, draw }) => ({ accountId, requestId, draw })) };
    const { epoch: present, unheldRequestIds } = await quota.unary<HeartbeatRequest, HeartbeatResponse__Output>('Heartbeat', request, options);
    // A new epoch of the store is told everything in the background, which includes these.
    const wasMet = present === epoch;
    learn(present);
    if ((wasMet || options !== undefined) && unheldRequestIds.length > 0) await tellUnheld(present, new Set(unheldRequestIds), options);
  };
  /** Tells quota of requests under way that it has no hold of: a limit that was set meanwhile must count them. */
  const tellUnheld = async (present: string, requestIds: ReadonlySet<string>, options?: CallOptions): Promise<void> => {
    const live = unwatchedHolds(requestIds);
    if (live.length > 0) await quota.unary<ReregisterRequest, object>('Reregister', { writer, epoch: present, live: live.slice(0, BATCH_MAX), finished: [], last: false }, options);
  };
  const heartbeat = (live: readonly LiveUse[]): void => {
    // The next heartbeat makes up for a lost one.
    for (let i = 0; i < live.length; i += BATCH_MAX) sendBeat(live.slice(i, i + BATCH_MAX)).catch(() => undefined);
  };

  /** Notes a new epoch of quota's store and reports everything to it. From then on, holds of other epochs do not count as held. */
  const learn = (present: string): void => {
    if (isClosed || !isComplete || present === '' || present === epoch || droppedSeq > ledgerSeq) return;
    epoch = present;
    epochSinceMs = clock.monotonicMs();
    report(present).catch(() => {
      // Report again with the next heartbeat.
      if (epoch === present) epoch = '';
    });
  };
  const report = async (present: string): Promise<void> => {
    const live = [...liveHolds(present), ...unbooked.filter(({ isPart }) => isPart === true).map(({ hold }) => partOf(hold))];
    const finished = unbooked.filter(({ isPart }) => isPart !== true).map(({ hold }) => hold);
    for (let i = 0; ; i += BATCH_MAX) {
      const last = i + BATCH_MAX >= Math.max(live.length, finished.length);
      await quota.unary<ReregisterRequest, object>('Reregister', { writer, epoch: present, live: live.slice(i, i + BATCH_MAX), finished: finished.slice(i, i + BATCH_MAX), last });
      if (last) return;
    }
  };
  const keepUnbooked = (finished: Finished): void => {
    if (unbooked.length >= FINISHED_MAX) droppedSeq = unbooked.splice(0, DROPPED_AT_ONCE).at(-1)?.seq ?? droppedSeq;
    unbooked.push(finished);
  };

  const beatFirst = (): void => {
    firstBeat?.cancel();
    firstBeat = undefined;
    // Most requests that began since the last time are over by now.
    const begun: LiveUse[] = [];
    for (const hold of holds.values()) {
      if (hold.isTold) continue;
      hold.isTold = true;
      begun.push(hold);
    }
    heartbeat(begun);
  };

  const armBeat = (): void => {
    beat = clock.setTimer(PRESENCE_MS, () => {
      beats += 1;
      sendWaiting();
      beatBegun();
      if ((beats * PRESENCE_MS) % HEARTBEAT_MS === 0 && holds.size > 0) heartbeat([...holds.values()]);
      else if (isComplete) sendBeat([]).catch(() => undefined);
      armBeat();
    }, { unref: true });
  };
  armBeat();

  const schedule = (delayMs: number): void => {
    const endMs = clock.monotonicMs() + delayMs;
    if (isClosed || endMs >= gatherEndMs || isRetrying) return;
    gather?.cancel();
    gatherEndMs = endMs;
    gather = clock.setTimer(delayMs, () => {
      sendGathered();
      beatBegun();
    }, { unref: true });
  };
  const sendGathered = (): void => {
    gather?.cancel();
    gather = undefined;
    gatherEndMs = Infinity;
    isRetrying = false;
    if (!isSending) sending = send();
  };
  // Every message wakes quota and its store, so whatever is sent takes along what else is waiting. Charges go first: quota holds them back until the next message that somebody waits for.
  const sendWaiting = (): void => {
    if (gather !== undefined && !isRetrying) sendGathered();
  };
  /** Sends the first heartbeats early if half their delay has passed. Requests that end sooner are never told of. */
  const beatBegun = (): void => {
    if (firstBeat !== undefined && clock.monotonicMs() - firstBeatArmedMs >= FIRST_HEARTBEAT_MS / 2) beatFirst();
  };

  const send = async (options?: CallOptions): Promise<void> => {
    if (isSending || queue.length === 0) return;
    isSending = true;
    const batch = queue.splice(0, BATCH_MAX);
    try {
      const request: FinishRequest = { writer, finished: batch.map(({ hold }) => hold) };
      await quota.unary('Finish', request, options);
      isSending = false;
      // What was added meanwhile is gathered as usual, unless its time is over or there is a full batch.
      if (queue.length > 0 && (gather === undefined || queue.length >= BATCH_MAX)) schedule(0);
    } catch {
      isSending = false;
      queue = [...batch, ...queue];
      gather?.cancel();
      gatherEndMs = Infinity;
      schedule(RETRY_MS);
      isRetrying = true;
    }
  };

  return {
    live: (accountId, requestId, draw = null) => {
      const known = holds.get(requestId);
      if (known !== undefined) {
        known.uses += 1;
        return;
      }
      holds.set(requestId, { accountId, requestId, draw, uses: 1, isTold: false });
      if (firstBeat !== undefined) return;
      firstBeatArmedMs = clock.monotonicMs();
      firstBeat = clock.setTimer(FIRST_HEARTBEAT_MS, () => {
        sendWaiting();
        beatFirst();
      }, { unref: true });
    },
    released: (requestId) => {
      const known = holds.get(requestId);
      if (known === undefined) return;
      known.uses -= 1;
      if (known.uses <= 0) holds.delete(requestId);
    },
    finished: (hold, seq) => {
      const finished = { seq, hold };
      if (queue.length >= FINISHED_MAX) queue.splice(0, DROPPED_AT_ONCE);
      queue.push(finished);
      keepUnbooked(finished);
      schedule(isDrawn(hold) ? GATHER_DRAWN_MS : GATHER_MS);
    },
    finishedBefore: (hold, seq) => keepUnbooked({ seq, hold }),
    finishedInPart: (hold, seq) => keepUnbooked({ seq, hold, isPart: true }),
    begin: () => {
      isComplete = true;
      sendBeat([]).catch(() => undefined);
    },
    tell: async () => {
      const { epoch: present } = await quota.unary<HeartbeatRequest, HeartbeatResponse__Output>('Heartbeat', { writer, holds: [] });
      if (isComplete && present !== '' && droppedSeq <= ledgerSeq) await report(present);
    },
    isPresent: (asked) => asked === epoch,
    isPresentFor: (ageMs) => epoch !== '' && clock.monotonicMs() - epochSinceMs > ageMs,
    tellUnwatched: async (accountId, requestId, draw = null) => {
      for (let tries = 0; tries < TELL_TRIES_MAX; tries += 1) {
        try {
          return await sendBeat([{ accountId, requestId, draw }], { deadlineMs: TELL_DEADLINE_MS });
        } catch {
          // Heartbeats tell it.
        }
      }
    },
    confirm: async (accountId, requestId, asked, draw = null) => {
      const request: HeartbeatRequest = { writer, holds: [{ accountId, requestId, draw }], confirm: true };
      const { epoch: present, unheldRequestIds } = await quota.unary<HeartbeatRequest, HeartbeatResponse__Output>('Heartbeat', request);
      learn(present);
      return present === asked && unheldRequestIds.length === 0;
    },
    committed: (seq) => {
      const [oldest] = queue;
      // Charges of requests served from an advance are always told: the ledger's totals give nothing back to an advance.
      if (oldest !== undefined && oldest.seq <= seq) queue = queue.filter((entry) => entry.seq > seq || isDrawn(entry.hold));
      ledgerSeq = seq;
      const [first] = unbooked;
      if (first !== undefined && first.seq <= seq) unbooked = unbooked.filter((entry) => entry.seq > seq);
    },
    flush: async () => {
      await sending;
      const endMs = clock.monotonicMs() + TELL_DEADLINE_MS;
      for (let left = Infinity; queue.length > 0 && queue.length < left; ) {
        left = queue.length;
        await send({ deadlineMs: Math.max(1, endMs - clock.monotonicMs()) });
      }
    },
    close: () => {
      isClosed = true;
      for (const timer of [gather, firstBeat, beat]) timer?.cancel();
    },
  };
}
