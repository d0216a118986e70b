/** The HTTP/2 windows that client and server announce to each other. */
import { afterEach, expect, test } from '@jest/globals';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { once } from 'node:events';
import { connect, createServer, type Http2Session, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { WINDOW_BYTES } from './channel.js';
import { createRpcClient } from './client.js';
import { createRpcServer } from './server.js';

const open: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

const pinged = (session: Http2Session): Promise<void> => new Promise((resolve, reject) => session.ping((error) => (error === null ? resolve() : reject(error))));

/** Bytes that this end may send per stream and per connection. A client widens its windows once it has this end's settings, which arrive before the first ping. */
async function mayBeSent(session: Http2Session): Promise<readonly (number | undefined)[]> {
  await pinged(session);
  await pinged(session);
  return [session.remoteSettings.initialWindowSize, session.state.remoteWindowSize];
}

test('a server takes a megabyte from each link before it was read', async () => {
  const server = createRpcServer({ area: 'quota', handlers: { unary: {} }, host: '127.0.0.1', port: 0, clock: systemClock, log: silentLog });
  open.push(() => server.stop(0));
  const session = connect(`http://127.0.0.1:${String(await server.start())}`);
  open.push(() => session.destroy());
  await once(session, 'connect');
  expect(await mayBeSent(session)).toEqual([WINDOW_BYTES, WINDOW_BYTES]);
});

test('and so does a client', async () => {
  const server = createServer();
  open.push(() => server.close());
  // The first connection is that of a link that speaks frames.
  const connected = new Promise<ServerHttp2Session>((resolve) => server.on('session', (session) => session.once('remoteSettings', () => resolve(session))));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = createRpcClient({ area: 'quota', addresses: [`127.0.0.1:${String((server.address() as AddressInfo).port)}`], door: 'link', links: 1, clock: systemClock, randomBytes, defaultDeadlineMs: 10_000 });
  open.push(() => client.close());
  // The call is never answered.
  client.unary('Admit', {}).catch(() => undefined);
  const session = await connected;
  open.push(() => session.destroy());
  expect(await mayBeSent(session)).toEqual([WINDOW_BYTES, WINDOW_BYTES]);
});
