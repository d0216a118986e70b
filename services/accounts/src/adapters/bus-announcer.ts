/** Invalidations over the bus, subject `keys.v1.revoked`. */
import type { Bus } from '@signalbox/bus/bus';
import type { KeyInvalidated, KeyInvalidated__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import type { Clock } from '@signalbox/kernel/clock';
import type { Announcer, InvalidationReason } from '../domain/ports.js';

const SUBJECT = 'keys.v1.revoked';
/** Longer than the bus takes to notice a lost connection: announcements made within this time before may be lost. */
const DOUBTFUL_MS = 20_000;
/** Most announcements kept for repeats. The oldest are dropped; edge notices those changes itself within a minute. */
const KEPT_MAX = 10_000;

interface Announced {
  readonly event: { readonly keyId: string; readonly accountId: string; readonly reason: InvalidationReason };
  readonly atMs: number;
}

/** After a reconnect, repeats announcements that the lost connection may not have delivered. */
export function createBusAnnouncer(bus: Bus, clock: Pick<Clock, 'monotonicMs'>): Announcer {
  const codec = messageCodec<KeyInvalidated, KeyInvalidated__Output>('signalbox.events.v1.KeyInvalidated');
  // Oldest first. Announcements made without a connection stay until there is one.
  const latest = new Map<string, Announced>();
  let lostAtMs: number | undefined = bus.isConnected() ? undefined : clock.monotonicMs();

  const forgetDelivered = (): void => {
    const beforeMs = (lostAtMs ?? clock.monotonicMs()) - DOUBTFUL_MS;
    for (const [name, { atMs }] of latest) {
      if (atMs >= beforeMs && latest.size <= KEPT_MAX) return;
      latest.delete(name);
    }
  };
  // Never unsubscribed: the announcer lives as long as the process.
  bus.onConnectionChange((isConnected) => {
    if (!isConnected) {
      lostAtMs ??= clock.monotonicMs();
      return;
    }
    forgetDelivered();
    lostAtMs = undefined;
    for (const { event } of latest.values()) bus.announce(SUBJECT, codec.encode(event));
  });
  return {
    invalidated: (event) => {
      const name = `${event.accountId} ${event.keyId} ${event.reason}`;
      latest.delete(name);
      latest.set(name, { event, atMs: clock.monotonicMs() });
      forgetDelivered();
      bus.announce(SUBJECT, codec.encode(event));
    },
  };
}
