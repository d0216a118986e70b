import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { oneTurn, until } from '@signalbox/testkit/until';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { closeServer, QUIET_MS } from './close-server.js';

const GRACE_MS = 30_000;
const REQUEST = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';

let clock: FakeClock;
let server: Server;
let isOpen: boolean;
/** Answers that are under way. */
let held: ServerResponse[];
let closed: boolean;

beforeEach(async () => {
  clock = createFakeClock();
  isOpen = true;
  held = [];
  closed = false;
  server = createServer((request, response) => {
    if (!isOpen) response.setHeader('connection', 'close');
    if (request.url === '/slow') {
      response.flushHeaders();
      held.push(response);
    } else response.end('ok');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(() => {
  server.close();
  server.closeAllConnections();
});

/** A client that got one answer and keeps its connection. */
async function connected(path = '/'): Promise<{ readonly socket: Socket; readonly told: () => string }> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  let told = '';
  socket.on('data', (bytes: Buffer) => (told += String(bytes))).on('error', (error) => (told += error.message));
  socket.write(REQUEST.replace('/', path));
  await until(() => told.includes('HTTP/1.1 200'));
  return { socket, told: () => told };
}
function close(): void {
  isOpen = false;
  void closeServer(server, GRACE_MS, clock).then(() => (closed = true));
}

test('a request on its way to an idle connection is answered, and its client told to use a new connection', async () => {
  const { socket, told } = await connected();
  close();
  await clock.advanceAsync(QUIET_MS - 1);
  expect(socket.readyState).toBe('open');
  socket.write(REQUEST);
  await until(() => closed && socket.closed);
  expect(told().match(/HTTP\/1.1 200/g)).toHaveLength(2);
  expect(told()).toMatch(/connection: close/i);
  expect(clock.pendingTimers()).toBe(0);
});

test('a request that arrived while the process stood still is answered, not reset as that of an idle connection', async () => {
  const { socket, told } = await connected();
  close();
  await clock.advanceAsync(QUIET_MS - 1);
  await oneTurn();
  // It is in the kernel when the timer fires, and not read yet.
  socket.write(REQUEST);
  clock.advance(1);
  await until(() => closed && socket.closed);
  expect(told().match(/HTTP\/1.1 200/g)).toHaveLength(2);
});

test('connections that the system accepted but the process has not seen yet are answered, and not reset', async () => {
  // Many, since a turn of the loop accepts one of them. Their requests are on the way when the close begins, in this turn.
  const told = Array.from({ length: 20 }, () => '');
  told.forEach((_, index) => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.on('data', (bytes: Buffer) => (told[index] += String(bytes))).on('error', (error) => (told[index] += error.message));
    socket.write(REQUEST);
  });
  await new Promise<void>((resolve) => process.nextTick(resolve));
  close();
  await until(() => told.every((text) => text !== ''));
  expect(told.filter((text) => !text.startsWith('HTTP/1.1 200'))).toEqual([]);
  expect(server.listening).toBe(false);
});

test('it closes after a second even if a new connection arrives in every turn', async () => {
  const { port } = server.address() as AddressInfo;
  let isComing = true;
  setImmediate(function come() {
    if (!isComing) return;
    connect(port, '127.0.0.1', function (this: Socket) {
      this.destroy();
    }).on('error', () => (isComing = false));
    setImmediate(come);
  });
  close();
  for (let turn = 0; turn < 20; turn += 1) await oneTurn();
  expect(server.listening).toBe(true);
  await clock.advanceAsync(QUIET_MS);
  await until(() => !isComing);
  expect(server.listening).toBe(false);
});

test('idle connections are closed after a second, those with a running answer once that has ended', async () => {
  const [idle, busy] = [await connected(), await connected('/slow')];
  close();
  await clock.advanceAsync(QUIET_MS);
  await until(() => idle.socket.readyState !== 'open');
  expect([busy.socket.readyState, closed]).toEqual(['open', false]);
  held[0]?.end('late');
  await until(() => busy.told().includes('late'));
  await until(() => {
    void clock.advanceAsync(100);
    return closed;
  });
  expect(clock.pendingTimers()).toBe(0);
});

test('an answer that does not end is cut when the grace period is over', async () => {
  const { told } = await connected('/slow');
  close();
  await clock.advanceAsync(GRACE_MS - 1);
  expect(closed).toBe(false);
  await clock.advanceAsync(1);
  await until(() => closed);
  expect(told()).not.toContain('0\r\n\r\n');
});

test('without connections it closes at once, and accepts none', async () => {
  const { port } = server.address() as AddressInfo;
  close();
  await until(() => closed);
  const [error] = (await once(connect(port, '127.0.0.1'), 'error')) as [NodeJS.ErrnoException];
  expect(error.code).toBe('ECONNREFUSED');
});

test('a server that never listened counts as closed', async () => {
  await closeServer(createServer(), GRACE_MS, clock);
});

test('after the grace period the remaining answers are stopped, and cut one second later', async () => {
  const [first, second] = [await connected('/slow'), await connected('/slow')];
  let stopped = 0;
  isOpen = false;
  void closeServer(server, GRACE_MS, clock, () => {
    stopped += 1;
    held[0]?.end('a last word');
  }).then(() => (closed = true));
  await clock.advanceAsync(GRACE_MS - 1);
  expect(stopped).toBe(0);
  await clock.advanceAsync(1);
  await until(() => first.told().includes('a last word'));
  expect([stopped, second.socket.readyState]).toEqual([1, 'open']);
  await clock.advanceAsync(QUIET_MS);
  await until(() => closed && second.socket.closed);
});
