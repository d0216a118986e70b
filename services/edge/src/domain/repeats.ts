/**
 * Repeats of a request that carries an Idempotency-Key: it runs once and is billed once (docs/idempotency.md). A claim, kept
 * by accounts, records which request has the key. The edge that runs the request renews the claim; if that edge is lost, the
 * ledger shows what the request cost, and it runs again only if it cost nothing. Before its first dispatch a request confirms
 * its claim (`begin`): without that the key becomes free after a short lease, and the request then finds its claim lost.
 */
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import { LiveMap } from '@signalbox/kernel/live-map';
import { untilNone } from './stopping.js';
import type { Conducted } from './tool-rounds.js';

export interface ClaimRef {
  readonly accountId: string;
  readonly keyDigest: Buffer;
  readonly requestId: string;
}

export type ClaimFound =
  /** `isToBegin`: `begin` must be called before the first dispatch. */
  | { readonly outcome: 'CLAIMED'; readonly requestId: string; readonly leaseLeftMs: number; readonly isToBegin: boolean }
  | { readonly outcome: 'RUNNING'; readonly requestId: string; readonly leaseLeftMs: number }
  | { readonly outcome: 'OTHER_BODY'; readonly requestId: string }
  | { readonly outcome: 'LEFT'; readonly requestId: string; readonly leftMs: number }
  | { readonly outcome: 'DONE'; readonly requestId: string; readonly costNanoUsd: bigint | undefined; readonly answer: Buffer | undefined };

export type ClaimEnding =
  /** Nothing was billed: the key may be used again. */
  | { readonly kind: 'freed' }
  /** `answer` undefined = none is kept. */
  | { readonly kind: 'ended'; readonly costNanoUsd: bigint | undefined; readonly answer: Buffer | undefined }
  /** Its cost is not known here; a repeat asks the ledger. */
  | { readonly kind: 'abandoned' };

/** What the client of a request was told. */
export interface Recorded {
  /** Undefined until it is known. */
  readonly costNanoUsd: bigint | undefined;
  /** It was refused because of a bug of ours, perhaps after it had been dispatched. */
  readonly isDoubtful: boolean;
  /** The answer as it is kept for a repeat; undefined = it is not kept. */
  answer(isFramed: boolean): Buffer | undefined;
}

/** How the claim of a finished request ends. */
export function endingOf({ result, isUncharged }: Pick<Conducted, 'result' | 'isUncharged'>, recorded: Recorded, isFramed: boolean): ClaimEnding {
  switch (result) {
    case 'answered':
    case 'cut':
      return { kind: 'ended', costNanoUsd: recorded.costNanoUsd, answer: recorded.answer(isFramed) };
    case 'gone':
      return { kind: isUncharged === true ? 'freed' : 'abandoned' };
    case 'refused':
      return { kind: recorded.isDoubtful ? 'abandoned' : 'freed' };
  }
}

/** `isLost`: another request has the key. `leaseLeftMs`: 0 = not told. */
export type ClaimStanding = { readonly isLost: true } | { readonly isLost: false; readonly leaseLeftMs: number };

/** Each call throws a Fault while claims cannot be read or written. */
export interface ClaimsPort {
  /** `tellsBegin`: this edge calls `begin`, and dispatches nothing before its answer. */
  claim(ref: ClaimRef, bodyDigest: Buffer, takesOver: string, tellsBegin: boolean): Promise<ClaimFound>;
  renew(ref: ClaimRef): Promise<ClaimStanding>;
  begin(ref: ClaimRef): Promise<ClaimStanding>;
  end(ref: ClaimRef, ending: ClaimEnding): Promise<void>;
}

export interface Booked {
  /** The cost as its client was told. */
  readonly costNanoUsd: bigint;
  /** The account pays for it: in money, from its allotment, or directly to the provider. */
  readonly isBilled: boolean;
}

export interface LedgerPort {
  /** Undefined while no charge is booked. Throws a Fault while the ledger is away. */
  bookedOf(accountId: string, requestId: string): Promise<Booked | undefined>;
}

/** This request has the key. `end` must be called exactly once. */
export interface OpenClaim {
  /**
   * To be called before each dispatch: undefined when the claim is certain, so that no repeat can be running. Calls accounts
   * only before the first dispatch, and after this process was stopped for longer than its lease. Never rejects.
   */
  keep(): Promise<Fault | undefined>;
  /** Never rejects. Tried a few times; then the claim ends with its lease. */
  end(ending: ClaimEnding): Promise<void>;
}

export type Entry =
  | { readonly kind: 'open'; readonly claim: OpenClaim }
  | { readonly kind: 'other-body' }
  | { readonly kind: 'running'; readonly requestId: string; readonly retryAfterMs: number }
  | { readonly kind: 'done'; readonly requestId: string; readonly costNanoUsd: bigint | undefined; readonly answer: Buffer | undefined };

