/** Claims in memory, as accounts keeps them. */
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { ClaimRef, ClaimsPort, ClaimStanding } from '../domain/repeats.js';

interface Kept {
  readonly bodyDigest: string;
  readonly requestId: string;
  readonly leaseEndsMs: number;
  readonly isToBegin: boolean;
  readonly done?: { readonly costNanoUsd: bigint | undefined; readonly answer: Buffer | undefined };
}

export const LEASE_MS = 60_000;
export const TO_BEGIN_LEASE_MS = 15_000;

export interface FakeClaims extends ClaimsPort {
  readonly kept: Map<string, Kept>;
  /** All renewals and begins, in order. */
  readonly stood: ('renew' | 'begin')[];
  isAway: boolean;
  /** While set, `end` waits for it. */
  endGate: Promise<void> | undefined;
}

export function createFakeClaims(clock: Clock): FakeClaims {
  const kept = new Map<string, Kept>();
  const nameOf = (accountId: string, keyDigest: Buffer): string => `${accountId}/${keyDigest.toString('hex')}`;
  const check = async (): Promise<void> => {
    await Promise.resolve();
    if (claims.isAway) throw new Fault('claims_unavailable', 'accounts is away');
  };
  const stand = async ({ accountId, keyDigest, requestId }: ClaimRef, isBegin: boolean): Promise<ClaimStanding> => {
    await check();
    const name = nameOf(accountId, keyDigest);
    const found = kept.get(name);
    if (found?.requestId !== requestId || found.done !== undefined) return { isLost: true };
    const isToBegin = found.isToBegin && !isBegin;
    const leaseLeftMs = isToBegin ? TO_BEGIN_LEASE_MS : LEASE_MS;
    kept.set(name, { ...found, isToBegin, leaseEndsMs: clock.nowMs() + leaseLeftMs });
    claims.stood.push(isBegin ? 'begin' : 'renew');
    return { isLost: false, leaseLeftMs };
  };
  const claims: FakeClaims = {
    stood: [],
    kept,
    isAway: false,
    endGate: undefined,
    claim: async ({ accountId, keyDigest, requestId }, bodyDigest, takesOver, tellsBegin) => {
      await check();
      const name = nameOf(accountId, keyDigest);
      const found = kept.get(name);
      const nowMs = clock.nowMs();
      if (found === undefined || ((found.requestId === takesOver || found.isToBegin) && found.done === undefined && found.leaseEndsMs <= nowMs)) {
        const leaseLeftMs = tellsBegin ? TO_BEGIN_LEASE_MS : LEASE_MS;
        kept.set(name, { bodyDigest: bodyDigest.toString('hex'), requestId, isToBegin: tellsBegin, leaseEndsMs: nowMs + leaseLeftMs });
        return { outcome: 'CLAIMED', requestId, leaseLeftMs, isToBegin: tellsBegin };
      }
      if (found.bodyDigest !== bodyDigest.toString('hex')) return { outcome: 'OTHER_BODY', requestId: found.requestId };
      if (found.done !== undefined) return { outcome: 'DONE', requestId: found.requestId, ...found.done };
      return found.leaseEndsMs > nowMs ? { outcome: 'RUNNING', requestId: found.requestId, leaseLeftMs: found.leaseEndsMs - nowMs } : { outcome: 'LEFT', requestId: found.requestId, leftMs: nowMs - found.leaseEndsMs };
    },
    renew: (ref) => stand(ref, false),
    begin: (ref) => stand(ref, true),
    end: async ({ accountId, keyDigest, requestId }, ending) => {
      await claims.endGate;
      await check();
      const name = nameOf(accountId, keyDigest);
      const found = kept.get(name);
      if (found?.requestId !== requestId) return;
      if (ending.kind === 'freed') kept.delete(name);
      else if (ending.kind === 'abandoned') kept.set(name, { ...found, leaseEndsMs: clock.nowMs() });
      else kept.set(name, { ...found, done: { costNanoUsd: ending.costNanoUsd, answer: ending.answer } });
    },
  };
  return claims;
}
