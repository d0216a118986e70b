/** What comes to a service's port: links of their own, gRPC, and neither. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { AdmitResponse__Output } from '@signalbox/contracts/quota';
import { silentLog } from '@signalbox/runtime/log';
import { systemClock } from '@signalbox/runtime/clock';
import { randomBytes } from '@signalbox/runtime/random';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { until } from '@signalbox/testkit/until';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { linkPath } from './channel.js';
import { createRpcClient } from './client.js';
import { bareFrame, batchFrame, FRAME, FrameReader, greeting, readGreeting } from './frames.js';
import { decodeBatch } from './link-codec.js';
import { ITEM, LinkItem } from './link-item.js';
import { createRpcServer, type RpcServer } from './server.js';

const QUOTA = linkPath('quota');
const KEEPALIVE = { timeMs: 10_000, timeoutMs: 5_000 };

let clock: FakeClock;
let server: RpcServer;
let port: number;
const open: (() => unknown)[] = [];

beforeEach(async () => {
  clock = createFakeClock();
  server = createRpcServer({ area: 'quota', handlers: { unary: { Admit: () => ({ limitSource: 'here' }) } }, host: '127.0.0.1', port: 0, clock, log: silentLog, instance: 'quota 0', keepalive: KEEPALIVE });
  port = await server.start();
});

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
  const stopped = server.stop(0);
  clock.advance(0);
  await stopped;
});

interface Raw {
  readonly socket: Socket;
  heard(): Buffer;
  isClosed(): boolean;
}

async function reach(): Promise<Raw> {
  const socket = connect(port, '127.0.0.1');
  open.push(() => socket.destroy());
  let heard = Buffer.alloc(0) as Buffer;
  let isClosed = false;
  socket.on('data', (bytes) => (heard = Buffer.concat([heard, bytes])));
  socket.on('error', () => undefined);
  socket.on('close', () => (isClosed = true));
  await once(socket, 'connect');
  return { socket, heard: () => heard, isClosed: () => isClosed };
}

/** Frames behind the server's first line. */
function framesOf(heard: Buffer): readonly { readonly kind: number; readonly body: Buffer }[] {
  const first = readGreeting(heard);
  const frames: { readonly kind: number; readonly body: Buffer }[] = [];
  if (typeof first === 'object') new FrameReader((kind, body) => frames.push({ kind, body })).push(heard.subarray(first.length));
  return frames;
}

const admit = (): Buffer => batchFrame([Object.assign(new LinkItem(1, ITEM.open), { method: 'Admit' })]);

/** Lets what was written arrive: another connection's answer comes behind it. */
async function settled(): Promise<void> {
  const { socket, heard } = await reach();
  socket.write(greeting(QUOTA));
  await until(() => heard().length > 0);
}

