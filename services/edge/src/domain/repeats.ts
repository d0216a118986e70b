/**
 * Repeats of a request that carries an Idempotency-Key: run once, billed once (BILLING, section 9; docs/idempotency.md).
 * A claim says whose the key is. While its edge lives it renews the claim; when it does not, the ledger says what became
 * of the request, and only what the ledger knows to have cost nothing is run again. A request tells its claim before it is
 * dispatched: the key of one that had not told is free as soon as its short lease is over, and it finds its claim gone.
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
  /** `isToBegin`: `begin` is waited for. */
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
  /** What it cost is for the ledger to say. */
  | { readonly kind: 'abandoned' };

/** What the client of a request was told. */
export interface Recorded {
  /** Undefined until it is known. */
  readonly costNanoUsd: bigint | undefined;
  /** It was refused because of a bug of ours, maybe after it had been dispatched. */
  readonly isDoubtful: boolean;
  /** As it is kept for a repeat; undefined = it is not. */
  answer(isFramed: boolean): Buffer | undefined;
}

/** What becomes of the claim of a request that has been conducted. */
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

/** `isLost`: the key is another request's. `leaseLeftMs` 0 = not told. */
export type ClaimStanding = { readonly isLost: true } | { readonly isLost: false; readonly leaseLeftMs: number };

/** Each call throws a Fault while claims cannot be read or written. */
export interface ClaimsPort {
  /** `tellsBegin`: nothing of the request is dispatched before `begin` was answered. */
  claim(ref: ClaimRef, bodyDigest: Buffer, takesOver: string, tellsBegin: boolean): Promise<ClaimFound>;
  renew(ref: ClaimRef): Promise<ClaimStanding>;
  begin(ref: ClaimRef): Promise<ClaimStanding>;
  end(ref: ClaimRef, ending: ClaimEnding): Promise<void>;
}

export interface Booked {
  /** As its client was told. */
  readonly costNanoUsd: bigint;
  /** Somebody pays for it: the account to us, in money or out of its allotment, or to the provider itself. */
  readonly isBilled: boolean;
}

export interface LedgerPort {
  /** Undefined while no charge is booked. Throws a Fault while the ledger is away. */
  bookedOf(accountId: string, requestId: string): Promise<Booked | undefined>;
}

/** The key is this request's: to be ended exactly once. */
export interface OpenClaim {
  /**
   * Before each dispatch: undefined when no repeat can have been let through. Asks nobody but before the first one, and
   * where this process stood still for as long as its lease. Never rejects.
   */
  keep(): Promise<Fault | undefined>;
  /** Never rejects; tried a few times, then left to the lease. */
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
  /** A request without a trace in the ledger was run again: somebody should look. */
  readonly onTakenOver: (accountId: string, requestId: string, byRequestId: string) => void;
}

export interface Repeats {
  /**
   * `isBilled` false = a call that the ledger never hears of, and that is never dispatched. `isAnswered`: the client has been given all of its answer, so
   * that a repeat waits for the end of the claim. Throws a Fault when the claim cannot be made: nothing may run then.
   */
  enter(ref: ClaimRef, bodyDigest: Buffer, isBilled: boolean, isAnswered: () => boolean): Promise<Entry>;
  /** For a stop: resolves once each claim whose request is over has been ended, or after `limitMs`. Answers how many have not. */
  settle(limitMs: number): Promise<number>;
}

/** A claim of this process that has not ended. */
interface OwnClaim {
  readonly isAnswered: () => boolean;
  readonly ended: Promise<void>;
}

/** A booked charge of 0 is final after this: a provider that was left is drained for 60 s at most (BILLING, section 5). */
export const SETTLED_MS = 90_000;
/** What the ledger has no trace of by now was never begun, or its writer is lost (BILLING, section 6). */
export const LOST_MS = 900_000;
const ASK_AGAIN_MS = 5_000;
const ASK_AGAIN_MS_MAX = 30_000;
/** A claim ends a moment after its answer: a repeat that comes in between waits so long for it at most. */
const END_MS_MAX = 1_000;
/** Where the claim is another edge's, nobody here knows whether it was answered: it is looked at once more. */
const ELSEWHERE_MS = 100;
/** Waits before a claim is asked for again, while a request waits to be dispatched. */
const KEEP_WAITS_MS = [200, 1_000] as const;
/** Waits before the end of a claim is told again. */
const END_WAITS_MS = [200, 1_000, 5_000] as const;

export function createRepeats({ claims, ledger, clock, onTakenOver }: RepeatsOptions): Repeats {
  const pause = (ms: number): Promise<void> => new Promise((resolve) => void clock.setTimer(ms, resolve));
  /** By request. */
  const own = new LiveMap<string, OwnClaim>();
  let endingCount = 0;

  const endClaim = async (ref: ClaimRef, ending: ClaimEnding): Promise<void> => {
    for (const waitMs of [0, ...END_WAITS_MS]) {
      if (waitMs > 0) await pause(waitMs);
      try {
        await claims.end(ref, ending);
        return;
      } catch {
        // Told again; at last the lease runs out and the ledger decides.
      }
    }
  };

  /** Of a claim that has not ended, or not as far as was known when it was asked for. True once it is worth another look. */
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
    /** Its lease ends no earlier, whatever the clock of accounts: counted from before it was asked for. */
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
            // Accounts may be away for a moment: asked again after the next wait.
            continue;
          }
          if (isBegin && !isOver) renewLater();
        }
        if (isLost) return new Fault('overloaded', 'edge stood still, and a repeat of the request was let through');
        if (isKept()) return undefined;
      }
      return new Fault('claims_unavailable', 'a claim cannot be kept');
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
      // It may have been written: the key must not stay with a request that never runs.
      void endClaim(ref, { kind: 'freed' });
      throw error;
    }
  };

  /** What the ledger says of its cost; undefined while it says nothing. */
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
      // Of an answer that broke its client was not told what it costs.
      if (found.outcome === 'DONE' && found.costNanoUsd === undefined && isBilled) found = { ...found, costNanoUsd: await toldCost(ref.accountId, found.requestId) };
      if (found.outcome !== 'LEFT') return entryOf(ref, found, askedAtMs, isAnswered);
      const { requestId, leftMs } = found;
      if (isBilled) {
        const booked = await ledger.bookedOf(ref.accountId, requestId);
        if (booked?.isBilled === true) {
          // Of rounds there may be more to come: what it costs is asked again.
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
