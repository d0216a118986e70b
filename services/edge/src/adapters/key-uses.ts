/**
 * Reports to accounts when keys were last used. Owners are shown it and nothing depends on it, so it is sent late, rarely
 * and in batches, and no request waits for it.
 */
import type { TouchKeysRequest } from '@signalbox/contracts/accounts';
import type { Clock, EpochMs, Timer } from '@signalbox/kernel/clock';
import type { RpcClient } from '@signalbox/rpc/call';

/** Interval between reports. */
const INTERVAL_MS = 5_000;
/** A key is reported at most once in this time: each report writes its row. */
const QUIET_MS = 60_000;
const TOUCHES_AT_ONCE_MAX = 500;
const DEADLINE_MS = 2_000;
/** Most uses not yet reported; when full (accounts is away for long), those of further keys are dropped. */
const UNTOLD_MAX = 50_000;

export interface KeyUsesOptions {
  readonly accounts: RpcClient;
  readonly clock: Clock;
}

export interface KeyUses {
  start(): void;
  /** Reports everything at once, including keys reported within the last minute. Never rejects: what cannot be sent is lost. */
  stop(): Promise<void>;
  /** A request has been let in with this key. */
  note(keyId: string): void;
  /** Keys remembered in any way; for tests. */
  size(): number;
}

export function createKeyUses({ accounts, clock }: KeyUsesOptions): KeyUses {
  const untold = new Map<string, EpochMs>(); // kept: by key, with a number.
  // Keys reported within QUIET_MS, with the monotonic moment, the oldest first.
  const toldMs = new Map<string, number>(); // kept: by key, with a number.
  let timer: Timer | undefined;
  let isTelling = false;
  let isStopped = false;

  const forgetTold = (nowMs: number): void => {
    for (const [keyId, atMs] of toldMs) {
      if (nowMs - atMs < QUIET_MS) break;
      toldMs.delete(keyId);
    }
  };

  const take = (isQuiet: (keyId: string) => boolean): [string, EpochMs][] => {
    const taken: [string, EpochMs][] = [];
    for (const use of untold) {
      if (isQuiet(use[0])) continue;
      taken.push(use);
      if (taken.length === TOUCHES_AT_ONCE_MAX) break;
    }
    for (const [keyId] of taken) untold.delete(keyId);
    return taken;
  };

  /** False when accounts did not take them: they are noted again, except for keys with a later use. */
  const tell = async (uses: readonly [string, EpochMs][]): Promise<boolean> => {
    const touches = uses.map(([keyId, usedAtMs]) => ({ keyId, usedAt: String(Math.floor(usedAtMs / 1_000)) }));
    try {
      await accounts.unary<TouchKeysRequest, object>('TouchKeys', { touches }, { deadlineMs: DEADLINE_MS });
    } catch {
      for (const [keyId, usedAtMs] of uses) if (!untold.has(keyId)) untold.set(keyId, usedAtMs);
      return false;
    }
    for (const [keyId] of uses) {
      toldMs.delete(keyId);
      toldMs.set(keyId, clock.monotonicMs());
    }
    return true;
  };

  const tellAll = async (isQuiet: (keyId: string) => boolean): Promise<void> => {
    for (let uses = take(isQuiet); uses.length > 0; uses = take(isQuiet)) if (!(await tell(uses))) return;
  };

  const tick = (): void => {
    forgetTold(clock.monotonicMs());
    if (!isTelling && untold.size > 0) {
      isTelling = true;
      void tellAll((keyId) => toldMs.has(keyId)).finally(() => (isTelling = false));
    }
    if (!isStopped) timer = clock.setTimer(INTERVAL_MS, tick, { unref: true });
  };

  return {
    start: () => void (timer = clock.setTimer(INTERVAL_MS, tick, { unref: true })),
    stop: async () => {
      isStopped = true;
      timer?.cancel();
      await tellAll(() => false);
    },
    note: (keyId) => {
      if (untold.size < UNTOLD_MAX || untold.has(keyId)) untold.set(keyId, clock.nowMs());
    },
    size: () => untold.size + toldMs.size,
  };
}
