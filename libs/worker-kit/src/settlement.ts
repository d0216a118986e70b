/**
 * Tells quota what becomes of holds: they live, or they have turned into a charge. Batched, repeated until
 * acknowledged or until the ledger has the fact; losing one is harmless since the ledger's totals follow.
 */
import type { PeriodSet__Output } from '@signalbox/contracts/common';
import type { FinishRequest, HeartbeatRequest } from '@signalbox/contracts/quota';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import type { RpcClient } from '@signalbox/rpc/call';

/** 10 s: a third of the hold's lease of 30 s. */
const HEARTBEAT_MS = 10_000;
/** 250 ms: a request that is over by then needs no heartbeat, its charge says it all. */
const FIRST_HEARTBEAT_MS = 250;
/** 10 ms: gathers what a busy worker finishes. */
const GATHER_MS = 10;
const RETRY_MS = 500;
const BATCH_MAX = 512;
/** At the limit the oldest is dropped; the ledger's totals correct quota. */
const FINISHED_MAX = 50_000;

/** A hold that has turned into a charge, as quota's contract tells it. */
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
}

export interface Settlement {
  /** The hold is in use from now on: told after 250 ms, then every 10 s until `released`. */
  live(accountId: string, requestId: string): void;
  /** The hold is no longer in use by this attempt. */
  released(requestId: string): void;
  /** `seq` is that of the outcome in the log. */
  finished(hold: FinishedHold, seq: number): void;
  /** The ledger has everything up to `seq`: what is still queued below need not be told. */
  committed(seq: number): void;
  close(): void;
}

interface LiveHold {
  readonly accountId: string;
  readonly requestId: string;
  /** Attempts that use it. */
  uses: number;
}

export function createSettlement({ writer, quota, clock }: { readonly writer: string; readonly quota: RpcClient; readonly clock: Clock }): Settlement {
  const holds = new Map<string, LiveHold>();
  let fresh: LiveHold[] = [];
  let queue: { readonly seq: number; readonly hold: FinishedHold }[] = [];
  let isSending = false;
  let isClosed = false;
  let gather: Timer | undefined;
  let firstBeat: Timer | undefined;
  let beat: Timer | undefined;

  const heartbeat = (live: readonly LiveHold[]): void => {
    for (let i = 0; i < live.length; i += BATCH_MAX) {
      const request: HeartbeatRequest = { writer, holds: live.slice(i, i + BATCH_MAX).map(({ accountId, requestId }) => ({ accountId, requestId })) };
      // A lost heartbeat is made good by the next one.
      quota.unary('Heartbeat', request).catch(() => undefined);
    }
  };

  const beatFirst = (): void => {
    firstBeat = undefined;
    const begun = fresh;
    fresh = [];
    heartbeat(begun.filter(({ uses }) => uses > 0));
  };

  const armBeat = (): void => {
    beat = clock.setTimer(HEARTBEAT_MS, () => {
      heartbeat([...holds.values()]);
      armBeat();
    }, { unref: true });
  };
  armBeat();

  const schedule = (delayMs: number): void => {
    if (isClosed) return;
    gather ??= clock.setTimer(delayMs, () => {
      gather = undefined;
      void send();
    }, { unref: true });
  };

  const send = async (): Promise<void> => {
    if (isSending || queue.length === 0) return;
    isSending = true;
    const batch = queue.splice(0, BATCH_MAX);
    try {
      const request: FinishRequest = { writer, finished: batch.map(({ hold }) => hold) };
      await quota.unary('Finish', request);
      isSending = false;
      if (queue.length > 0) schedule(0);
    } catch {
      isSending = false;
      queue = [...batch, ...queue];
      schedule(RETRY_MS);
    }
  };

  return {
    live: (accountId, requestId) => {
      const known = holds.get(requestId);
      if (known !== undefined) {
        known.uses += 1;
        return;
      }
      const hold = { accountId, requestId, uses: 1 };
      holds.set(requestId, hold);
      fresh.push(hold);
      firstBeat ??= clock.setTimer(FIRST_HEARTBEAT_MS, beatFirst, { unref: true });
    },
    released: (requestId) => {
      const known = holds.get(requestId);
      if (known === undefined) return;
      known.uses -= 1;
      if (known.uses <= 0) holds.delete(requestId);
    },
    finished: (hold, seq) => {
      if (queue.length >= FINISHED_MAX) queue.shift();
      queue.push({ seq, hold });
      schedule(GATHER_MS);
    },
    committed: (seq) => {
      const [oldest] = queue;
      if (oldest !== undefined && oldest.seq <= seq) queue = queue.filter((entry) => entry.seq > seq);
    },
    close: () => {
      isClosed = true;
      for (const timer of [gather, firstBeat, beat]) timer?.cancel();
    },
  };
}
