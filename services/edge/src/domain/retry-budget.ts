/** Bounds retries to a fifth of the traffic, so that a failing provider does not cause a retry storm. */
import type { Clock } from '@signalbox/kernel/clock';

const SHARE = 0.2;
/** Retries a second that do not count against the share, so that little traffic can always fail over. */
const RESERVE_PER_SECOND = 10;
/** Unused retries of this long are saved up. */
const WINDOW_SECONDS = 10;
/** Accounts whose own pots are kept. Beyond it the oldest pot is dropped; its account then starts with a full one. */
const OWN_POTS_MAX = 20_000;
/** An account that has taken less than this many retries is forgotten. */
const TAKEN_MIN = 0.01;

/** `isOwn`: on the account's own credential. Such retries come out of a pot of the account's own; from the pot shared by all, an account takes no more than it leaves for the others (ADR 74). */
export interface RetryBudget {
  /** Counts an admitted request. */
  noteRequest(accountId: string, isOwn: boolean): void;
  /** True when `take` would succeed. */
  hasRoom(accountId: string, isOwn: boolean): boolean;
  /** Takes one retry; false = the budget is used up, and no further attempt may be made. */
  take(accountId: string, isOwn: boolean): boolean;
}

interface Pot {
  noteRequest(): void;
  /** Retries that are left. */
  left(): number;
  /** False = no retry is left. */
  take(): boolean;
}

/** A token bucket: each request adds a fifth of a retry, and each second `reservePerSecond`. `onFilled` is told what was added, also where the bucket was full. */
function createPot(clock: Clock, reservePerSecond: number, onFilled: (retries: number) => void = () => undefined): Pot {
  const most = Math.max(1, reservePerSecond * WINDOW_SECONDS);
  let saved = most;
  /** Added by requests; capped at a window's worth of traffic, or at the reserve where that is more. */
  let earned = 0;
  let requests = 0;
  let windowAtMs = clock.monotonicMs();
  let earnedMost = most;
  let filledAtMs = windowAtMs;

  const fill = (): void => {
    const nowMs = clock.monotonicMs();
    const brought = ((nowMs - filledAtMs) * reservePerSecond) / 1_000;
    saved = Math.min(most, saved + brought);
    filledAtMs = nowMs;
    onFilled(brought);
    if (nowMs - windowAtMs < WINDOW_SECONDS * 1_000) return;
    earnedMost = Math.max(most, requests * SHARE);
    requests = 0;
    windowAtMs = nowMs;
    earned = Math.min(earned, earnedMost);
  };
  return {
    noteRequest: () => {
      requests += 1;
      earned = Math.min(earnedMost, earned + SHARE);
      onFilled(SHARE);
    },
    left: () => {
      fill();
      return (earned >= 1 ? earned : 0) + (saved >= 1 ? saved : 0);
    },
    take: () => {
      fill();
      if (earned >= 1) earned -= 1;
      else if (saved >= 1) saved -= 1;
      else return false;
      return true;
    },
  };
}

interface Takings {
  /** Retries the account took that have not been refilled since. */
  of(accountId: string): number;
  took(accountId: string): void;
  /** `retries` were refilled; each account is credited in proportion to what it took. */
  brought(retries: number): void;
}

function createTakings(): Takings {
  /** In units of `unit`, which shrinks with each refill, so that a refill need not visit every account. */
  const byAccount = new Map<string, number>(); // kept: ids and numbers, of accounts that try again.
  let unit = 1;
  let sum = 0;
  const clear = (): void => {
    byAccount.clear();
    unit = 1;
    sum = 0;
  };
  return {
    of: (accountId) => (byAccount.get(accountId) ?? 0) * unit,
    took: (accountId) => {
      byAccount.set(accountId, (byAccount.get(accountId) ?? 0) + 1 / unit);
      sum += 1;
    },
    brought: (retries) => {
      if (sum === 0) return;
      if (retries >= sum) {
        clear();
        return;
      }
      unit *= (sum - retries) / sum;
      sum -= retries;
      if (unit > 0.5) return;
      sum = 0;
      for (const [accountId, units] of byAccount) {
        const taken = units * unit;
        if (taken < TAKEN_MIN) byAccount.delete(accountId);
        else byAccount.set(accountId, taken);
        sum += taken < TAKEN_MIN ? 0 : taken;
      }
      unit = 1;
    },
  };
}

export function createRetryBudget(clock: Clock, reservePerSecond: number = RESERVE_PER_SECOND): RetryBudget {
  const takings = createTakings();
  const shared = createPot(clock, reservePerSecond, takings.brought);
  /** Pots of accounts that retried on their own credentials; any other account's pot is full. */
  const own = new Map<string, Pot>(); // kept: by account that tries again.
  const ownOf = (accountId: string): Pot => {
    let pot = own.get(accountId);
    if (pot === undefined) {
      if (own.size >= OWN_POTS_MAX) for (const oldest of own.keys()) {
        own.delete(oldest);
        break;
      }
      own.set(accountId, (pot = createPot(clock, reservePerSecond)));
    }
    return pot;
  };
  /** True while the account would leave at least as many retries as it has taken. */
  const hasShared = (accountId: string): boolean => shared.left() >= takings.of(accountId) + 1;
  return {
    noteRequest: (accountId, isOwn) => {
      if (isOwn) own.get(accountId)?.noteRequest();
      else shared.noteRequest();
    },
    hasRoom: (accountId, isOwn) => (isOwn ? (own.get(accountId)?.left() ?? 1) >= 1 : hasShared(accountId)),
    take: (accountId, isOwn) => {
      if (isOwn) return ownOf(accountId).take();
      if (!hasShared(accountId)) return false;
      shared.take();
      takings.took(accountId);
      return true;
    },
  };
}
