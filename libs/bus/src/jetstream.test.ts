import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { startNats } from '@signalbox/local-stores/nats';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog } from '@signalbox/runtime/log';
import { stopTestStores, testNatsUrl } from '@signalbox/testkit/stores';
import { busSuite } from './bus-suite.js';
import { connectJetStreamBus } from './jetstream.js';

afterAll(stopTestStores);
busSuite('jetstream', async () => connectJetStreamBus({ url: await testNatsUrl(), clock: systemClock, log: silentLog, name: 'suite' }));

test('keeps messages over a restart of the server and goes on consuming by itself', async () => {
  const storeDir = mkdtempSync(join(tmpdir(), 'signalbox-nats-restart-'));
  const first = await startNats({ storeDir });
  const bus = await connectJetStreamBus({ url: first.url, clock: systemClock, log: silentLog, name: 'restart' });
  const seen: string[] = [];
  await bus.consume({ durable: 'r', subject: 'usage.v1.>', batchMessagesMax: 10, batchWaitMs: 5 }, (messages) => {
    seen.push(...messages.map((message) => Buffer.from(message.payload).toString()));
    return Promise.resolve(messages.map(() => 'done'));
  });
  await bus.publish('usage.v1.a', Buffer.from('before'));
  while (!seen.includes('before')) await new Promise<void>((resolve) => setImmediate(resolve));
  const isBack = new Promise<void>((resolve) => bus.onConnectionChange((isConnected) => isConnected && resolve()));
  await first.stop();
  await expect(bus.publish('usage.v1.a', Buffer.from('lost'))).rejects.toThrow(/store_unavailable/);
  const second = await startNats({ storeDir, port: first.port });
  await isBack;
  await bus.publish('usage.v1.a', Buffer.from('after'));
  while (!seen.includes('after')) await new Promise<void>((resolve) => setImmediate(resolve));
  expect(seen).not.toContain('lost');
  await bus.close();
  await second.stop();
  rmSync(storeDir, { recursive: true, force: true });
}, 60_000);

test('makes the streams and the consumer again on a server that lost its state', async () => {
  const first = await startNats();
  const bus = await connectJetStreamBus({ url: first.url, clock: systemClock, log: silentLog, name: 'wiped' });
  const seen: string[] = [];
  await bus.consume({ durable: 'r', subject: 'usage.v1.>', batchMessagesMax: 10, batchWaitMs: 1 }, (messages) => {
    seen.push(...messages.map((message) => Buffer.from(message.payload).toString()));
    return Promise.resolve(messages.map(() => 'done'));
  });
  await bus.publish('usage.v1.a', Buffer.from('before'));
  const isBack = new Promise<void>((resolve) => bus.onConnectionChange((isConnected) => isConnected && resolve()));
  await first.stop();
  const second = await startNats({ port: first.port });
  await isBack;
  // The first is refused while nobody made the stream; its writer sends it again.
  while (!(await bus.publish('usage.v1.a', Buffer.from('after')).then(() => true, () => false))) await new Promise<void>((resolve) => setImmediate(resolve));
  while (!seen.includes('after')) await new Promise<void>((resolve) => setImmediate(resolve));
  await bus.close();
  await second.stop();
}, 60_000);

test('rejects with a fault when nobody answers', async () => {
  const server = await startNats();
  await server.stop();
  await expect(connectJetStreamBus({ url: server.url, clock: systemClock, log: silentLog, name: 'nobody' })).rejects.toThrow(/store_unavailable/);
});
