/**
 * Tells quota what becomes of holds: they live, or they have turned into a charge. Batched, repeated until
 * acknowledged or until the ledger has the fact; losing one is harmless since the ledger's totals follow.
 */
import type { PeriodSet } from '@signalbox/contracts/common';
import type { FinishRequest, Finished, HeartbeatRequest } from '@signalbox/contracts/quota';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import type { RpcClient } from '@signalbox/rpc/call';

/** 10 s: a third of the hold's lease of 30 s. */
const HEARTBEAT_MS = 10_000;
/** 10 ms: gathers what one turn of a busy worker finishes. */
const GATHER_MS = 10;
const RETRY_MS = 500;
const BATCH_MAX = 512;
/** At the limit the oldest is dropped; the ledger's totals correct quota. */
const FINISHED_MAX = 50_000;

export interface Settlement {
  /** The hold is in use from now on: told at once, then every 10 s until `released`. */
  live(accountId: string, requestId: string): void;
  /** The hold is no longer in use by this attempt. */
  released(requestId: string): void;
  finished(fact: { readonly accountId: string; readonly keyId: string; readonly requestId: string; readonly chargeNanoUsd: bigint; readonly tokens: number; readonly byok: boolean; readonly periods: PeriodSet | undefined; readonly seq: bigint }): void;
  /** The ledger has everything up to `seq`: what is still queued below need not be told. */
  committed(seq: bigint): void;
  close(): void;
}

export function createSettlement({ writer, quota, clock }: { readonly writer: string; readonly quota: RpcClient; readonly clock: Clock }): Settlement {
  const holds = new Map<string, { readonly accountId: string; uses: number }>();
  let fresh: { accountId: string; requestId: string }[] = [];
  let queue: { readonly seq: bigint; readonly fact: Finished }[] = [];
  let isSending = false;
  let gather: Timer | undefined;
  let isClosed = false;

  function schedule(delayMs: number): void {
    if (isClosed || gather !== undefined) return;
    gather = clock.setTimer(delayMs, () => {
      gather = undefined;
      void send();
    }, { unref: true });
  }

  function heartbeat(batch: readonly { accountId: string; requestId: string }[]): void {
    for (let i = 0; i < batch.length; i += BATCH_MAX) {
      const request: HeartbeatRequest = { writer, holds: batch.slice(i, i + BATCH_MAX).map(({ accountId, requestId }) => ({ accountId, requestId })) };
      // A lost heartbeat is made good by the next one.
      quota.unary('Heartbeat', request).catch(() => undefined);
    }
  }

  async function send(): Promise<void> {
    if (fresh.length > 0) {
      heartbeat(fresh);
      fresh = [];
    }
    if (isSending || queue.length === 0) return;
    isSending = true;
    const batch = queue.slice(0, BATCH_MAX);
    try {
      const request: FinishRequest = { writer, finished: batch.map(({ fact }) => fact) };
      await quota.unary('Finish', request);
      const told = new Set(batch);
      queue = queue.filter((entry) => !told.has(entry));
      isSending = false;
      if (queue.length > 0) schedule(0);
    } catch {
      isSending = false;
      schedule(RETRY_MS);
    }
  }

  let beat: Timer | undefined;
  function armBeat(): void {
    beat = clock.setTimer(HEARTBEAT_MS, () => {
      if (isClosed) return;
      heartbeat([...holds].map(([requestId, { accountId }]) => ({ accountId, requestId })));
      armBeat();
    }, { unref: true });
  }
  armBeat();

  return {
    live: (accountId, requestId) => {
      const known = holds.get(requestId);
      if (known === undefined) holds.set(requestId, { accountId, uses: 1 });
      else known.uses += 1;
      fresh.push({ accountId, requestId });
      schedule(GATHER_MS);
    },
    released: (requestId) => {
      const known = holds.get(requestId);
      if (known === undefined) return;
      known.uses -= 1;
      if (known.uses <= 0) holds.delete(requestId);
    },
    finished: ({ accountId, keyId, requestId, chargeNanoUsd, tokens, byok, periods, seq }) => {
      if (queue.length >= FINISHED_MAX) queue.shift();
      queue.push({ seq, fact: { accountId, keyId, requestId, chargeNanoUsd: String(chargeNanoUsd), tokens: String(tokens), byok, ...(periods === undefined ? {} : { periods }) } });
      schedule(GATHER_MS);
    },
    committed: (seq) => {
      if (!isSending && queue.length > 0) queue = queue.filter((entry) => entry.seq > seq);
    },
    close: () => {
      isClosed = true;
      gather?.cancel();
      beat?.cancel();
    },
  };
}
