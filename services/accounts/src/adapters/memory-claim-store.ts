/** Claims in this process: for tests and simulations. */
import type { ClaimRecord, ClaimStore } from '../domain/claims.js';

export function createMemoryClaimStore(): ClaimStore {
  const claims = new Map<string, ClaimRecord>();
  const nameOf = (accountId: string, keyDigest: Uint8Array): string => `${accountId}/${Buffer.from(keyDigest).toString('hex')}`;
  const change = (name: string, requestId: string, over: Partial<ClaimRecord>): void => {
    const found = claims.get(name);
    if (found !== undefined && found.requestId === requestId && !found.isEnded) claims.set(name, { ...found, ...over });
  };
  return {
    claim: async (fresh, takesOver, nowMs) => {
      const name = nameOf(fresh.accountId, fresh.keyDigest);
      const found = claims.get(name);
      const isFree = found === undefined || found.forgetMs <= nowMs || (found.requestId === takesOver && !found.isEnded && found.leaseEndsMs <= nowMs);
      if (!isFree) return found;
      claims.set(name, fresh);
      return undefined;
    },
    renew: async (accountId, keyDigest, requestId, leaseEndsMs, forgetMs) => change(nameOf(accountId, keyDigest), requestId, { leaseEndsMs, forgetMs }),
    end: async (accountId, keyDigest, requestId, end) => change(nameOf(accountId, keyDigest), requestId, { ...end, isEnded: true }),
    remove: async (accountId, keyDigest, requestId) => {
      const name = nameOf(accountId, keyDigest);
      const found = claims.get(name);
      if (found !== undefined && found.requestId === requestId && !found.isEnded) claims.delete(name);
    },
    purge: async (nowMs, limit) => {
      const old = [...claims].filter(([, { forgetMs }]) => forgetMs <= nowMs).slice(0, limit);
      for (const [name] of old) claims.delete(name);
      return old.length;
    },
  };
}