export interface RepeatsOptions {
  readonly claims: ClaimsPort;
  readonly ledger: LedgerPort;
  readonly clock: Clock;
  /** Called when a request that left no trace in the ledger is run again, which an operator should look into. */
  readonly onTakenOver: (accountId: string, requestId: string, byRequestId: string) => void;
}

export interface Repeats {
  /**
   * Claims the key for a request. `isBilled` false = a call that is never dispatched and never booked. `isAnswered`: true once
   * the client has its whole answer; a repeat then waits for the claim to end. Throws a Fault when the claim cannot be made:
   * the request must not run then.
   */
  enter(ref: ClaimRef, bodyDigest: Buffer, isBilled: boolean, isAnswered: () => boolean): Promise<Entry>;
  /** For a stop: resolves once the claims of all finished requests have ended, or after `limitMs`. The value is the number that have not. */
  settle(limitMs: number): Promise<number>;
}

/** A claim of this process that has not ended. */
interface OwnClaim {
  readonly isAnswered: () => boolean;
  readonly ended: Promise<void>;
}

/** A booked charge of 0 is final after this time: when a client has left, its worker reads the provider's answer for at most 60 s more. */
export const SETTLED_MS = 90_000;
/** A request without a trace in the ledger after this time never started, or its worker's log is lost (15 min without a report). */
export const LOST_MS = 900_000;
const ASK_AGAIN_MS = 5_000;
const ASK_AGAIN_MS_MAX = 30_000;
/** A claim ends shortly after its answer: a repeat that comes in between waits at most this long for it. */
const END_MS_MAX = 1_000;
/** If another edge has the claim, it is not known here whether it was answered: the claim is read again after this time. */
const ELSEWHERE_MS = 100;
/** Waits before a claim is asked for again, while a request waits to be dispatched. */
const KEEP_WAITS_MS = [200, 1_000] as const;
/** Waits before the end of a claim is sent again. */
const END_WAITS_MS = [200, 1_000, 5_000] as const;

