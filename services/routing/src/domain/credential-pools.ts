/**
 * Tracks which of the operator's credentials at a provider cannot be used for now. While keys are being rotated, replicas of a
 * worker may have different credentials (pools): a refusal or rate limit applies only to replicas with the same pool.
 */

/** Replicas report every minute; a pool that no replica reported for this long is gone. */
const POOL_AGE_MAX_MS = 150_000;
/** Most pools per provider; the one with the oldest report is dropped first. */
const POOLS_MAX = 64;

interface Pool {
  heardAtMs: number;
  /** Until when the whole pool is benched, for all models. */
  benchedUntilMs: number;
  readonly restsUntilMs: Map<string, number>;
}

/** All instants are on one monotonic clock. `pool` 0 = from a version that does not report its pool: applies to all. */
export interface CredentialPools {
  /** A replica with these credentials is running. */
  note(provider: string, pool: number, nowMs: number): void;
  /** At least one of the credentials may be used again. */
  free(provider: string, pool: number): void;
  /**
   * The pool cannot be used for `forMs`: for this endpoint, or for any if undefined. Returns how long none of the provider's
   * recently reported pools can be used; 0 = one can.
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
