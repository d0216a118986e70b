/** Time as an argument. The only real clock lives in runtime; tests move a fake one by hand. */

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
  /** Calls `fire` once after at least `delayMs` (≤ 2^31−1) monotonic milliseconds. Does not keep the process alive when `unref`. */
  setTimer(delayMs: number, fire: () => void, options?: { readonly unref?: boolean }): Timer;
}

/** Source of unpredictable bytes; injected so that simulations replay. */
export type RandomBytes = (count: number) => Uint8Array;