export function createRepeats({ claims, ledger, clock, onTakenOver }: RepeatsOptions): Repeats {
  const pause = (ms: number): Promise<void> => new Promise((resolve) => void clock.setTimer(ms, resolve));
  /** By request id. */
  const own = new LiveMap<string, OwnClaim>();
  let endingCount = 0;

  const endClaim = async (ref: ClaimRef, ending: ClaimEnding): Promise<void> => {
    for (const waitMs of [0, ...END_WAITS_MS]) {
      if (waitMs > 0) await pause(waitMs);
      try {
        await claims.end(ref, ending);
        return;
      } catch {
        // Sent again. After the last time the lease runs out, and the ledger decides.
      }
    }
  };

  /** For a claim that had not ended when it was read. Resolves with true when it should be read again. */
  const mayHaveEnded = async ({ outcome, requestId }: ClaimFound): Promise<boolean> => {
    const claim = own.get(requestId);
    if (claim === undefined) {
      if (outcome === 'RUNNING') await pause(ELSEWHERE_MS);
      return outcome === 'RUNNING';
    }
    if (!claim.isAnswered()) return false;
    let limit: Timer | undefined;
    await Promise.race([claim.ended, new Promise<void>((resolve) => void (limit = clock.setTimer(END_MS_MAX, resolve)))]);
    limit?.cancel();
    return true;
  };

  const open = (ref: ClaimRef, found: ClaimFound & { readonly outcome: 'CLAIMED' }, askedAtMs: number, isAnswered: () => boolean): Entry => {
    let over: () => void = () => undefined;
    own.set(ref.requestId, { isAnswered, ended: new Promise((resolve) => (over = resolve)) });
    let { isToBegin, leaseLeftMs: leaseMs } = found;
    /** The lease ends no earlier than this: it is counted from before the question, by the clock here. */
    let keptUntilMs = askedAtMs + leaseMs;
    let isLost = false;
    let isOver = false;
    let timer: Timer | undefined;
    const ask = async (isBegin: boolean): Promise<void> => {
      const askingAtMs = clock.monotonicMs();
      const standing = await (isBegin ? claims.begin(ref) : claims.renew(ref));
      if (standing.isLost) {
        isLost = true;
        return;
      }
      if (isBegin) isToBegin = false;
      if (standing.leaseLeftMs > 0) leaseMs = standing.leaseLeftMs;
      keptUntilMs = Math.max(keptUntilMs, askingAtMs + leaseMs);
    };
    const renewLater = (): void => {
      timer?.cancel();
      timer = clock.setTimer(Math.max(100, Math.floor(leaseMs / 3)), () => {
        ask(false).catch(() => undefined);
        renewLater();
      });
    };
    const isKept = (): boolean => !isToBegin && clock.monotonicMs() < keptUntilMs;
    const keep = async (): Promise<Fault | undefined> => {
      for (const waitMs of [0, ...KEEP_WAITS_MS]) {
        if (waitMs > 0) await pause(waitMs);
        if (!isKept() && !isLost) {
          const isBegin = isToBegin;
          try {
            await ask(isBegin);
          } catch {
            // Accounts may be away for a moment: the next wait follows.
            continue;
          }
          if (isBegin && !isOver) renewLater();
        }
        if (isLost) return new Fault('overloaded', 'the claim was lost, since edge did not renew it in time');
        if (isKept()) return undefined;
      }
      return new Fault('claims_unavailable', 'the claim could not be confirmed');
    };
    renewLater();
    return {
      kind: 'open',
      claim: {
        keep,
        end: async (how) => {
          isOver = true;
          timer?.cancel();
          endingCount += 1;
          await endClaim(ref, how);
          endingCount -= 1;
          own.delete(ref.requestId);
          over();
        },
      },
    };
  };

  const claim = async (ref: ClaimRef, bodyDigest: Buffer, takesOver: string, tellsBegin: boolean): Promise<ClaimFound> => {
    try {
      return await claims.claim(ref, bodyDigest, takesOver, tellsBegin);
    } catch (error) {
      // The claim may have been stored: the key must not stay with a request that never runs.
      void endClaim(ref, { kind: 'freed' });
      throw error;
    }
  };

  /** The booked cost; undefined while none is booked, or the ledger is away. */
  const toldCost = async (accountId: string, requestId: string): Promise<bigint | undefined> => {
    try {
      return (await ledger.bookedOf(accountId, requestId))?.costNanoUsd;
    } catch {
      return undefined;
    }
  };

  const entryOf = (ref: ClaimRef, found: ClaimFound, askedAtMs: number, isAnswered: () => boolean): Entry => {
    switch (found.outcome) {
      case 'CLAIMED':
        return open(ref, found, askedAtMs, isAnswered);
      case 'OTHER_BODY':
        return { kind: 'other-body' };
      case 'RUNNING':
        return { kind: 'running', requestId: found.requestId, retryAfterMs: Math.min(ASK_AGAIN_MS, Math.max(1_000, found.leaseLeftMs)) };
      case 'LEFT':
        return { kind: 'running', requestId: found.requestId, retryAfterMs: ASK_AGAIN_MS };
      case 'DONE':
        return { kind: 'done', requestId: found.requestId, costNanoUsd: found.costNanoUsd, answer: found.answer };
    }
  };

  return {
    enter: async (ref, bodyDigest, isBilled, isAnswered) => {
      let askedAtMs = clock.monotonicMs();
      const look = (takesOver: string): Promise<ClaimFound> => {
        askedAtMs = clock.monotonicMs();
        return claim(ref, bodyDigest, takesOver, isBilled);
      };
      let found = await look('');
      const isTaken = found.outcome === 'RUNNING' || found.outcome === 'OTHER_BODY';
      if (isTaken && (await mayHaveEnded(found))) found = await look('');
      // The cost of an answer that broke off was not known at its end.
      if (found.outcome === 'DONE' && found.costNanoUsd === undefined && isBilled) found = { ...found, costNanoUsd: await toldCost(ref.accountId, found.requestId) };
      if (found.outcome !== 'LEFT') return entryOf(ref, found, askedAtMs, isAnswered);
      const { requestId, leftMs } = found;
      if (isBilled) {
        const booked = await ledger.bookedOf(ref.accountId, requestId);
        if (booked?.isBilled === true) {
          // More rounds may still be booked, so the cost is not kept: the ledger is asked again.
          void endClaim({ ...ref, requestId }, { kind: 'ended', costNanoUsd: undefined, answer: undefined });
          return { kind: 'done', requestId, costNanoUsd: booked.costNanoUsd, answer: undefined };
        }
        const waitMs = (booked === undefined ? LOST_MS : SETTLED_MS) - leftMs;
        if (waitMs > 0) return { kind: 'running', requestId, retryAfterMs: booked === undefined ? ASK_AGAIN_MS : Math.min(waitMs, ASK_AGAIN_MS_MAX) };
        if (booked === undefined) onTakenOver(ref.accountId, requestId, ref.requestId);
      }
      return entryOf(ref, await look(requestId), askedAtMs, isAnswered);
    },
    settle: async (limitMs) => {
      await untilNone(() => endingCount, limitMs, clock);
      return endingCount;
    },
  };
}
