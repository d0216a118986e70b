/** Waiting for what the event loop brings, without a sleep and not for ever. */
import { systemClock } from '@signalbox/runtime/clock';

/** Below the time that jest gives a test, so that it is the wait that fails, and nothing spins on behind it. */
const LIMIT_MS = 15_000;

/** Answers after one turn of the event loop. */
export const oneTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Lets turns of the event loop pass until `holds`. Rejects after 15 s of real time. */
export async function until(holds: () => boolean | undefined): Promise<void> {
  const startedAtMs = systemClock.monotonicMs();
  while (holds() !== true) {
    if (systemClock.monotonicMs() - startedAtMs > LIMIT_MS) throw new Error(`not within ${LIMIT_MS} ms: ${holds.toString()}`);
    await oneTurn();
  }
}
