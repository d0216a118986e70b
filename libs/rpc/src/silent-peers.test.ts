/** Calls with a limit on their peer's silence, over real links with a fake clock. */
import { afterEach, expect, test } from '@jest/globals';
import type { AdmitResponse__Output } from '@signalbox/contracts/quota';
import { Fault } from '@signalbox/kernel/fault';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { until } from '@signalbox/testkit/until';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import type { RpcClient } from './call.js';
import { createRpcClient } from './client.js';
import { createRpcServer } from './server.js';

const SILENCE_MS = 150;
const DEADLINE_MS = 5_000;

const open: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

interface Peer {
  readonly port: number;
  /** Number of calls received so far. */
  held(): number;
  /** Answers the held calls, and all later ones at once. */
  release(): void;
  /** Nothing is forwarded until `thaw`; connections stay open. */
  freeze(): void;
  /** Forwards at once what arrived meanwhile, as from the socket of a process that was stopped. */
  thaw(): void;
  /** Forwards what is sent to the peer, and nothing that it sends. */
  mute(): void;
  /** Bytes that the peer sent. */
  said(): number;
}

/** A quota server that holds its answers, behind a proxy that can be frozen. */
async function serve(name: string): Promise<Peer> {
  let held = 0;
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  const answer = async (): Promise<object> => {
    held += 1;
    await released;
    return { limitSource: name };
  };
  const server = createRpcServer({ area: 'quota', handlers: { unary: { Admit: answer, Release: () => ({}) } }, host: '127.0.0.1', port: 0, clock: systemClock, log: silentLog, instance: name });
  open.push(() => server.stop(0));
  const target = await server.start();
  const sockets = new Set<Socket>();
  let kept: Map<Socket, Buffer[]> | undefined;
  let isMute = false;
  let said = 0;
  const wire = createServer((near) => {
    const far = connect(target, '127.0.0.1');
    for (const [from, to] of [[near, far], [far, near]] as const) {
      sockets.add(from);
      from.on('data', (bytes) => {
        if (isMute && from === far) return;
        if (kept !== undefined) {
          kept.set(to, [...(kept.get(to) ?? []), bytes]);
          return;
        }
        if (from === far) said += bytes.length;
        to.write(bytes);
      });
      from.on('error', () => to.destroy());
      from.on('close', () => to.destroy());
    }
  });
  wire.listen(0, '127.0.0.1');
  await once(wire, 'listening');
  open.push(async () => {
    for (const socket of sockets) socket.destroy();
    wire.close();
    await once(wire, 'close');
  });
  const thaw = (): void => {
    for (const [to, bytes] of kept ?? []) to.write(Buffer.concat(bytes));
    kept = undefined;
  };
  return { port: (wire.address() as AddressInfo).port, held: () => held, release, freeze: () => (kept = new Map()), thaw, mute: () => (isMute = true), said: () => said };
}

async function dial(peers: readonly { readonly port: number }[], links = 1): Promise<{ readonly client: RpcClient; readonly clock: FakeClock }> {
  const clock = createFakeClock();
  const observed: (() => { readonly linksReady: number })[] = [];
  const client = createRpcClient({ area: 'quota', addresses: peers.map(({ port }) => `127.0.0.1:${String(port)}`), door: 'link', clock, randomBytes, defaultDeadlineMs: DEADLINE_MS, links, observer: { watch: (_peer, read) => void observed.push(read) } });
  open.push(() => client.close());
  client.isConnected();
  await until(() => observed[0]?.().linksReady === links * peers.length);
  return { client, clock };
}

const admit = (client: RpcClient): Promise<string> =>
  client.unary<object, AdmitResponse__Output>('Admit', {}, { deadlineMs: DEADLINE_MS, silenceMs: SILENCE_MS }).then(
    ({ limitSource }) => limitSource,
    (error: unknown) => (error instanceof Error ? error.message : 'unknown'),
  );

/** Waits for turns of the event loop. On loopback, written bytes can be read one turn later. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve));
}

/** Whether it has settled after some turns of the event loop. */
const isPending = async (call: Promise<string>): Promise<boolean> => {
  const none = Symbol('none');
  await turns(10);
  return (await Promise.race([call, Promise.resolve(none)])) === none;
};

