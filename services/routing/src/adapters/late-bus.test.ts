import { expect, test } from '@jest/globals';
import type { Bus, Subscription } from '@signalbox/bus/bus';
import { createMemoryBus } from '@signalbox/bus/memory';
import { createFakeClock } from '@signalbox/testkit/clock';
import { until } from '@signalbox/testkit/until';
import { createLateBus, type LateBusOptions } from './late-bus.js';

const RETRY_MS = 2_000;

/** A bus that answers from attempt number `answersFrom` on, and refuses the second listener `refusals` times. */
function rig({ answersFrom = 1, refusals = 0 }: { readonly answersFrom?: number; readonly refusals?: number } = {}) {
  const clock = createFakeClock();
  const seen = { tries: 0, connections: 0, closed: 0, refused: 0, failures: 0, listening: 0, heard: [] as string[] };
  const connect = (): Promise<Bus> => {
    seen.tries += 1;
    if (seen.tries < answersFrom) return Promise.reject(new Error('nobody there'));
    seen.connections += 1;
    const bus = createMemoryBus({ clock });
    return Promise.resolve({ ...bus, close: () => {
      seen.closed += 1;
      return bus.close();
    } });
  };
  const listenAs = (name: string) => async (bus: Bus): Promise<Subscription> => {
    const subscription = await bus.listen('told', () => void seen.heard.push(name));
    seen.listening += 1;
    return subscription;
  };
  const listeners: LateBusOptions['listeners'] = [listenAs('first'), (bus) => {
    if (seen.refused === refusals) return listenAs('second')(bus);
    seen.refused += 1;
    return Promise.reject(new Error('not allowed'));
  }];
  const late = createLateBus({ connect, listeners, clock, onFailure: () => (seen.failures += 1) });
  return { late, clock, seen };
}

test('where listening is refused there stays one connection, and nothing is heard twice', async () => {
  const { late, clock, seen } = rig({ refusals: 2 });
  late.start();
  await until(() => seen.failures === 1);
  clock.advance(RETRY_MS);
  await until(() => seen.failures === 2);
  clock.advance(RETRY_MS);
  await until(() => seen.listening === 2);
  late.current()?.announce('told', new Uint8Array());
  await until(() => seen.heard.includes('second'));
  expect(seen.heard).toEqual(['first', 'second']);
  expect(seen).toMatchObject({ connections: 1, closed: 0, failures: 2 });
  await late.stop();
  expect(seen.closed).toBe(1);
});

test('a bus that does not answer is tried again until it does', async () => {
  const { late, clock, seen } = rig({ answersFrom: 3 });
  late.start();
  for (const failures of [1, 2]) {
    await until(() => seen.failures === failures);
    expect(late.current()).toBeUndefined();
    clock.advance(RETRY_MS);
  }
  await until(() => late.current() !== undefined);
  await late.stop();
  expect(seen).toMatchObject({ tries: 3, connections: 1, closed: 1 });
});

test('a connection that comes after the stop is closed, and none is tried any more', async () => {
  const { late, clock, seen } = rig();
  late.start();
  await late.stop();
  await until(() => seen.closed === 1);
  expect(late.current()).toBeUndefined();

  const failing = rig({ answersFrom: 9 });
  failing.late.start();
  await until(() => failing.seen.failures === 1);
  await failing.late.stop();
  failing.clock.advance(RETRY_MS);
  clock.advance(RETRY_MS);
  expect([failing.seen.tries, seen.tries]).toEqual([1, 1]);
});
