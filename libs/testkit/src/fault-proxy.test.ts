import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createFaultProxy, type FaultProxy } from './fault-proxy.js';
import { oneTurn, until } from './until.js';

let server: Server;
let port = 0;
const arrived: string[] = [];
const proxies: FaultProxy[] = [];

beforeAll(async () => {
  server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      arrived.push(data.toString());
      socket.write(data);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  port = address !== null && typeof address === 'object' ? address.port : 0;
});
afterAll(async () => {
  await Promise.all(proxies.map((proxy) => proxy.close()));
  server.close();
});

/** Unlike `once`, does not take the reset for a failure. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => void socket.once('close', () => resolve()));
}

async function open(): Promise<{ proxy: FaultProxy; socket: ReturnType<typeof connect> }> {
  const proxy = await createFaultProxy({ host: '127.0.0.1', port });
  proxies.push(proxy);
  const socket = connect(proxy.port, proxy.host);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return { proxy, socket };
}

test('passes bytes both ways', async () => {
  const { socket } = await open();
  socket.write('ping');
  const [data] = (await once(socket, 'data')) as [Buffer];
  expect(data.toString()).toBe('ping');
  socket.destroy();
});

test('cuts open connections and refuses new ones until healed', async () => {
  const { proxy, socket } = await open();
  proxy.cut();
  await closed(socket);
  const refused = connect(proxy.port, proxy.host);
  refused.on('error', () => undefined);
  await closed(refused);
  proxy.heal();
  const again = connect(proxy.port, proxy.host);
  again.write('back');
  const [data] = (await once(again, 'data')) as [Buffer];
  expect(data.toString()).toBe('back');
  again.destroy();
});

test('holds bytes while frozen and lets them go in order', async () => {
  const { proxy, socket } = await open();
  proxy.freeze();
  socket.write('one');
  await oneTurn();
  expect(arrived).not.toContain('one');
  proxy.heal();
  const [data] = (await once(socket, 'data')) as [Buffer];
  expect(data.toString()).toBe('one');
  socket.destroy();
});

test('lets a request arrive and loses its reply', async () => {
  const { proxy, socket } = await open();
  proxy.dropReplies();
  let replies = 0;
  socket.on('data', () => (replies += 1));
  socket.write('unanswered');
  await until(() => arrived.includes('unanswered'));
  expect(replies).toBe(0);
  socket.destroy();
});