test('a peer that has much to do is waited for: it is asked whether it lives, and says so', async () => {
  const peer = await serve('busy');
  const { client, clock } = await dial([peer]);
  const call = admit(client);
  await until(() => peer.held() === 1);
  for (let slice = 0; slice < 40; slice += 1) {
    const before = peer.said();
    await clock.advanceAsync(25);
    await until(() => peer.said() > before);
    await clock.settle();
  }
  expect(clock.monotonicMs()).toBeGreaterThan(6 * SILENCE_MS);
  expect(await isPending(call)).toBe(true);
  peer.release();
  expect(await call).toBe('busy');
  expect(peer.held()).toBe(1);
});

test('not beyond its deadline', async () => {
  const peer = await serve('busy');
  const { client, clock } = await dial([peer]);
  const call = admit(client);
  await until(() => peer.held() === 1);
  clock.advance(DEADLINE_MS);
  expect(await call).toMatch(/^deadline_exceeded/);
});

test('one that is silent is waited for twice as long where there is no other, and is not asked twice', async () => {
  const peer = await serve('frozen');
  const { client, clock } = await dial([peer], 2);
  const call = admit(client);
  await until(() => peer.held() === 1);
  peer.mute();
  // Neither of the two links to it delivers anything.
  await clock.advanceAsync(2 * SILENCE_MS - 1);
  expect(await isPending(call)).toBe(true);
  await clock.advanceAsync(1);
  expect(await call).toBe('deadline_exceeded: the peer is silent');
  expect(peer.held()).toBe(1);
});

test('where there is another, that is asked after once as long, and first from then on', async () => {
  const [frozen, other] = [await serve('frozen'), await serve('other')];
  const { client, clock } = await dial([other, frozen]);
  frozen.freeze();
  other.release();
  const calls = [admit(client), admit(client)];
  await clock.advanceAsync(SILENCE_MS - 1);
  await clock.advanceAsync(1);
  expect(await Promise.all(calls)).toEqual(['other', 'other']);
  // None of these calls waits.
  for (let i = 0; i < 4; i += 1) expect(await admit(client)).toBe('other');
  expect(clock.monotonicMs()).toBe(SILENCE_MS);
});

test.each(['link', 'unary'] as const)('what was given up while a peer was frozen is not begun there when it wakes, and what was not is, through the %s door', async (door) => {
  const peer = await serve('frozen');
  const client = createRpcClient({ area: 'quota', addresses: [`127.0.0.1:${String(peer.port)}`], door, clock: systemClock, randomBytes, defaultDeadlineMs: DEADLINE_MS });
  open.push(() => client.close());
  await client.unary('Release', {});
  peer.freeze();
  const givingUp = new AbortController();
  const ask = (options?: object): Promise<string> => client.unary('Admit', {}, options).then(() => 'answered', (error: unknown) => (error instanceof Fault ? error.code : 'unknown'));
  const calls = [ask(), ask({ signal: givingUp.signal })];
  await turns(50);
  givingUp.abort();
  await turns(50);
  peer.thaw();
  peer.release();
  expect(await Promise.all(calls)).toEqual(['answered', 'cancelled']);
  await turns(50);
  expect(peer.held()).toBe(1);
});

test.each([1, 300])('of calls that move from one to another, %i of which lay at the first, each is run once, also when that wakes', async (many) => {
  const [frozen, other] = [await serve('frozen'), await serve('other')];
  const { client, clock } = await dial([other, frozen]);
  other.release();
  frozen.freeze();
  const calls = Array.from({ length: 2 * many }, () => admit(client));
  await clock.advanceAsync(SILENCE_MS);
  expect(new Set(await Promise.all(calls))).toEqual(new Set(['other']));
  await turns(50);
  frozen.thaw();
  await turns(50);
  expect([other.held(), frozen.held()]).toEqual([2 * many, 0]);
});

test('a link that does not come is waited for as long as a word', async () => {
  const { client, clock } = await dial([]);
  const call = admit(client);
  await clock.advanceAsync(SILENCE_MS - 1);
  expect(await isPending(call)).toBe(true);
  await clock.advanceAsync(1);
  expect(await call).toBe('peer_unavailable: no link to the peer');
});