describe('a link of its own', () => {
  test('is greeted with the name of the process, however its line arrives, and what stood behind the line is answered', async () => {
    const { socket, heard } = await reach();
    socket.setNoDelay(true);
    for (const byte of Buffer.from(greeting(QUOTA))) {
      socket.write(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await until(() => typeof readGreeting(heard()) === 'object');
    expect(readGreeting(heard())).toMatchObject({ word: 'quota 0' });
    const other = await reach();
    other.socket.write(Buffer.concat([Buffer.from(greeting(QUOTA)), admit()]));
    await until(() => framesOf(other.heard()).length > 0);
    expect(decodeBatch(framesOf(other.heard())[0]?.body ?? Buffer.alloc(0))).toMatchObject([{ call: 1, kind: ITEM.end }]);
  });

  test('to another service is closed without a word', async () => {
    const { socket, heard, isClosed } = await reach();
    socket.write(greeting(linkPath('routing')));
    await until(isClosed);
    expect(heard()).toHaveLength(0);
  });

  test('with a batch that nobody can read is cut, and the others go on', async () => {
    const { socket, isClosed } = await reach();
    socket.write(Buffer.concat([Buffer.from(greeting(QUOTA)), Buffer.from([FRAME.batch, 0, 0, 2, 0x0a, 0x7f])]));
    await until(isClosed);
    await settled();
  });

  test('ignores frames of a newer kind', async () => {
    const { socket, heard } = await reach();
    socket.write(Buffer.concat([Buffer.from(greeting(QUOTA)), Buffer.from([99, 0, 0, 2, 1, 2]), admit()]));
    await until(() => framesOf(heard()).length > 0);
  });

  test('whose client says that it is done is answered first, then told the same, then closed', async () => {
    const { socket, heard, isClosed } = await reach();
    socket.write(Buffer.concat([Buffer.from(greeting(QUOTA)), admit(), bareFrame(FRAME.end)]));
    await until(isClosed);
    expect(framesOf(heard()).map(({ kind }) => kind)).toEqual([FRAME.batch, FRAME.end]);
  });

  test('that is silent is asked after ten seconds, kept as long as it answers, and closed five seconds after it does not', async () => {
    const { socket, heard, isClosed } = await reach();
    socket.write(greeting(QUOTA));
    await until(() => heard().length > 0);
    const kinds = (): readonly number[] => framesOf(heard()).map(({ kind }) => kind);
    for (const said of [[], [FRAME.ping, FRAME.pong]]) {
      expect(kinds()).toEqual(said);
      clock.advance(KEEPALIVE.timeMs);
      await until(() => kinds().length === said.length + 1);
      // The server has heard the pong once it answers the ping behind it.
      if (said.length === 0) socket.write(Buffer.concat([bareFrame(FRAME.pong), bareFrame(FRAME.ping)]));
      await until(() => said.length > 0 || kinds().length === 2);
    }
    clock.advance(KEEPALIVE.timeoutMs - 1);
    await settled();
    expect(isClosed()).toBe(false);
    clock.advance(1);
    await until(isClosed);
  });

  test('asks and is answered', async () => {
    const { socket, heard } = await reach();
    socket.write(Buffer.concat([Buffer.from(greeting(QUOTA)), bareFrame(FRAME.ping)]));
    await until(() => framesOf(heard()).length > 0);
    expect(framesOf(heard())[0]?.kind).toBe(FRAME.pong);
  });
});

test('a connection that says nothing is closed after ten seconds', async () => {
  const { isClosed } = await reach();
  await settled();
  clock.advance(9_999);
  await settled();
  expect(isClosed()).toBe(false);
  clock.advance(1);
  await until(isClosed);
});

test('a connection that says nothing does not keep a server from stopping', async () => {
  const { isClosed } = await reach();
  await server.stop(60_000);
  await until(isClosed);
});

test('a host of several addresses is served at each, at one port', async () => {
  const named = createRpcServer({ area: 'quota', handlers: { unary: {} }, host: 'localhost', port: 0, clock: systemClock, log: silentLog });
  open.push(() => named.stop(0));
  const at = await named.start();
  for (const { address } of await lookup('localhost', { all: true })) {
    const socket = connect(at, address);
    open.push(() => socket.destroy());
    await once(socket, 'connect');
  }
});

describe('gRPC', () => {
  const callThrough = async (address: number): Promise<string> => {
    const client = createRpcClient({ area: 'quota', addresses: [`127.0.0.1:${String(address)}`], door: 'unary', clock: systemClock, randomBytes, defaultDeadlineMs: 5_000 });
    open.push(() => client.close());
    return (await client.unary<object, AdmitResponse__Output>('Admit', {})).limitSource;
  };

  test('is served at the same port', async () => {
    expect(await callThrough(port)).toBe('here');
  });

  test('is served when its first bytes come one by one', async () => {
    const proxy = createServer((near) => {
      const far = connect({ port, host: '127.0.0.1', noDelay: true });
      let waiting: Promise<void> = Promise.resolve();
      near.on('data', (bytes) => {
        for (const byte of bytes) waiting = waiting.then(() => new Promise((resolve) => far.write(Buffer.from([byte]), () => setImmediate(resolve))));
      });
      far.pipe(near);
      for (const socket of [near, far]) socket.on('error', () => undefined).on('close', () => (near.destroy(), far.destroy()));
    });
    proxy.listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    open.push(() => proxy.close());
    expect(await callThrough((proxy.address() as AddressInfo).port)).toBe('here');
  });
});
