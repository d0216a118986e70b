/** The event bus of a service that works without one: connected in the background, for as long as it takes. */
import type { Bus, Subscription } from '@signalbox/bus/bus';
import type { Clock, Timer } from '@signalbox/kernel/clock';

const RETRY_MS = 2_000;

export interface LateBusOptions {
  /** Rejects when the bus does not answer. */
  readonly connect: () => Promise<Bus>;
  /** What is listened to. Each rejects when the bus does not let this service listen. */
  readonly listeners: readonly ((bus: Bus) => Promise<Subscription>)[];
  readonly clock: Clock;
  /** Hears of each failure; all is tried again 2 s later. */
  readonly onFailure: (error: unknown) => void;
}

export interface LateBus {
  /** Undefined until it is connected. */
  current(): Bus | undefined;
  /** To be called once; returns at once, never throws. */
  start(): void;
  /** Stops trying, and closes the connection. */
  stop(): Promise<void>;
}

/** One connection at the most: where listening is refused, only that is tried again, and what is listened to already is not listened to twice. */
export function createLateBus({ connect, listeners, clock, onFailure }: LateBusOptions): LateBus {
  const subscriptions: Subscription[] = [];
  let bus: Bus | undefined;
  let retry: Timer | undefined;
  let isStopped = false;

  const tryOnce = async (): Promise<void> => {
    try {
      if (bus === undefined) {
        const connected = await connect();
        if (isStopped) return await connected.close();
        bus = connected;
      }
      for (const listen of listeners.slice(subscriptions.length)) subscriptions.push(await listen(bus));
    } catch (error) {
      if (isStopped) return;
      onFailure(error);
      retry = clock.setTimer(RETRY_MS, () => void tryOnce(), { unref: true });
    }
  };

  return {
    current: () => bus,
    start: () => void tryOnce(),
    stop: async () => {
      isStopped = true;
      retry?.cancel();
      for (const subscription of subscriptions) await subscription.stop();
      await bus?.close();
    },
  };
}
