/**
 * Recognises repeats of a request by its Idempotency-Key (docs/idempotency.md). Each account and Idempotency-Key has one claim.
 * It belongs to the request that made it, lives as long as that request's edge renews it, and ends once. If an edge falls
 * silent, only the ledger knows what became of its request, not this service. The exception is a request that has not called
 * `begin`: none of it can have run, and it will not run, since `begin` will answer that the claim is gone.
 */
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import { Secret } from '@signalbox/runtime/secret';
import type { Envelope, Sealed } from './envelope.js';
import { LeaseTime } from './lease-time.js';
import { sameDigest } from './secrets.js';

/** Stored claim, one per account and Idempotency-Key. Times are milliseconds since the Unix epoch. */
export interface ClaimRecord {
  readonly accountId: string;
  readonly keyDigest: Uint8Array;
  readonly bodyDigest: Uint8Array;
  readonly requestId: string;
  readonly isEnded: boolean;
  /** The request will call `begin` before it is dispatched, and has not done so: nothing of it has run. */
  readonly isToBegin: boolean;
  /** Until then the owner counts as alive; each renewal extends it. */
  readonly leaseEndsMs: number;
  /** From then on the key counts as never used. */
  readonly forgetMs: number;
  /** As reported to the client; null = unknown here. */
  readonly costNanoUsd: bigint | null;
  /** Null = no answer is stored. */
  readonly answer: Sealed | null;
}

/** All calls reject with a Fault `store_unavailable` while the store is unreachable; each call is atomic. */
export interface ClaimStore {
  /**
   * Writes `fresh` and returns undefined in three cases: there is no claim for its account and key; the claim's `forgetMs` is
   * over; or the claim has not ended, its lease is over, and it belongs to `takesOver` or is still to begin. Otherwise
   * returns the existing claim unchanged.
   */
  claim(fresh: ClaimRecord, takesOver: string, nowMs: number): Promise<ClaimRecord | undefined>;
  /** These three do nothing if the claim is another request's or has ended. `toBeginEndsMs`: end of the lease if the request is still to begin. Undefined = nothing was done. */
  renew(accountId: string, keyDigest: Uint8Array, requestId: string, leaseEndsMs: number, toBeginEndsMs: number, forgetMs: number): Promise<Pick<ClaimRecord, 'isToBegin'> | undefined>;
  /** True once the request counts as begun: from then on only the ledger's answer frees its key. */
  begin(accountId: string, keyDigest: Uint8Array, requestId: string, leaseEndsMs: number, forgetMs: number): Promise<boolean>;
  end(accountId: string, keyDigest: Uint8Array, requestId: string, end: Pick<ClaimRecord, 'forgetMs' | 'costNanoUsd' | 'answer'>): Promise<void>;
  remove(accountId: string, keyDigest: Uint8Array, requestId: string): Promise<void>;
  /** Deletes claims whose `forgetMs` is over, at most `limit`; returns how many. */
  purge(nowMs: number, limit: number): Promise<number>;
}

/** How long a claim, ended or not, is remembered. */
export const REMEMBERED_MS = 86_400_000;
/** Larger answers are not stored. */
export const ANSWER_BYTES_MAX = 1_048_576;
const PURGE_PAGE = 1_000;
/** Longest lease of a request that is still to begin. Most begin within milliseconds; if the edge died, a repeat waits no longer than this. */
export const TO_BEGIN_LEASE_MS_MAX = 15_000;

export type Claimed =
  | { readonly outcome: 'OTHER_BODY'; readonly requestId: string }
  | { readonly outcome: 'RUNNING'; readonly requestId: string; readonly leaseLeftMs: number }
  /** `isToBegin`: the request must call `begin` before it is dispatched. */
  | { readonly outcome: 'CLAIMED'; readonly requestId: string; readonly leaseLeftMs: number; readonly isToBegin: boolean }
  | { readonly outcome: 'LEFT'; readonly requestId: string; readonly leftMs: number }
  | { readonly outcome: 'DONE'; readonly requestId: string; readonly costNanoUsd: bigint | null; readonly answer: Uint8Array | undefined };

export interface ClaimRef {
  readonly accountId: string;
  readonly keyDigest: Uint8Array;
  readonly requestId: string;
}

/** `isLost`: the claim is another request's, or has ended. */
export type Standing = { readonly isLost: true } | { readonly isLost: false; readonly leaseLeftMs: number };

export type ClaimEnd =
  /** Nothing was billed. */
  | { readonly kind: 'freed' }
  | { readonly kind: 'ended'; readonly costNanoUsd: bigint | null; readonly answer: Uint8Array | undefined }
  /** The outcome is unknown here; the ledger will know. */
  | { readonly kind: 'abandoned' };

