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
import { createServer, type Socket } from 'node:net';

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

/** Accepts connections and sends nothing; `heard` is the number of bytes received on each. */
async function listen(): Promise<{ readonly heard: number[]; readonly close: () => Promise<void> }> {
  const heard: number[] = [];
  const sockets: Socket[] = [];
  const listener = createServer((socket) => {
    const at = heard.push(0) - 1;
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => (heard[at] = (heard[at] ?? 0) + bytes.length));
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

test('whether one that nobody asks has come is found out without a link, and then one is made', async () => {
  await pass(300_000);
  const { heard, close } = await listen();
  await until(() => {
    if (heard.length === 0) clock.advance(STEP_MS);
    return heard.length > 0;
  });
  await until(() => heard.some((bytes) => bytes > 0));
  expect(heard[0]).toBe(0);
  await client.close();
  await close();
});
