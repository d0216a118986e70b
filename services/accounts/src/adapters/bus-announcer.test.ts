import { expect, test } from '@jest/globals';
import { createMemoryBus } from '@signalbox/bus/memory';
import type { KeyInvalidated, KeyInvalidated__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import { createFakeClock } from '@signalbox/testkit/clock';
import { setImmediate } from 'node:timers/promises';
import { createBusAnnouncer } from './bus-announcer.js';

const codec = messageCodec<KeyInvalidated, KeyInvalidated__Output>('signalbox.events.v1.KeyInvalidated');
const event = (keyId: string) => ({ keyId, accountId: 'acct_1', reason: 'revoked' as const });

async function world() {
  const clock = createFakeClock();
  const bus = createMemoryBus({ clock });
  const told: string[] = [];
  await bus.listen('keys.v1.revoked', ({ payload }) => void told.push(codec.decode(payload).keyId));
  /** Messages received since the last call. */
  const heard = async (): Promise<string[]> => {
    await setImmediate();
    return told.splice(0);
  };
  return { clock, bus, heard, announcer: createBusAnnouncer(bus, clock) };
}

test('what was revoked without a connection is announced as soon as there is one, once', async () => {
  const { clock, bus, heard, announcer } = await world();
  bus.setConnected(false);
  for (const keyId of ['key_1', 'key_2', 'key_1']) announcer.invalidated(event(keyId));
  clock.advance(3_600_000);
  expect(await heard()).toEqual([]);
  bus.setConnected(true);
  expect(await heard()).toEqual(['key_2', 'key_1']);
});

test('so is what was announced shortly before the connection was seen to be lost, and nothing older', async () => {
  const { clock, bus, heard, announcer } = await world();
  announcer.invalidated(event('key_old'));
  clock.advance(30_000);
  announcer.invalidated(event('key_new'));
  clock.advance(10_000);
  expect(await heard()).toEqual(['key_old', 'key_new']);
  bus.setConnected(false);
  clock.advance(60_000);
  bus.setConnected(true);
  expect(await heard()).toEqual(['key_new']);
});