export interface Claims {
  /** `tellsBegin`: the caller dispatches nothing before `begin` has answered. */
  claim(wanted: ClaimRef & { readonly bodyDigest: Uint8Array; readonly takesOver: string; readonly tellsBegin: boolean }): Promise<Claimed>;
  renew(ref: ClaimRef): Promise<Standing>;
  begin(ref: ClaimRef): Promise<Standing>;
  end(ref: ClaimRef, end: ClaimEnd): Promise<void>;
  /** Deletes expired claims; returns how many. */
  purge(): Promise<number>;
}

export function createClaims({ store, clock, envelope, leaseMs }: { readonly store: ClaimStore; readonly clock: Clock; readonly envelope: Envelope; readonly leaseMs: number }): Claims {
  const ownerOf = ({ accountId, keyDigest, requestId }: ClaimRef): readonly string[] => [accountId, Buffer.from(keyDigest).toString('hex'), requestId];

  const time = new LeaseTime(clock, leaseMs);
  const toBeginLeaseMs = Math.min(leaseMs, TO_BEGIN_LEASE_MS_MAX);
  const leaseOf = (isToBegin: boolean): number => (isToBegin ? toBeginLeaseMs : leaseMs);

  return {
    claim: async ({ accountId, keyDigest, bodyDigest, requestId, takesOver, tellsBegin }) => {
      if (accountId === '' || requestId === '' || keyDigest.length === 0 || bodyDigest.length === 0) throw new Fault('bad_message', 'a claim needs an account, a request and digests');
      const nowMs = time.nowMs();
      const fresh: ClaimRecord = { accountId, keyDigest, bodyDigest, requestId, isEnded: false, isToBegin: tellsBegin, leaseEndsMs: nowMs + leaseOf(tellsBegin), forgetMs: nowMs + REMEMBERED_MS, costNanoUsd: null, answer: null };
      const found = await store.claim(fresh, takesOver, time.judgedMs());
      // The request's own claim, if the first answer was lost on the way.
      if (found === undefined || (found.requestId === requestId && !found.isEnded)) {
        const { isToBegin } = found ?? fresh;
        return { outcome: 'CLAIMED', requestId, leaseLeftMs: leaseOf(isToBegin), isToBegin };
      }
      if (!sameDigest(found.bodyDigest, bodyDigest)) return { outcome: 'OTHER_BODY', requestId: found.requestId };
      if (found.isEnded) {
        const text = found.answer === null ? undefined : envelope.open(found.answer, ownerOf(found));
        return { outcome: 'DONE', requestId: found.requestId, costNanoUsd: found.costNanoUsd, answer: text === undefined ? undefined : Buffer.from(text, 'latin1') };
      }
      const overMs = time.overMs(found.leaseEndsMs);
      return overMs < 0 ? { outcome: 'RUNNING', requestId: found.requestId, leaseLeftMs: -overMs } : { outcome: 'LEFT', requestId: found.requestId, leftMs: overMs };
    },
    renew: async ({ accountId, keyDigest, requestId }) => {
      const nowMs = time.nowMs();
      const found = await store.renew(accountId, keyDigest, requestId, nowMs + leaseMs, nowMs + toBeginLeaseMs, nowMs + REMEMBERED_MS);
      return found === undefined ? { isLost: true } : { isLost: false, leaseLeftMs: leaseOf(found.isToBegin) };
    },
    begin: async ({ accountId, keyDigest, requestId }) => {
      const nowMs = time.nowMs();
      return (await store.begin(accountId, keyDigest, requestId, nowMs + leaseMs, nowMs + REMEMBERED_MS)) ? { isLost: false, leaseLeftMs: leaseMs } : { isLost: true };
    },
    end: async (ref, end) => {
      const { accountId, keyDigest, requestId } = ref;
      const nowMs = time.nowMs();
      switch (end.kind) {
        case 'freed':
          return store.remove(accountId, keyDigest, requestId);
        case 'abandoned':
          await store.renew(accountId, keyDigest, requestId, nowMs, nowMs, nowMs + REMEMBERED_MS);
          return;
        case 'ended': {
          const { costNanoUsd, answer } = end;
          // One character per byte (latin1), so that any bytes survive as text.
          const sealed = answer === undefined || answer.length > ANSWER_BYTES_MAX ? null : envelope.seal(new Secret(Buffer.from(answer).toString('latin1')), ownerOf(ref));
          return store.end(accountId, keyDigest, requestId, { forgetMs: nowMs + REMEMBERED_MS, costNanoUsd, answer: sealed });
        }
      }
    },
    purge: async () => {
      let gone = 0;
      for (;;) {
        const count = await store.purge(time.judgedMs(), PURGE_PAGE);
        gone += count;
        if (count < PURGE_PAGE) return gone;
      }
    },
  };
}
