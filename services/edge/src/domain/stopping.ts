/** The last phase of a stop: requests are ended, and their workers are told the outcomes. */
import type { Clock } from '@signalbox/kernel/clock';

const LOOK_EVERY_MS = 20;
/** Untold outcomes are sent for the rest of the drain, and for at least this long, since streams may have used up the drain. */
const SETTLE_MS_MIN = 2_000;

export interface LastRequests {
  /** Requests under way. */
  readonly inFlight: () => number;
  /** Sends untold outcomes for at most `limitMs`; resolves with the number left untold. */
  readonly settle: (limitMs: number) => Promise<number>;
  readonly clock: Clock;
  /** End of the drain, in monotonic milliseconds. */
  readonly endMs: number;
}

/** To be called once all answers have ended or were cut. Resolves with the number of outcomes left untold, which their workers conclude by themselves. */
export async function settleRequests({ inFlight, settle, clock, endMs }: LastRequests): Promise<number> {
  await untilNone(inFlight, SETTLE_MS_MIN, clock);
  return await settle(Math.max(SETTLE_MS_MIN, endMs - clock.monotonicMs()));
}

/** Resolves once `count` returns 0, or after `limitMs`. */
export async function untilNone(count: () => number, limitMs: number, clock: Clock): Promise<void> {
  const endMs = clock.monotonicMs() + limitMs;
  while (count() > 0 && clock.monotonicMs() < endMs) await new Promise<void>((resolve) => clock.setTimer(LOOK_EVERY_MS, resolve));
}
