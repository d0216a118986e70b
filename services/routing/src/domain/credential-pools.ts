/**
 * Which of the operator's credentials at a provider have to be waited for. Replicas of a worker may have different ones
 * while keys are changed: what one of them met is waited for by those that have the same, and the others go on.
 */

/** Replicas say every minute that they are there; credentials that nobody spoke of for so long are gone. */
const POOL_AGE_MAX_MS = 150_000;
/** Of one provider; the one that was heard of longest ago goes first. */
const POOLS_MAX = 64;

interface Pool {
  heardAtMs: number;
  /** All of them, for whatever model. */
  benchedUntilMs: number;
  readonly restsUntilMs: Map<string, number>;
}

/** All instants on one steady clock. `pool` 0 = of a version that does not tell: it speaks for all. */
export interface CredentialPools {
  /** A replica that has these credentials is there. */
  note(provider: string, pool: number, nowMs: number): void;
  /** One of them may be asked again. */
  free(provider: string, pool: number): void;
  /**
   * No call can be made with them for so long: to this endpoint, undefined = to any. Answers for how long no call can be made
   * with any of the provider's that were heard of lately; 0 = one can.
   */
  wait(provider: string, pool: number, endpointId: string | undefined, forMs: number, nowMs: number): number;
}

export function createCredentialPools(): CredentialPools {
  const providers = new Map<string, Map<number, Pool>>(); // kept: by provider and pool.
  const note = (provider: string, pool: number, nowMs: number): Pool => {
    let pools = providers.get(provider);
    if (pools === undefined) providers.set(provider, (pools = new Map<number, Pool>()));
    const entry = pools.get(pool) ?? { heardAtMs: nowMs, benchedUntilMs: -Infinity, restsUntilMs: new Map<string, number>() };
    entry.heardAtMs = nowMs;
    pools.delete(pool);
    pools.set(pool, entry);
    const oldest = pools.size > POOLS_MAX ? pools.keys().next().value : undefined;
    if (oldest !== undefined) pools.delete(oldest);
    return entry;
  };
  return {
    note: (provider, pool, nowMs) => {
      if (pool !== 0) note(provider, pool, nowMs);
    },
    free: (provider, pool) => {
      const entry = providers.get(provider)?.get(pool);
      if (entry !== undefined) entry.benchedUntilMs = -Infinity;
    },
    wait: (provider, pool, endpointId, forMs, nowMs) => {
      if (pool === 0) return forMs;
      const entry = note(provider, pool, nowMs);
      const untilMs = nowMs + forMs;
      if (endpointId === undefined) entry.benchedUntilMs = Math.max(entry.benchedUntilMs, untilMs);
      else entry.restsUntilMs.set(endpointId, Math.max(entry.restsUntilMs.get(endpointId) ?? -Infinity, untilMs));
      let soonestMs = forMs;
      for (const other of providers.get(provider)?.values() ?? []) {
        if (other === entry || nowMs - other.heardAtMs >= POOL_AGE_MAX_MS) continue;
        const restsUntilMs = endpointId === undefined ? undefined : other.restsUntilMs.get(endpointId);
        soonestMs = Math.min(soonestMs, Math.max(other.benchedUntilMs, restsUntilMs ?? -Infinity) - nowMs);
      }
      return Math.max(0, soonestMs);
    },
  };
}
