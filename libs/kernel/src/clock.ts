/** Time as an argument. The only real clock is in libs/runtime; tests use a fake clock. */

/** Milliseconds since the Unix epoch. */
export type EpochMs = number;

export interface Timer {
  /** Safe to call more than once and after it fired. */
  cancel(): void;
}

export interface Clock {
  /** Wall clock, for timestamps only. */
  nowMs(): EpochMs;
  /** Monotonic milliseconds with fractions, for durations and deadlines. */
  monotonicMs(): number;
  /** Calls `fire` once after at least `delayMs` (≤ 2^31−1) monotonic milliseconds. With `unref` it does not keep the process alive. */
  setTimer(delayMs: number, fire: () => void, options?: { readonly unref?: boolean }): Timer;
}

/** Source of unpredictable bytes; injected so that simulations replay. */
export type RandomBytes = (count: number) => Uint8Array;
