/**
 * Circuit breaker of one endpoint. It opens on five failures in a row, when more than half of at least ten calls in 30 s fail,
 * and for as long as no credential is free. After failures it is probed by one call at a time, until a whole answer closes
 * it; after a rate limit it closes by itself when the wait is over.
 */
import type { BreakerState } from './catalog.js';

const IN_A_ROW = 5;
const CALLS_MIN = 10;
const WINDOW_MS = 30_000;
const OPEN_MS = 30_000;
/** Pause after five rate limits in a row that came without a wait; doubled after each five more, up to 30 s. */
const LIMITED_MS = 1_000;
/** A longer wait for credentials is cut to ten minutes. */
const RETRY_AFTER_MAX_MS = 600_000;
/** Calls remembered for the failure rate; with more within 30 s the oldest are dropped. */
const CALLS_MAX = 256;
/** So many streams in a row that have begun well let all calls pass, though none has ended yet. */
const BEGUN_ENOUGH = 5;
const CLOSED = -Infinity;

export interface Breaker {
  /** A call ended. `retryAfterMs`: until a credential is free; 0 = one is, or it is unknown. All `nowMs` are of one monotonic clock. */
  record(isSuccess: boolean, retryAfterMs: number, nowMs: number): void;
  /**
   * An answer that had begun broke off, of a call sent at `sentAtMs`. One event may break off all answers that are under way,
   * so those of calls that were sent before the last one that counted do not count. A probe's always does.
   */
  cut(sentAtMs: number, nowMs: number): void;
  /**
   * A rate limit after which no credential is free for `forMs`: no call is made until then. It counts as a failure only of a probe.
   * `behindMs`: whoever reads the state reads that of so long ago, which must not make the wait longer.
   */
  rest(forMs: number, nowMs: number, behindMs?: number): void;
  /**
   * A rate limit without a known wait, or after which another credential is free. After five in a row, with no answer and no
   * known wait between them, calls pause. It counts as a failure only of a probe.
   */
  limit(nowMs: number): void;
  /** Another endpoint found that no credential is free for `forMs`: no call is made until then. It says nothing about this endpoint. */
  pause(forMs: number, nowMs: number): void;
  /** A credential is free again. Waits that this endpoint met itself stay. */
  unpause(): void;
  state(nowMs: number): BreakerState;
  /** Milliseconds until it may be tried, 0 = now. */
  waitMs(nowMs: number): number;
  /** True while a probe is under way; `waitMs` is then the time its result is waited for. */
  isProbing(): boolean;
  /** A call to a half-open endpoint, its probe, is on its way: the breaker counts as open until it reports or `forMs` (default 30 s) have passed. */
  noteProbe(nowMs: number, forMs?: number): void;
  /** Another replica let a probe through. Ignored while this breaker is closed: its own observations count. */
  hearProbe(nowMs: number): void;
  /** The probe has brought content: the next call may try, and after five in a row all may. Until an answer is complete, one failure opens it again. */
  noteBegun(nowMs: number): void;
  /** The probe ended without a result, since its client left: the next call may try at once. */
  giveBack(nowMs: number): void;
}

interface RecentCalls {
  /** Also forgets what is older than the window. */
  add(isSuccess: boolean, nowMs: number): void;
  count(): number;
  failures(): number;
  clear(): void;
}

/** A ring buffer of the last calls: recording one allocates nothing. */
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
  /** Consecutive rate limits without a known wait. */
  let limitsInARow = 0;
  /** Only increases while open; set to now when a probe is over. */
  let openUntilMs = CLOSED;
  /** When the wait of the last rate limit is over. */
  let restUntilMs = -Infinity;
  /** Until a credential of all endpoints is free. */
  let pausedUntilMs = -Infinity;
  /** A probe is under way. */
  let probing = false;
  /** Streams that have begun since the breaker opened, without a failure. */
  let begun = 0;
  /** When an answer that broke off was last counted. */
  let cutAtMs = -Infinity;
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
    cut: (sentAtMs, nowMs) => {
      if (!isHalfOpen(nowMs) && sentAtMs < cutAtMs) return;
      cutAtMs = nowMs;
      record(false, 0, nowMs);
    },
    rest: (forMs, nowMs, behindMs = 0) => {
      limitsInARow = 0;
      if (isHalfOpen(nowMs)) record(false, forMs, nowMs);
      else restUntilMs = Math.max(restUntilMs, nowMs - behindMs + Math.min(forMs, RETRY_AFTER_MAX_MS));
    },
    limit: (nowMs) => {
      if (isHalfOpen(nowMs)) {
        record(false, 0, nowMs);
        return;
      }
      // Calls that were running when the rest began tell nothing new.
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
