import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { connect as connectSocket, createServer, type AddressInfo } from 'node:net';
import { connect, RetentionPolicy } from 'nats';
import { join } from 'node:path';
import { getEventListeners } from 'node:events';
import { afterAll, expect, jest, test } from '@jest/globals';
import { startNats } from '@signalbox/local-stores/nats';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog } from '@signalbox/runtime/log';
import { stopTestStores, testNatsUrl } from '@signalbox/testkit/stores';
import { oneTurn, until } from '@signalbox/testkit/until';
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
  await until(() => seen.includes('before'));
  const isBack = new Promise<void>((resolve) => bus.onConnectionChange((isConnected) => isConnected && resolve()));
  await first.stop();
  await expect(bus.publish('usage.v1.a', Buffer.from('lost'))).rejects.toThrow(/store_unavailable/);
  const second = await startNats({ storeDir, port: first.port });
  await isBack;
  await bus.publish('usage.v1.a', Buffer.from('after'));
  await until(() => seen.includes('after'));
  expect(seen).not.toContain('lost');
  await bus.close();
  await second.stop();
  rmSync(storeDir, { recursive: true, force: true });
}, 60_000);

test('says that a message is too large for the server, or for the stream', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-nats-small-'));
  writeFileSync(join(folder, 'small.conf'), 'max_payload: 2000\n');
  const server = await startNats({ configFile: join(folder, 'small.conf') });
  const bus = await connectJetStreamBus({ url: server.url, clock: systemClock, log: silentLog, name: 'small' });
  await bus.publish('usage.v1.a', Buffer.alloc(1_500));
  await expect(bus.publish('usage.v1.a', Buffer.alloc(2_001))).rejects.toMatchObject({ code: 'bad_message' });
  const administrator = await connect({ servers: server.url });
  await (await administrator.jetstreamManager()).streams.update('USAGE', { max_msg_size: 1_000 });
  await expect(bus.publish('usage.v1.a', Buffer.alloc(1_500))).rejects.toMatchObject({ code: 'bad_message' });
  await bus.publish('usage.v1.a', Buffer.alloc(900));
  await administrator.close();
  await bus.close();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

test('learns within a minute that the server takes larger messages than before', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-nats-raised-'));
  const [configFile, pidFile] = [join(folder, 'raised.conf'), join(folder, 'pid')];
  const limit = (bytes: number): void => writeFileSync(configFile, `max_payload: ${String(bytes)}\npid_file: '${pidFile}'\njetstream { store_dir: '${folder}' }\n`);
  limit(2_000);
  // A flag for JetStream would not survive the reload.
  const server = await startNats({ configFile, jetstream: false });
  let laterMs = 0;
  const bus = await connectJetStreamBus({ url: server.url, clock: { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + laterMs }, log: silentLog, name: 'raised' });
  let connections = 0;
  const isBack = new Promise<void>((resolve) => bus.onConnectionChange((isConnected) => isConnected && ((connections += 1), resolve())));
  const publish = (): Promise<void> => bus.publish('usage.v1.a', Buffer.alloc(2_001));
  await expect(publish()).rejects.toMatchObject({ code: 'bad_message' });
  limit(4_000);
  process.kill(Number(readFileSync(pidFile, 'utf8')), 'SIGHUP');
  const told = async (): Promise<number> => {
    const other = await connect({ servers: server.url });
    const bytes = other.info?.max_payload ?? 0;
    await other.close();
    return bytes;
  };
  while ((await told()) !== 4_000) await oneTurn();
  laterMs = 30_000;
  await expect(publish()).rejects.toMatchObject({ code: 'bad_message' });
  expect(connections).toBe(0);
  laterMs = 120_000;
  await expect(publish()).rejects.toMatchObject({ code: 'bad_message' });
  await isBack;
  await publish();
  await bus.close();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

test('comes back when a server that refused it for a while takes it again', async () => {
  const first = await startNats();
  const bus = await connectJetStreamBus({ url: first.url, clock: systemClock, log: silentLog, name: 'refused' });
  await first.stop();
  let refused = 0;
  const refusing = createServer((socket) => {
    socket.on('error', () => undefined).write('INFO {"server_id":"x","version":"2.10.0","proto":1,"max_payload":1048576,"headers":true}\r\n');
    socket.once('data', () => {
      refused += 1;
      socket.end("-ERR 'Authorization Violation'\r\n");
    });
  });
  await new Promise<void>((resolve) => refusing.listen(first.port, '127.0.0.1', resolve));
  await until(() => refused >= 3);
  await new Promise((resolve) => refusing.close(resolve));
  const second = await startNats({ port: first.port });
  while (!(await bus.publish('usage.v1.a', Buffer.from('after')).then(() => true, () => false))) await new Promise<void>((resolve) => setImmediate(resolve));
  await bus.close();
  await second.stop();
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
  await until(() => seen.includes('after'));
  await bus.close();
  await second.stop();
}, 60_000);

test.each(['stream', 'consumer'] as const)('goes on consuming where the %s was deleted while a batch was handled, on the same connection', async (what) => {
  const server = await startNats();
  const bus = await connectJetStreamBus({ url: server.url, clock: systemClock, log: silentLog, name: 'deleted' });
  const administrator = await connect({ servers: server.url });
  const manager = await administrator.jetstreamManager();
  const seen: string[] = [];
  await bus.consume({ durable: 'd', subject: 'usage.v1.>', batchMessagesMax: 10, batchWaitMs: 5 }, async (messages) => {
    // No request for messages is open now, which the server could end.
    if (seen.length === 0) await (what === 'stream' ? manager.streams.delete('USAGE') : manager.consumers.delete('USAGE', 'd'));
    seen.push(...messages.map((message) => Buffer.from(message.payload).toString()));
    return messages.map(() => 'done');
  });
  await bus.publish('usage.v1.a', Buffer.from('before'));
  await until(() => seen.includes('before'));
  while (!(await bus.publish('usage.v1.a', Buffer.from('after')).then(() => true, () => false))) await new Promise<void>((resolve) => setImmediate(resolve));
  await until(() => seen.includes('after'));
  await bus.close();
  await administrator.close();
  await server.stop();
}, 60_000);

test('delivers what is to come again a sixth time too: a store that is away makes no dead letters', async () => {
  const bus = await connectJetStreamBus({ url: await testNatsUrl(), clock: systemClock, log: silentLog, name: 'away' });
  const subject = `usage.v1.away-${process.pid}`;
  const dead: string[] = [];
  await bus.consume({ durable: `away-${process.pid}-dlq`, subject: `dlq.v1.${subject}`, batchMessagesMax: 10, batchWaitMs: 1 }, (messages) => {
    dead.push(...messages.map((message) => message.subject));
    return Promise.resolve(messages.map(() => 'done'));
  });
  const seen: number[] = [];
  await new Promise<void>((resolve, reject) => {
    bus
      .consume({ durable: `away-${process.pid}`, subject, batchMessagesMax: 10, batchWaitMs: 1 }, (messages) => {
        seen.push(...messages.map(({ deliveries }) => deliveries));
        if (seen.length >= 6) resolve();
        return Promise.resolve(messages.map(() => (seen.length < 6 ? 'again' : 'done')));
      })
      .then(() => bus.publish(subject, Buffer.from('x')))
      .catch(reject);
  });
  await bus.close();
  expect(seen).toHaveLength(6);
  // A server may tell 1 of one that comes again: BusMessage.
  for (const [index, deliveries] of seen.entries()) expect([1, index + 1]).toContain(deliveries);
  expect(dead).toEqual([]);
}, 60_000);

test('a consumer that waits for many batches leaves nothing behind of those that came', async () => {
  // Of its own: on a fast machine a thousand messages and more are sent, which the next who books all usage would have to work off.
  const server = await startNats();
  const bus = await connectJetStreamBus({ url: server.url, clock: systemClock, log: silentLog, name: 'waits' });
  const signals = new Set<EventTarget>();
  const add = EventTarget.prototype.addEventListener;
  const watched = jest.spyOn(EventTarget.prototype, 'addEventListener').mockImplementation(function (this: EventTarget, ...given: Parameters<typeof add>) {
    if (this instanceof AbortSignal) signals.add(this);
    add.apply(this, given);
  });
  let batches = 0;
  let left = 0;
  const subscription = await bus.consume({ durable: 'waits', subject: 'usage.v1.>', batchMessagesMax: 2, batchWaitMs: 40 }, (messages) => {
    batches += 1;
    left = Math.max(left, ...[...signals].map((signal) => getEventListeners(signal, 'abort').length));
    return Promise.resolve(messages.map(() => 'done'));
  });
  // One by one: a consumer that always finds a full batch waits for none.
  for (let sent = 1; sent <= 10; sent += 1) {
    await bus.publish('usage.v1.w', Buffer.from('x'));
    await until(() => batches === sent);
  }
  await subscription.stop();
  watched.mockRestore();
  await bus.close();
  await server.stop();
  expect(signals.size).toBeGreaterThan(0);
  expect(left).toBe(0);
}, 60_000);

/** A server behind a relay that hands over each line of the protocol as it passes. */
async function overheardNats(onLine: (words: readonly string[]) => void): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const nats = await startNats();
  const relay = createServer((client) => {
    const server = connectSocket(nats.port, '127.0.0.1');
    for (const [from, to] of [[client, server], [server, client]] as const) {
      let rest = '';
      from.on('data', (bytes) => {
        const lines = (rest + bytes.toString('latin1')).split('\r\n');
        rest = lines.pop() ?? '';
        for (const line of lines) onLine(line.split(' '));
        to.write(bytes);
      });
      from.on('error', () => to.destroy()).on('close', () => to.destroy());
    }
  });
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
  const { port } = relay.address() as AddressInfo;
  return {
    url: `nats://127.0.0.1:${String(port)}`,
    stop: async () => {
      await new Promise<void>((resolve) => relay.close(() => resolve()));
      await nats.stop();
    },
  };
}

const isRequest = ([verb, subject = '']: readonly string[]): boolean => verb === 'PUB' && subject.startsWith('$JS.API.CONSUMER.MSG.NEXT.');

test('each request for messages gives its inbox back, however few came', async () => {
  const open = new Map<string, string>();
  let most = 0;
  const nats = await overheardNats(([verb, first = '', second, third]) => {
    if (verb === 'SUB' && first.startsWith('_INBOX')) open.set(third ?? second ?? '', first);
    if (verb === 'UNSUB' && second === undefined) open.delete(first);
    most = Math.max(most, open.size);
  });
  const bus = await connectJetStreamBus({ url: nats.url, clock: systemClock, log: silentLog, name: 'inboxes' });
  let handled = 0;
  await bus.consume({ durable: 'r', subject: 'usage.v1.>', batchMessagesMax: 16, batchWaitMs: 1 }, (messages) => {
    handled += messages.length;
    return Promise.resolve(messages.map(() => 'done'));
  });
  for (let index = 1; index <= 25; index += 1) {
    await bus.publish('usage.v1.a', Buffer.from(String(index)));
    await until(() => handled >= index);
  }
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThanOrEqual(3);
  await bus.close();
  await nats.stop();
}, 60_000);

test('where messages keep coming each batch is asked for once', async () => {
  let requests = 0;
  const nats = await overheardNats((words) => {
    if (isRequest(words)) requests += 1;
  });
  const bus = await connectJetStreamBus({ url: nats.url, clock: systemClock, log: silentLog, name: 'asks' });
  const asked: number[] = [];
  const sizes: number[] = [];
  const subscription = await bus.consume({ durable: 'r', subject: 'usage.v1.>', batchMessagesMax: 16, batchWaitMs: 20 }, async (messages) => {
    asked.push(requests);
    sizes.push(messages.length);
    if (sizes.length < 6) for (let i = 0; i < 3; i += 1) await bus.publish('usage.v1.a', Buffer.from(String(i)));
    return messages.map(() => 'done');
  });
  await bus.publish('usage.v1.a', Buffer.from('first'));
  await until(() => sizes.length >= 6);
  expect(sizes).toEqual([1, 3, 3, 3, 3, 3]);
  expect(asked).toEqual([2, 3, 4, 5, 6, 7]);
  await subscription.stop();
  await bus.close();
  await nats.stop();
}, 60_000);

test('a consumer that stops while none come withdraws its request, and does not wait for its end', async () => {
  const seen: string[] = [];
  const nats = await overheardNats((words) => {
    if (isRequest(words)) seen.push('asked');
    if (words[0] === 'NATS/1.0') seen.push(`answered ${String(words[1])}`);
  });
  const bus = await connectJetStreamBus({ url: nats.url, clock: systemClock, log: silentLog, name: 'stops' });
  const booked: string[] = [];
  const consume = (durable: string) => bus.consume({ durable, subject: 'usage.v1.>', batchMessagesMax: 16, batchWaitMs: 1 }, (messages) => {
    booked.push(...messages.map(({ payload }) => Buffer.from(payload).toString()));
    return Promise.resolve(messages.map(() => 'done'));
  });
  const first = await consume('r');
  await until(() => seen.includes('asked'));
  await first.stop();
  expect(seen).toEqual(['asked']);
  // A request that was left behind would take it, for as long as a message waits for its acknowledgement.
  await bus.publish('usage.v1.a', Buffer.from('kept'));
  await (await consume('r')).stop();
  const second = await consume('r');
  await until(() => booked.length > 0);
  expect(booked).toEqual(['kept']);
  await second.stop();
  await bus.close();
  await nats.stop();
}, 60_000);

test('a stream of usage keeps nothing that was handled, and all that was not', async () => {
  const server = await startNats();
  const bus = await connectJetStreamBus({ url: server.url, clock: systemClock, log: silentLog, name: 'kept' });
  const seen: string[] = [];
  const subscription = await bus.consume({ durable: 'r', subject: 'usage.v1.>', batchMessagesMax: 10, batchWaitMs: 1 }, (messages) => {
    const texts = messages.map(({ payload }) => Buffer.from(payload).toString());
    seen.push(...texts);
    return Promise.resolve(texts.map((text) => (text === 'later' ? 'again' : 'done')));
  });
  for (const text of ['one', 'later', 'two']) await bus.publish('usage.v1.a', Buffer.from(text));
  await until(() => seen.includes('two'));
  await subscription.stop();
  await bus.close();
  const client = await connect({ servers: server.url });
  const { streams } = await client.jetstreamManager();
  // Acknowledgements are under way.
  while ((await streams.info('USAGE')).state.messages > 1) await oneTurn();
  expect(Buffer.from((await streams.getMessage('USAGE', { seq: 2 })).data).toString()).toBe('later');
  await client.close();
  await server.stop();
}, 60_000);

test('who would take what another takes is refused, and the server says why', async () => {
  const server = await startNats();
  const bus = await connectJetStreamBus({ url: server.url, clock: systemClock, log: silentLog, name: 'two' });
  const take = (durable: string) => bus.consume({ durable, subject: 'usage.v1.>', batchMessagesMax: 10, batchWaitMs: 1 }, (messages) => Promise.resolve(messages.map(() => 'done' as const)));
  const first = await take('billing');
  await expect(take('another')).rejects.toThrow(/^store_unavailable: The bus could not make the consumer another of its stream USAGE \(.*workqueue/);
  await first.stop();
  await (await take('billing')).stop();
  await bus.close();
  await server.stop();
}, 60_000);

test('a stream that an earlier version made is told of, since it keeps what was handled', async () => {
  const server = await startNats();
  const client = await connect({ servers: server.url });
  await (await client.jetstreamManager()).streams.add({ name: 'USAGE', subjects: ['usage.v1.>'], retention: RetentionPolicy.Limits });
  await client.close();
  const warnings: unknown[] = [];
  const log = { ...silentLog, warn: (text: string, fields?: object) => warnings.push({ text, ...fields }) };
  const bus = await connectJetStreamBus({ url: server.url, clock: systemClock, log, name: 'old' });
  await bus.publish('usage.v1.a', Buffer.from('x'));
  expect(warnings).toEqual([{ text: expect.stringContaining('made by an earlier version') as unknown, stream: 'USAGE' }]);
  await bus.close();
  await server.stop();
}, 60_000);

test('a server that is named as encrypted and is not is told no password', async () => {
  const said: string[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => said.push(bytes.toString('latin1')));
    socket.write('INFO {"server_id":"x","version":"2.9.10","proto":1,"max_payload":1048576}\r\n');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const connecting = connectJetStreamBus({ url: `tls://someone:hidden@127.0.0.1:${port}`, clock: systemClock, log: silentLog, name: 'plain' });
  await expect(connecting).rejects.toThrow(/^store_unavailable: NATS at NATS_URL/);
  expect(said.join('')).not.toContain('hidden');
  await new Promise((resolve) => server.close(resolve));
});

test('rejects with a fault when nobody answers', async () => {
  const server = await startNats();
  await server.stop();
  await expect(connectJetStreamBus({ url: server.url, clock: systemClock, log: silentLog, name: 'nobody' })).rejects.toThrow(`store_unavailable: NATS at NATS_URL (${new URL(server.url).host}) did not answer (CONNECTION_REFUSED).`);
});

test('says that a server has no JetStream, and names the setting and no password', async () => {
  const server = await startNats({ jetstream: false });
  await expect(connectJetStreamBus({ url: server.url.replace('//', '//someone:hidden@'), clock: systemClock, log: silentLog, name: 'plain' })).rejects.toThrow(`NATS at NATS_URL (${new URL(server.url).host}) gives us no JetStream`);
  await server.stop();
});

test.each(['hello', 'localhost:4222', 'redis://u:hidden@127.0.0.1:6379', 'nats://u:hidden@h:1,'])('%s is no address of NATS, and is not repeated', async (url) => {
  await expect(connectJetStreamBus({ url, clock: systemClock, log: silentLog, name: 'mistyped' })).rejects.toThrow(/^NATS_URL: must be nats:\/\/host:port, several with commas$/);
});
