/** How many attempts may be retries: a fifth of the traffic, so that a broken provider is not answered with a storm (FAILURES). */
import type { Clock } from '@signalbox/kernel/clock';

const SHARE = 0.2;
/** Second attempts that are free of the share in each second: small traffic always fails over. */
const RESERVE_PER_SECOND = 10;
/** What is not used of the last ten seconds is not lost. */
const WINDOW_SECONDS = 10;

export interface RetryBudget {
  /** A request that was admitted. */
  noteRequest(): void;
  /** True when a retry could be taken. */
  hasRoom(): boolean;
  /** False: the budget is used up, and the request ends with what it has. */
  take(): boolean;
}

/** A bucket that each request fills by a fifth of a retry, and time by ten a second. */
export function createRetryBudget(clock: Clock, reservePerSecond: number = RESERVE_PER_SECOND): RetryBudget {
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
    saved = Math.min(most, saved + ((nowMs - filledAtMs) * reservePerSecond) / 1_000);
    filledAtMs = nowMs;
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
    },
    hasRoom: () => {
      fill();
      return earned >= 1 || saved >= 1;
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
