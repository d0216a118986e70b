/**
 * Repeats of a request, recognised by its Idempotency-Key (BILLING, section 9). Each account and key has one claim: it
 * belongs to the request that made it, lives as long as that request's edge renews it, and ends once. What became of a
 * request whose edge fell silent is for the ledger to say, not for this service; but for one that had told nobody to begin:
 * of that nothing can have been run, nor will be, since it is told that its claim is gone.
 */
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import { Secret } from '@signalbox/runtime/secret';
import type { Envelope, Sealed } from './envelope.js';
import { LeaseTime } from './lease-time.js';
import { sameDigest } from './secrets.js';

/** As kept: one for each account and key. Times in milliseconds since the epoch. */
export interface ClaimRecord {
  readonly accountId: string;
  readonly keyDigest: Uint8Array;
  readonly bodyDigest: Uint8Array;
  readonly requestId: string;
  readonly isEnded: boolean;
  /** Its request tells before it is dispatched, and has not told yet: while that is so, nobody has run any of it. */
  readonly isToBegin: boolean;
  /** Until then its owner counts as alive; moved by each renewal. */
  readonly leaseEndsMs: number;
  /** From then on the key is as if never used. */
  readonly forgetMs: number;
  /** As the client was told; null = not known here. */
  readonly costNanoUsd: bigint | null;
  /** Null = no answer is kept. */
  readonly answer: Sealed | null;
}

/** Everything rejects with a Fault `store_unavailable` while it is away; each call is atomic. */
export interface ClaimStore {
  /**
   * Writes `fresh` and answers undefined when there is no claim for its account and key, when that one is to be forgotten
   * at `nowMs`, or when it has not ended, its lease is over, and it is `takesOver`'s or to begin. Else answers what is there,
   * unchanged.
   */
  claim(fresh: ClaimRecord, takesOver: string, nowMs: number): Promise<ClaimRecord | undefined>;
  /** These three are no-ops when the claim is another request's or has ended. `toBeginEndsMs`: the lease of one that is to begin. Undefined = a no-op. */
  renew(accountId: string, keyDigest: Uint8Array, requestId: string, leaseEndsMs: number, toBeginEndsMs: number, forgetMs: number): Promise<Pick<ClaimRecord, 'isToBegin'> | undefined>;
  /** True once it is to begin no more: from then on only what the ledger says frees its key. */
  begin(accountId: string, keyDigest: Uint8Array, requestId: string, leaseEndsMs: number, forgetMs: number): Promise<boolean>;
  end(accountId: string, keyDigest: Uint8Array, requestId: string, end: Pick<ClaimRecord, 'forgetMs' | 'costNanoUsd' | 'answer'>): Promise<void>;
  remove(accountId: string, keyDigest: Uint8Array, requestId: string): Promise<void>;
  /** Forgets what is to be forgotten at `nowMs`, at most `limit`; answers how many. */
  purge(nowMs: number, limit: number): Promise<number>;
}

/** How long a claim, ended or not, is remembered. */
export const REMEMBERED_MS = 86_400_000;
/** Larger answers are not kept. */
export const ANSWER_BYTES_MAX = 1_048_576;
const PURGE_PAGE = 1_000;
/** The lease of what is to begin: most begin within milliseconds, and the repeat of one whose edge died waits for no longer. */
export const TO_BEGIN_LEASE_MS_MAX = 15_000;

export type Claimed =
  | { readonly outcome: 'OTHER_BODY'; readonly requestId: string }
  | { readonly outcome: 'RUNNING'; readonly requestId: string; readonly leaseLeftMs: number }
  /** `isToBegin`: `begin` is waited for. */
  | { readonly outcome: 'CLAIMED'; readonly requestId: string; readonly leaseLeftMs: number; readonly isToBegin: boolean }
  | { readonly outcome: 'LEFT'; readonly requestId: string; readonly leftMs: number }
  | { readonly outcome: 'DONE'; readonly requestId: string; readonly costNanoUsd: bigint | null; readonly answer: Uint8Array | undefined };

export interface ClaimRef {
  readonly accountId: string;
  readonly keyDigest: Uint8Array;
  readonly requestId: string;
}

/** `isLost`: it is another request's, or over. */
export type Standing = { readonly isLost: true } | { readonly isLost: false; readonly leaseLeftMs: number };

export type ClaimEnd =
  /** Nothing was billed. */
  | { readonly kind: 'freed' }
  | { readonly kind: 'ended'; readonly costNanoUsd: bigint | null; readonly answer: Uint8Array | undefined }
  /** The ledger will know. */
  | { readonly kind: 'abandoned' };

export interface Claims {
  /** `tellsBegin`: nothing of the request is dispatched before `begin` was answered. */
  claim(wanted: ClaimRef & { readonly bodyDigest: Uint8Array; readonly takesOver: string; readonly tellsBegin: boolean }): Promise<Claimed>;
  renew(ref: ClaimRef): Promise<Standing>;
  begin(ref: ClaimRef): Promise<Standing>;
  end(ref: ClaimRef, end: ClaimEnd): Promise<void>;
  /** Deletes what is over; answers how many. */
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
      // Its own, when the first answer was lost on the way.
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
          // One character a byte: any bytes survive the way through text.
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
