/**
 * Breaker of one endpoint: opens on five failures in a row, on more than half of at least ten in 30 s, or for as long as no
 * credential is free for it. What it met then is tried by one call at a time, until a whole answer closes it; the wait for
 * rate limits is over with the wait.
 */
import type { BreakerState } from './catalog.js';

const IN_A_ROW = 5;
const CALLS_MIN = 10;
const WINDOW_MS = 30_000;
const OPEN_MS = 30_000;
/** Rest after five rate limits in a row of which no wait is known; twice as long after each five more, up to 30 s. */
const LIMITED_MS = 1_000;
/** A wait for credentials is believed up to ten minutes. */
const RETRY_AFTER_MAX_MS = 600_000;
/** Calls remembered for the share; more within 30 s push the oldest out. */
const CALLS_MAX = 256;
/** Streams that begin well in a row let calls pass as before, though none has been whole yet. */
const BEGUN_ENOUGH = 5;
const CLOSED = -Infinity;

export interface Breaker {
  /** `retryAfterMs`: until a credential is free; 0 = one is, or nobody knows. All instants on one steady clock. */
  record(isSuccess: boolean, retryAfterMs: number, nowMs: number): void;
  /** A rate limit, and no credential is free for `forMs`. Nobody is asked until then, so it counts as no failure, but of a probe. */
  rest(forMs: number, nowMs: number): void;
  /**
   * A rate limit of which no wait is known, or after which another credential is free. Five in a row, with no answer and no
   * known wait between, are waited out; it counts as no failure, but of a probe.
   */
  limit(nowMs: number): void;
  /** No credential is free for `forMs`, as another endpoint has met: nobody is asked until then, and it says nothing of this one. */
  pause(forMs: number, nowMs: number): void;
  /** One is free again. Waits of its own stay. */
  unpause(): void;
  state(nowMs: number): BreakerState;
  /** Milliseconds until it may be tried, 0 = now. */
  waitMs(nowMs: number): number;
  /** A probe is under way: what is left of the wait is only how long it is waited for. */
  isProbing(): boolean;
  /** Called when a call to a half-open endpoint is on its way: it counts as open until that probe reports or `forMs` (30 s) pass. */
  noteProbe(nowMs: number, forMs?: number): void;
  /** Another replica lets a probe through. Says nothing where this breaker is closed: what was heard here counts here. */
  hearProbe(nowMs: number): void;
  /** The probe has brought content: the next call may try, and after five in a row all may. Until one is whole, a failure opens it again. */
  noteBegun(nowMs: number): void;
  /** The probe ended and says nothing, since its client left: the next call may try at once. */
  giveBack(nowMs: number): void;
}

interface RecentCalls {
  /** Also forgets what is older than the window. */
  add(isSuccess: boolean, nowMs: number): void;
  count(): number;
  failures(): number;
  clear(): void;
}

/** A ring of the last calls, so that a busy endpoint costs nothing per call. */
function createRecentCalls(): RecentCalls {
  const atMs = new Float64Array(CALLS_MAX);
  const failed = new Uint8Array(CALLS_MAX);
  let first = 0;
  let length = 0;
  let failures = 0;
  const dropFirst = (): void => {
    failures -= failed[first] ?? 0;
    first = (first + 1) % CALLS_MAX;
    length -= 1;
  };
  return {
    add: (isSuccess, nowMs) => {
      while (length > 0 && (length === CALLS_MAX || (atMs[first] ?? 0) <= nowMs - WINDOW_MS)) dropFirst();
      const at = (first + length) % CALLS_MAX;
      atMs[at] = nowMs;
      failed[at] = Number(!isSuccess);
      length += 1;
      failures += Number(!isSuccess);
    },
    count: () => length,
    failures: () => failures,
    clear: () => {
      length = 0;
      failures = 0;
    },
  };
}

