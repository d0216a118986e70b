import { expect, test } from '@jest/globals';
import { createFakeClock } from '@signalbox/testkit/clock';
import { systemClock } from '@signalbox/runtime/clock';
import { busSuite } from './bus-suite.js';
import { createMemoryBus } from './memory.js';
import { subjectMatches } from './subjects.js';

busSuite('memory', () => Promise.resolve(createMemoryBus({ clock: systemClock })));

test('gives up on a message whose handler fails five times and keeps it as a dead letter', async () => {
  const clock = createFakeClock();
  const bus = createMemoryBus({ clock });
  let deliveries = 0;
  await bus.consume({ durable: 'd', subject: 'usage.v1.>', batchMessagesMax: 10, batchWaitMs: 1 }, (messages) => {
    deliveries += messages.length;
    return Promise.reject(new Error('a bug'));
  });
  await bus.publish('usage.v1.x', Buffer.from('never'));
  for (let round = 0; round < 10; round += 1) await clock.advanceAsync(10_000);
  expect(deliveries).toBe(5);
  const dead: string[] = [];
  await bus.consume({ durable: 'dlq', subject: 'dlq.v1.>', batchMessagesMax: 10, batchWaitMs: 1 }, (messages) => {
    dead.push(...messages.map((message) => message.subject));
    return Promise.resolve(messages.map(() => 'done'));
  });
  await clock.advanceAsync(10);
  expect(dead).toEqual(['dlq.v1.usage.v1.x']);
  expect(bus.pending()).toBe(0);
});

test('delivers what is to come again for as long as that takes: a store that is away makes no dead letters', async () => {
  const clock = createFakeClock();
  const bus = createMemoryBus({ clock });
  const seen: number[] = [];
  const subscription = await bus.consume({ durable: 'd', subject: 'usage.v1.>', batchMessagesMax: 10, batchWaitMs: 1 }, (messages) => {
    seen.push(...messages.map(({ deliveries }) => deliveries));
    return Promise.resolve(messages.map(({ deliveries }) => (deliveries < 20 ? 'again' : 'done')));
  });
  const dead: string[] = [];
  await bus.consume({ durable: 'dlq', subject: 'dlq.v1.>', batchMessagesMax: 10, batchWaitMs: 1 }, (messages) => {
    dead.push(...messages.map(({ subject }) => subject));
    return Promise.resolve(messages.map(() => 'done'));
  });
  await bus.publish('usage.v1.x', Buffer.from('late'));
  await clock.advanceAsync(10);
  // Between two deliveries it waits too: it counts, and takes its part of the bound.
  expect([await subscription.lag?.(), bus.pending()]).toEqual([1, 1]);
  for (let round = 0; round < 30; round += 1) await clock.advanceAsync(10_000);
  expect(seen).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
  expect(dead).toEqual([]);
  expect(bus.pending()).toBe(0);
});

test('handles a lone message at once, and gathers the next batch from its beginning on', async () => {
  const clock = createFakeClock();
  const bus = createMemoryBus({ clock });
  const batches: string[][] = [];
  await bus.consume({ durable: 'd', subject: 'usage.v1.>', batchMessagesMax: 10, batchWaitMs: 400 }, (messages) => {
    batches.push(messages.map((message) => Buffer.from(message.payload).toString()));
    return Promise.resolve(messages.map(() => 'done'));
  });
  await bus.publish('usage.v1.x', Buffer.from('lone'));
  await clock.advanceAsync(0);
  expect(batches).toEqual([['lone']]);
  await bus.publish('usage.v1.x', Buffer.from('second'));
  await clock.advanceAsync(300);
  await bus.publish('usage.v1.x', Buffer.from('third'));
  await clock.advanceAsync(99);
  expect(batches).toEqual([['lone']]);
  await clock.advanceAsync(1);
  expect(batches).toEqual([['lone'], ['second', 'third']]);
});

test('refuses to publish while disconnected and delivers what it has once connected', async () => {
  const clock = createFakeClock();
  const bus = createMemoryBus({ clock });
  const changes: boolean[] = [];
  bus.onConnectionChange((isConnected) => changes.push(isConnected));
  await bus.publish('usage.v1.x', Buffer.from('kept'));
  bus.setConnected(false);
  await expect(bus.publish('usage.v1.x', Buffer.from('lost'))).rejects.toThrow(/store_unavailable/);
  const seen: string[] = [];
  await bus.consume({ durable: 'd', subject: 'usage.v1.>', batchMessagesMax: 10, batchWaitMs: 1 }, (messages) => {
    seen.push(...messages.map((message) => Buffer.from(message.payload).toString()));
    return Promise.resolve(messages.map(() => 'done'));
  });
  await clock.advanceAsync(100);
  expect(seen).toEqual([]);
  bus.setConnected(true);
  await clock.advanceAsync(100);
  expect(seen).toEqual(['kept']);
  expect(changes).toEqual([false, true]);
});

test.each([
  ['usage.v1.>', 'usage.v1.a.b', true],
  ['usage.v1.>', 'usage.v1', false],
  ['usage.v1.*', 'usage.v1.a.b', false],
  ['usage.*.a', 'usage.v1.a', true],
  ['usage.v1.a', 'usage.v1.b', false],
])('pattern %s against %s is %s', (pattern, subject, expected) => {
  expect(subjectMatches(pattern, subject)).toBe(expected);
});
