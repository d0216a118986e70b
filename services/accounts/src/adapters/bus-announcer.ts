/** Invalidations over the bus, subject `keys.v1.revoked`. */
import type { Bus } from '@signalbox/bus/bus';
import type { KeyInvalidated, KeyInvalidated__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import type { Announcer } from '../domain/ports.js';

const SUBJECT = 'keys.v1.revoked';

export function createBusAnnouncer(bus: Bus): Announcer {
  const codec = messageCodec<KeyInvalidated, KeyInvalidated__Output>('signalbox.events.v1.KeyInvalidated');
  return { invalidated: (event) => bus.announce(SUBJECT, codec.encode(event)) };
}
