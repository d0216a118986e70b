/** Invalidations over the bus, subject `keys.v1.revoked`. */
import type { Bus } from '@signalbox/bus/bus';
import type { KeyInvalidated, KeyInvalidated__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import type { Clock } from '@signalbox/kernel/clock';
import type { Announcer, InvalidationReason } from '../domain/ports.js';

const SUBJECT = 'keys.v1.revoked';
/** Longer than the bus takes to notice that its connection is gone: what was announced since then may be lost. */
const DOUBTFUL_MS = 20_000;
/** The oldest give way; edge finds those out by itself within a minute. */
const KEPT_MAX = 10_000;

interface Announced {
  readonly event: { readonly keyId: string; readonly accountId: string; readonly reason: InvalidationReason };
  readonly atMs: number;
}

/** Announces again what a lost connection may have swallowed, as soon as there is one. */
export function createBusAnnouncer(bus: Bus, clock: Pick<Clock, 'monotonicMs'>): Announcer {
  const codec = messageCodec<KeyInvalidated, KeyInvalidated__Output>('signalbox.events.v1.KeyInvalidated');
  // The oldest first; those of a time without a connection stay until there is one.
  const latest = new Map<string, Announced>();
  let lostAtMs: number | undefined = bus.isConnected() ? undefined : clock.monotonicMs();

  const forgetDelivered = (): void => {
    const beforeMs = (lostAtMs ?? clock.monotonicMs()) - DOUBTFUL_MS;
    for (const [name, { atMs }] of latest) {
      if (atMs >= beforeMs && latest.size <= KEPT_MAX) return;
      latest.delete(name);
    }
  };
  // For as long as the process lives, as the announcer itself.
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
