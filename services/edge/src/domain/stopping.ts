/** The last phase of a stop: requests are ended, and their workers are told the outcomes. */
import type { Clock } from '@signalbox/kernel/clock';

const LOOK_EVERY_MS = 20;
/** What workers have not heard is told to them for the rest of the drain, and for so long at least: streams may have used it up. */
const SETTLE_MS_MIN = 2_000;

export interface LastRequests {
  /** Requests under way. */
  readonly inFlight: () => number;
  /** Tells what is still to be told, for at most `limitMs`; answers how many outcomes were left untold. */
  readonly settle: (limitMs: number) => Promise<number>;
  readonly clock: Clock;
  /** End of the drain, in monotonic milliseconds. */
  readonly endMs: number;
}

/** To be called once their answers have ended or were cut. Answers how many outcomes their workers have not heard, and will conclude by themselves. */
export async function settleRequests({ inFlight, settle, clock, endMs }: LastRequests): Promise<number> {
  await untilNone(inFlight, SETTLE_MS_MIN, clock);
  return await settle(Math.max(SETTLE_MS_MIN, endMs - clock.monotonicMs()));
}

/** Resolves once `count` answers 0, or after `limitMs`. */
export async function untilNone(count: () => number, limitMs: number, clock: Clock): Promise<void> {
  const endMs = clock.monotonicMs() + limitMs;
  while (count() > 0 && clock.monotonicMs() < endMs) await new Promise<void>((resolve) => clock.setTimer(LOOK_EVERY_MS, resolve));
}
