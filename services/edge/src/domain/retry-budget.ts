/** How many attempts may be retries: a fifth of the traffic, so that a broken provider is not answered with a storm (FAILURES). */
import type { Clock } from '@signalbox/kernel/clock';

const SHARE = 0.2;
/** Second attempts that are free of the share in each second: small traffic always fails over. */
const RESERVE_PER_SECOND = 10;
/** What is not used of the last ten seconds is not lost. */
const WINDOW_SECONDS = 10;
/** Accounts whose own pots are kept; the one that began first gives way, and finds a full one. */
const OWN_POTS_MAX = 20_000;
/** What an account has taken is forgotten below this. */
const TAKEN_MIN = 0.01;

/** `isOwn`: at a credential of the account's own. Such retries have a pot for each account; of the pot that all share an account takes no more than it leaves (ADR 74). */
export interface RetryBudget {
  /** A request that was admitted. */
  noteRequest(accountId: string, isOwn: boolean): void;
  /** True when a retry could be taken. */
  hasRoom(accountId: string, isOwn: boolean): boolean;
  /** False: the budget is used up, and the request ends with what it has. */
  take(accountId: string, isOwn: boolean): boolean;
}

interface Pot {
  noteRequest(): void;
  /** Retries that are left. */
  left(): number;
  /** False: there is not one. */
  take(): boolean;
}

/** A bucket that each request fills by a fifth of a retry, and time by ten a second. `onFilled` hears of what was brought, also where there is no room for it. */
function createPot(clock: Clock, reservePerSecond: number, onFilled: (retries: number) => void = () => undefined): Pot {
  const most = Math.max(1, reservePerSecond * WINDOW_SECONDS);
  let saved = most;
  /** By requests; never more than the reserve's worth or a window of the traffic. */
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
  /** What the account took and has not been brought back since. */
  of(accountId: string): number;
  took(accountId: string): void;
  /** So much came back, to each its part. */
  brought(retries: number): void;
}

function createTakings(): Takings {
  /** In units of `unit`, which shrinks with what is brought back: nobody goes through all accounts for each request. */
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
  /** Of accounts that have tried again on their own credentials: any other's is full. */
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
  /** An account leaves at least as much as it has taken. */
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
