/** Neighbours that are down: how often the client tries to connect, and how a call changes that. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { AdmitResponse__Output } from '@signalbox/contracts/quota';
import type { Clock } from '@signalbox/kernel/clock';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { until } from '@signalbox/testkit/until';
import type { RpcClient } from './call.js';
import { createRpcClient } from './client.js';
import { createRpcServer, type RpcServer } from './server.js';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** The connect timeout of a link. A pending timer of this length shows that a connection is being tried. */
const CONNECT_TIMEOUT_MS = 5_000;
const LINKS = 2;
const STEP_MS = 250;

let clock: FakeClock;
let client: RpcClient;
let port: number;
let tried: number[];
let underWay: number;
let linksReady: () => number;
let server: RpcServer | undefined;

const serve = async (at: number): Promise<number> => {
  server = createRpcServer({ area: 'quota', handlers: { unary: { Admit: () => ({ limitSource: 'here' }) } }, host: '127.0.0.1', port: at, clock, log: silentLog });
  return server.start();
};

const leave = async (): Promise<void> => {
  await server?.stop(0);
  server = undefined;
};

/** Advances the clock, and lets each connection attempt finish. */
async function pass(ms: number, meanwhile: () => void = () => undefined): Promise<void> {
  for (const end = clock.monotonicMs() + ms; clock.monotonicMs() < end; ) {
    meanwhile();
    clock.advance(STEP_MS);
    await until(() => underWay === 0);
  }
}

const admit = (): Promise<string> =>
  client.unary<object, AdmitResponse__Output>('Admit', {}).then(
    ({ limitSource }) => limitSource,
    () => 'nobody',
  );

beforeEach(async () => {
  clock = createFakeClock();
  port = await serve(0);
  await leave();
  tried = [];
  underWay = 0;
  const watched: Clock = {
    nowMs: clock.nowMs,
    monotonicMs: clock.monotonicMs,
    setTimer: (delayMs, fire, options) => {
      const timer = clock.setTimer(delayMs, fire, options);
      if (delayMs !== CONNECT_TIMEOUT_MS) return timer;
      tried.push(clock.monotonicMs());
      underWay += 1;
      let isOver = false;
      const cancel = (): void => {
        if (!isOver) underWay -= 1;
        isOver = true;
        timer.cancel();
      };
      return { cancel };
    },
  };
  linksReady = () => 0;
  const watch = (_peer: string, read: () => { readonly linksReady: number }): void => {
    linksReady = () => read().linksReady;
  };
  client = createRpcClient({ area: 'quota', addresses: [`127.0.0.1:${String(port)}`], door: 'link', clock: watched, randomBytes, defaultDeadlineMs: 3_000, links: LINKS, observer: { watch } });
  client.isConnected();
});

afterEach(async () => {
  await client.close();
  await leave();
});

const gaps = (since: number): readonly number[] => tried.slice(1).flatMap((at, i) => (at < since ? [] : [at - (tried[i] ?? 0)]));

test('one that nobody asks is tried every quarter to half minute, by one of its links', async () => {
  await pass(300_000);
  const since = clock.monotonicMs();
  await pass(300_000);
  expect(Math.min(...gaps(since))).toBeGreaterThanOrEqual(15_000);
  expect(Math.max(...gaps(since))).toBeLessThanOrEqual(30_000 + STEP_MS);
});

test('a call of it is answered at once when it has come meanwhile, and its other links follow', async () => {
  await pass(300_000);
  while (clock.monotonicMs() - (tried.at(-1) ?? 0) < 4 * STEP_MS) await pass(STEP_MS);
  await serve(port);
  const before = clock.monotonicMs();
  expect(await admit()).toBe('here');
  expect(clock.monotonicMs()).toBe(before);
  await until(() => linksReady() === LINKS);
});

test('one that is asked is tried every one to two seconds, however much is asked', async () => {
  await pass(300_000);
  const answers: Promise<string>[] = [];
  const ask = (): void => void answers.push(admit(), admit(), admit());
  await pass(STEP_MS, ask);
  const since = clock.monotonicMs();
  await pass(60_000, ask);
  expect(Math.min(...gaps(since + 1))).toBeGreaterThanOrEqual(1_000);
  expect(Math.max(...gaps(since + 1))).toBeLessThanOrEqual(2_000 + STEP_MS);
  await pass(3_000);
  expect(new Set(await Promise.all(answers))).toEqual(new Set(['nobody']));
});

test('one that goes and comes back is reached by all of its links again', async () => {
  await serve(port);
  await pass(2_000);
  await until(() => linksReady() === LINKS);
  await leave();
  await until(() => linksReady() === 0 && underWay === 0);
  await pass(10_000);
  await serve(port);
  await pass(30_000);
  await until(() => linksReady() === LINKS);
});

/** Stands at `port` in front of a server; `heard` is the number of bytes received on each connection. Lines that `isSwallowed` go no further. */
async function proxy(isSwallowed: (first: Buffer) => boolean): Promise<{ readonly heard: number[]; readonly close: () => Promise<void> }> {
  const target = await serve(0);
  const heard: number[] = [];
  const sockets: Socket[] = [];
  const listener = createServer((near) => {
    const at = heard.push(0) - 1;
    const far = connect(target, '127.0.0.1');
    sockets.push(near, far);
    for (const [from, to] of [[near, far], [far, near]] as const) from.on('error', () => to.destroy()).on('close', () => to.destroy());
    far.on('data', (bytes) => near.write(bytes));
    near.on('data', (bytes) => {
      const isFirst = heard[at] === 0;
      heard[at] = (heard[at] ?? 0) + bytes.length;
      if (!isFirst || !isSwallowed(bytes)) far.write(bytes);
    });
  });
  listener.listen(port, '127.0.0.1');
  await once(listener, 'listening');
  const close = async (): Promise<void> => {
    const isClosed = once(listener, 'close');
    listener.close();
    for (const socket of sockets) socket.destroy();
    await isClosed;
  };
  return { heard, close };
}

test('one that came back takes one connection for each link, also when links are renewed: behind a balancer each connection is the turn of a replica', async () => {
  await pass(60_000);
  const { heard, close } = await proxy(() => false);
  await pass(60_000);
  await until(() => linksReady() === LINKS);
  const before = heard.length;
  while (heard.length < before + LINKS) {
    await pass(10_000);
    await until(() => linksReady() === LINKS);
  }
  expect(heard.filter((bytes) => bytes === 0)).toEqual([]);
  await client.close();
  await close();
});

test('one behind a proxy that takes the line of a link and stays silent is asked over gRPC two seconds later', async () => {
  await pass(60_000);
  const { heard, close } = await proxy((first) => first.toString('latin1').startsWith('SIGNALBOX-LINK'));
  expect(await Promise.all([admit(), until(() => heard.length === 1 && heard[0] !== 0).then(() => clock.advance(2_000))])).toEqual(['nobody', undefined]);
  await until(() => linksReady() > 0);
  expect(await admit()).toBe('here');
  await client.close();
  await close();
});
