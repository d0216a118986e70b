/** Tells routing how attempts went: batched, at most once, never awaited. */
import type { Bus } from '@signalbox/bus/bus';
import type { AttemptObserved, AttemptsObserved, AttemptsObserved__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import type { Clock, Timer } from '@signalbox/kernel/clock';

const BATCH_MS = 500;
const BATCH_MAX = 256;

export interface Observations {
  observe(attempt: AttemptObserved): void;
  /** Announces what waits. */
  flush(): void;
}

export function createObservations(bus: Bus, provider: string, clock: Clock): Observations {
  const codec = messageCodec<AttemptsObserved, AttemptsObserved__Output>('signalbox.events.v1.AttemptsObserved');
  let waiting: AttemptObserved[] = [];
  let timer: Timer | undefined;
  const flush = (): void => {
    timer?.cancel();
    timer = undefined;
    if (waiting.length === 0) return;
    const attempts = waiting;
    waiting = [];
    bus.announce(`attempts.v1.${provider}`, codec.encode({ attempts }));
  };
  return {
    observe: (attempt) => {
      waiting.push(attempt);
      if (waiting.length >= BATCH_MAX) flush();
      else timer ??= clock.setTimer(BATCH_MS, flush, { unref: true });
    },
    flush,
  };
}