export function createBreaker(): Breaker {
  let failuresInARow = 0;
  /** Rate limits without a wait. */
  let limitsInARow = 0;
  /** Moves only forward while open; back to now when a probe is over. */
  let openUntilMs = CLOSED;
  /** When the last rate limit's wait is over. */
  let restUntilMs = -Infinity;
  /** Until a credential of all endpoints is free. */
  let pausedUntilMs = -Infinity;
  /** One plan holds the endpoint to see whether it is well again. */
  let probing = false;
  /** Streams that have begun since it opened, without a failure. */
  let begun = 0;
  const calls = createRecentCalls();

  const open = (untilMs: number): void => {
    openUntilMs = Math.max(openUntilMs, untilMs);
  };
  const isHalfOpen = (nowMs: number): boolean => openUntilMs !== CLOSED && (probing || nowMs >= openUntilMs);
  const endProbe = (nowMs: number): void => {
    probing = false;
    openUntilMs = nowMs;
  };
  const record = (isSuccess: boolean, retryAfterMs: number, nowMs: number): void => {
    calls.add(isSuccess, nowMs);
    if (isSuccess) {
      failuresInARow = 0;
      limitsInARow = 0;
      // While it is open without a probe, a success is the late answer of an older call and closes nothing.
      if (probing || nowMs >= openUntilMs) {
        if (openUntilMs !== CLOSED) calls.clear();
        openUntilMs = CLOSED;
        begun = 0;
      }
      probing = false;
      return;
    }
    failuresInARow += 1;
    begun = 0;
    if (retryAfterMs > 0) open(nowMs + Math.min(retryAfterMs, RETRY_AFTER_MAX_MS));
    if (isHalfOpen(nowMs) || failuresInARow >= IN_A_ROW || (calls.count() >= CALLS_MIN && calls.failures() * 2 > calls.count())) open(nowMs + OPEN_MS);
    probing = false;
  };
  return {
    record,
    rest: (forMs, nowMs) => {
      limitsInARow = 0;
      if (isHalfOpen(nowMs)) record(false, forMs, nowMs);
      else restUntilMs = Math.max(restUntilMs, nowMs + Math.min(forMs, RETRY_AFTER_MAX_MS));
    },
    limit: (nowMs) => {
      if (isHalfOpen(nowMs)) {
        record(false, 0, nowMs);
        return;
      }
      // What was under way as the rest began says nothing new.
      if (nowMs < restUntilMs) return;
      limitsInARow += 1;
      if (limitsInARow % IN_A_ROW === 0) restUntilMs = nowMs + Math.min(OPEN_MS, LIMITED_MS * 2 ** (limitsInARow / IN_A_ROW - 1));
    },
    pause: (forMs, nowMs) => {
      pausedUntilMs = Math.max(pausedUntilMs, nowMs + Math.min(forMs, RETRY_AFTER_MAX_MS));
    },
    unpause: () => {
      pausedUntilMs = -Infinity;
    },
    state: (nowMs) => (nowMs < restUntilMs || nowMs < openUntilMs || nowMs < pausedUntilMs ? 'open' : openUntilMs === CLOSED || begun >= BEGUN_ENOUGH ? 'closed' : 'half-open'),
    waitMs: (nowMs) => Math.max(0, openUntilMs - nowMs, restUntilMs - nowMs, pausedUntilMs - nowMs),
    isProbing: () => probing,
    noteProbe: (nowMs, forMs = OPEN_MS) => {
      if (openUntilMs === CLOSED || begun >= BEGUN_ENOUGH || nowMs < openUntilMs || nowMs < restUntilMs || nowMs < pausedUntilMs) return;
      probing = true;
      openUntilMs = nowMs + forMs;
    },
    hearProbe: (nowMs) => {
      if (openUntilMs === CLOSED || begun >= BEGUN_ENOUGH) return;
      probing = true;
      open(nowMs + OPEN_MS);
    },
    noteBegun: (nowMs) => {
      if (!probing) return;
      begun += 1;
      endProbe(nowMs);
    },
    giveBack: (nowMs) => {
      if (probing) endProbe(nowMs);
    },
  };
}
