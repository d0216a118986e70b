/** Claims in memory, for tests and simulations. */
import type { ClaimRecord, ClaimStore } from '../domain/claims.js';

export function createMemoryClaimStore(): ClaimStore {
  const claims = new Map<string, ClaimRecord>();
  const nameOf = (accountId: string, keyDigest: Uint8Array): string => `${accountId}/${Buffer.from(keyDigest).toString('hex')}`;
  /** Undefined if the claim is another request's, or has ended. */
  const change = (name: string, requestId: string, overOf: (found: ClaimRecord) => Partial<ClaimRecord>): ClaimRecord | undefined => {
    const found = claims.get(name);
    if (found === undefined || found.requestId !== requestId || found.isEnded) return undefined;
    const changed = { ...found, ...overOf(found) };
    claims.set(name, changed);
    return changed;
  };
  return {
    claim: async (fresh, takesOver, nowMs) => {
      const name = nameOf(fresh.accountId, fresh.keyDigest);
      const found = claims.get(name);
      const isFree = found === undefined || found.forgetMs <= nowMs || ((found.requestId === takesOver || found.isToBegin) && !found.isEnded && found.leaseEndsMs <= nowMs);
      if (!isFree) return found;
      claims.set(name, fresh);
      return undefined;
    },
    renew: async (accountId, keyDigest, requestId, leaseEndsMs, toBeginEndsMs, forgetMs) =>
      change(nameOf(accountId, keyDigest), requestId, ({ isToBegin }) => ({ leaseEndsMs: isToBegin ? toBeginEndsMs : leaseEndsMs, forgetMs })),
    begin: async (accountId, keyDigest, requestId, leaseEndsMs, forgetMs) => change(nameOf(accountId, keyDigest), requestId, () => ({ isToBegin: false, leaseEndsMs, forgetMs })) !== undefined,
    end: async (accountId, keyDigest, requestId, end) => void change(nameOf(accountId, keyDigest), requestId, () => ({ ...end, isEnded: true })),
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
