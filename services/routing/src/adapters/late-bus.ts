/** The event bus of a service that can work without it: connects in the background, and retries until it succeeds. */
import type { Bus, Subscription } from '@signalbox/bus/bus';
import type { Clock, Timer } from '@signalbox/kernel/clock';

const RETRY_MS = 2_000;

export interface LateBusOptions {
  /** Rejects if the bus does not answer. */
  readonly connect: () => Promise<Bus>;
  /** Subscribe to the bus. Each rejects if the bus refuses the subscription. */
  readonly listeners: readonly ((bus: Bus) => Promise<Subscription>)[];
  readonly clock: Clock;
  /** Called for each failure; a retry follows 2 s later. */
  readonly onFailure: (error: unknown) => void;
}

export interface LateBus {
  /** Undefined until connected. */
  current(): Bus | undefined;
  /** Call once; returns immediately and never throws. */
  start(): void;
  /** Stops trying, and closes the connection. */
  stop(): Promise<void>;
}

/** Makes one connection at most. If a subscription is refused, only the missing subscriptions are retried. */
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
