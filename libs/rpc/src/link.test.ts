import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { AdmitRequest__Output, AdmitResponse__Output } from '@signalbox/contracts/quota';
import type { DispatchEvent__Output } from '@signalbox/contracts/worker';
import { Fault } from '@signalbox/kernel/fault';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import type { ServiceArea } from '@signalbox/contracts/load';
import { replicaOf, type CallOptions, type Handlers, type RpcClient } from './call.js';
import { createRpcClient } from './client.js';
import { createRpcServer, type RpcServer } from './server.js';

const open: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

async function serve(area: ServiceArea, handlers: Handlers, port = 0, instance?: string): Promise<{ readonly server: RpcServer; readonly port: number }> {
  const server = createRpcServer({ area, handlers, host: '127.0.0.1', port, clock: systemClock, log: silentLog, ...(instance === undefined ? {} : { instance }) });
  open.push(() => server.stop(0));
  return { server, port: await server.start() };
}

/** How links reach their servers in the test that runs. */
let way: 'frames' | 'HTTP/2' = 'frames';

/** Port of a proxy that lets only HTTP/2 through, as a service mesh may. */
function throughHttp2(port: number): number {
  const sockets = new Set<Socket>();
  const proxy = createServer((near) => {
    sockets.add(near);
    near.on('error', () => undefined);
    near.once('data', (bytes) => {
      if (!bytes.toString('latin1').startsWith('PRI ')) {
        near.destroy();
        return;
      }
      const far = connect(port, '127.0.0.1');
      sockets.add(far);
      far.on('error', () => near.destroy());
      far.on('close', () => near.destroy());
      near.on('close', () => far.destroy());
      far.write(bytes);
      near.pipe(far);
      far.pipe(near);
    });
  });
  proxy.listen(0);
  open.push(async () => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
    await once(proxy, 'close');
  });
  return (proxy.address() as AddressInfo).port;
}

function dial(area: ServiceArea, targets: readonly number[], extra: { readonly links?: number; readonly keepalive?: { readonly timeMs: number; readonly timeoutMs: number } } = {}): RpcClient {
  const ports = way === 'frames' ? targets : targets.map(throughHttp2);
  const client = createRpcClient({ area, addresses: ports.map((port) => `127.0.0.1:${String(port)}`), door: 'link', clock: systemClock, randomBytes, defaultDeadlineMs: 10_000, ...extra });
  open.push(() => client.close());
  return client;
}

const who = (client: RpcClient): Promise<string> => client.unary<object, AdmitResponse__Output>('Admit', {}).then((answer) => answer.limitSource);

/** A gate that a test opens. */
function gate(): { readonly passed: Promise<void>; readonly pass: () => void } {
  let pass: () => void = () => undefined;
  const passed = new Promise<void>((resolve) => (pass = resolve));
  return { passed, pass };
}

interface Proxy {
  readonly port: number;
  /** Stops forwarding; connections stay open. */
  freeze(): void;
  /** Breaks all connections; new ones work. */
  cut(): void;
}

/** A load balancer if `target` is a function, which chooses the port for each connection. */
async function proxyTo(target: number | (() => number)): Promise<Proxy> {
  const sockets = new Set<Socket>();
  let isFrozen = false;
  const proxy = createServer((near) => {
    const far = connect(typeof target === 'number' ? target : target(), '127.0.0.1');
    for (const [from, to] of [[near, far], [far, near]] as const) {
      sockets.add(from);
      from.on('data', (bytes) => {
        if (!isFrozen) to.write(bytes);
      });
      from.on('error', () => to.destroy());
      from.on('close', () => to.destroy());
    }
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  open.push(async () => {
    cut();
    proxy.close();
    await once(proxy, 'close');
  });
  return { port: (proxy.address() as AddressInfo).port, freeze: () => (isFrozen = true), cut };
}

/** A worker that answers with its name, and adds that name to `told` when it receives an outcome. */
const serveWorker = (name: string, told: string[], port = 0, instance?: string): ReturnType<typeof serve> =>
  serve('worker', {
    unary: { Outcome: () => (told.push(name), {}) },
    stream: {
      Dispatch: (_request, _call, emit) => {
        emit.write({ body: { choices: Buffer.from(name) } });
        return Promise.resolve();
      },
    },
  }, port, instance);

const dispatch = (client: RpcClient, options?: CallOptions): Promise<{ readonly name: string; readonly peer: object | undefined; readonly hasOthers: boolean | undefined }> =>
  new Promise((resolve, reject) => {
    let name = '';
    const call = client.stream<object, DispatchEvent__Output>('Dispatch', {}, { onMessage: (event) => (name = String(event.body?.choices)), onEnd: (fault) => (fault === undefined ? resolve({ name, peer: call.peer?.(), hasOthers: call.hasOthers?.() }) : reject(fault)) }, options);
  });

describe.each(['frames', 'HTTP/2'] as const)('the Link over %s', (asked) => {
  beforeEach(() => {
    way = asked;
  });

  test('spreads calls over every address', async () => {
    const a = await serve('quota', { unary: { Admit: () => ({ limitSource: 'a' }) } });
    const b = await serve('quota', { unary: { Admit: () => ({ limitSource: 'b' }) } });
    const client = dial('quota', [a.port, b.port]);
    const seen = new Set<string>();
    while (seen.size < 2) seen.add(await who(client));
    expect([...seen].sort()).toEqual(['a', 'b']);
  });

  test('a call about another goes to the replica that served that, also when its links are new, and to no other while it is away', async () => {
    const told: string[] = [];
    const a = await serveWorker('a', told);
    const b = await serveWorker('b', told);
    const client = dial('worker', [a.port, b.port]);
    const asked: string[] = [];
    while (asked.length < 20 || new Set(asked).size < 2) {
      const { name, peer } = await dispatch(client);
      asked.push(name);
      await client.unary('Outcome', {}, { peer });
    }
    expect(told).toEqual(asked);

    let served = await dispatch(client);
    while (served.name !== 'a') served = await dispatch(client);
    await a.server.stop(0);
    told.length = 0;
    const tell = (): Promise<string> => client.unary('Outcome', {}, { peer: served.peer }).then(() => 'told', ({ code }: Fault) => code);
    let outcome = await tell();
    // Through a proxy the loss is learned later.
    while (way === 'HTTP/2' && outcome === 'link_lost') outcome = await tell();
    expect(outcome).toBe('peer_unavailable');
    await serveWorker('a again', told, a.port);
    while (told.length === 0) await client.unary('Outcome', {}, { peer: served.peer }).catch(() => undefined);
    expect(told).toEqual(['a again']);
  });

  test('a call about another finds its replica behind a balancer when every link has become one to others', async () => {
    const told: string[] = [];
    const ports = await Promise.all(['a', 'b', 'c'].map(async (name) => (await serveWorker(name, told, 0, name)).port));
    const [a = 0, b = 0, c = 0] = ports;
    let connections = 0;
    let targets = [a];
    const balancer = await proxyTo(() => targets[connections++ % targets.length] ?? 0);
    const client = dial('worker', [balancer.port]);
    const served = await dispatch(client);
    expect(served.name).toBe('a');
    // Both of its links.
    while (connections < 2) await dispatch(client);

    targets = [b, c, b, c, b, a];
    connections = 0;
    balancer.cut();
    for (const name of ['b', 'c']) while ((await dispatch(client).catch(() => undefined))?.name !== name);
    while (told.length < 3) await client.unary('Outcome', {}, { peer: served.peer }).catch(() => undefined);
    expect(told).toEqual(['a', 'a', 'a']);
    // The search runs once: later calls use the link that it found.
    expect(connections).toBeLessThanOrEqual(targets.length);
    // Calls without a `peer` do not use that link.
    for (let n = 0; n < 20; n += 1) expect((await dispatch(client)).name).not.toBe('a');
  });

  test('a replica that is gone is sought no longer than a call waits for it', async () => {
    const told: string[] = [];
    const a = await serveWorker('a', told, 0, 'a');
    const b = await serveWorker('b', told, 0, 'b');
    let target = a.port;
    let connections = 0;
    const balancer = await proxyTo(() => (connections += 1, target));
    const client = dial('worker', [balancer.port]);
    const { peer } = await dispatch(client);
    target = b.port;
    balancer.cut();
    while ((await dispatch(client).catch(() => undefined))?.name !== 'b');
    connections = 0;
    await expect(client.unary('Outcome', {}, { peer })).rejects.toMatchObject({ code: 'peer_unavailable' });
    expect(told).toEqual([]);
    expect(connections).toBeGreaterThan(1);
    // The call waits two seconds at most, and the pauses double from 50 ms.
    expect(connections).toBeLessThan(12);
  });

  test('a call that is for another replica than the one that was lost goes there, whichever links still seem open', async () => {
    const a = await serveWorker('a', [], 0, 'a');
    const b = await serveWorker('b', [], 0, 'b');
    const client = dial('worker', [a.port, b.port]);
    let lost = await dispatch(client);
    while (lost.name !== 'a') lost = await dispatch(client);
    while ((await dispatch(client)).name !== 'b');
    // Calls of one turn share a link, and the next turn uses the next link.
    for (let n = 0; n < 8; n += 1) {
      const [, ...others] = await Promise.all([dispatch(client), dispatch(client, { besides: lost.peer }), dispatch(client, { besides: lost.peer })]);
      expect(others.map(({ name }) => name)).toEqual(['b', 'b']);
    }
  });

  test('who called a replica knows whether there are others, by the links that are open', async () => {
    const a = await serveWorker('a', [], 0, 'a');
    const b = await serveWorker('b', [], 0, 'b');
    // Both links lead to the same process.
    expect(await dispatch(dial('worker', [a.port]))).toMatchObject({ name: 'a', hasOthers: false });
    const both = dial('worker', [a.port, b.port]);
    while (!(await dispatch(both)).hasOthers);
    await b.server.stop(0);
    while ((await dispatch(both).catch(() => undefined))?.hasOthers !== false);
  });

  test('all links to one replica tell the same of it, and those to another do not', async () => {
    const a = await serveWorker('a', [], 0, 'a');
    const b = await serveWorker('b', [], 0, 'b');
    const client = dial('worker', [a.port, b.port]);
    const seen = new Map<object, { readonly name: string; readonly replica: object }>();
    // Two links to each.
    while (seen.size < 4) {
      const { name, peer } = await dispatch(client);
      if (peer !== undefined) seen.set(peer, { name, replica: replicaOf(peer) });
    }
    const replicas = (of: string): ReadonlySet<object> => new Set([...seen.values()].filter(({ name }) => name === of).map(({ replica }) => replica));
    expect([replicas('a').size, replicas('b').size, new Set([...replicas('a'), ...replicas('b')]).size]).toEqual([1, 1, 2]);
  });

  test('a replica that was lost and is back serves such a call too, over a connection of after its loss; without one the call is refused unsent', async () => {
    const served: string[] = [];
    const a = await serveWorker('a', served, 0, 'a');
    const proxy = await proxyTo(a.port);
    const client = dial('worker', [proxy.port]);
    const { peer } = await dispatch(client);
    await expect(dispatch(client, { besides: peer })).rejects.toMatchObject({ code: 'peer_unavailable' });
    const again = dispatch(client, { besides: peer });
    proxy.cut();
    expect((await again).name).toBe('a');
  });

  test('a call about another goes to a new version of a replica that did not tell its name, and to an old one of one that did', async () => {
    const told: string[] = [];
    const first = await serveWorker('old', told);
    const client = dial('worker', [first.port]);
    const { peer: ofOld } = await dispatch(client);
    await first.server.stop(0);
    const second = await serveWorker('new', told, first.port, 'a');
    while (told.length === 0) await client.unary('Outcome', {}, { peer: ofOld }).catch(() => undefined);
    const { peer: ofNew } = await dispatch(client);
    await second.server.stop(0);
    await serveWorker('old again', told, first.port);
    while (told.length === 1) await client.unary('Outcome', {}, { peer: ofNew }).catch(() => undefined);
    expect(told).toEqual(['new', 'old again']);
  });

  test('a server that stops hears what a caller tells it of the last stream', async () => {
    const told: string[] = [];
    const finish = gate();
    const leaving = await serve('worker', {
      unary: { Outcome: () => (told.push('leaving'), {}) },
      stream: {
        Dispatch: async (_request, _call, emit) => {
          emit.write({ body: { choices: Buffer.from('leaving') } });
          await finish.passed;
        },
      },
    }, 0, 'a');
    const client = dial('worker', [leaving.port]);
    const begun = gate();
    const ended = gate();
    const call = client.stream<object, DispatchEvent__Output>('Dispatch', {}, { onMessage: begun.pass, onEnd: ended.pass });
    await begun.passed;
    const stopped = leaving.server.stop(15_000);
    // Until new calls are refused.
    while ((await client.unary('Outcome', {}, { deadlineMs: 100 }).catch(() => undefined)) !== undefined);
    told.length = 0;
    finish.pass();
    await ended.passed;
    await client.unary('Outcome', {}, { peer: call.peer?.() });
    await stopped;
    expect(told).toEqual(['leaving']);
  });

  test('refuses calls as peer_unavailable when nobody listens', async () => {
    const { server, port } = await serve('quota', { unary: { Admit: () => ({}) } });
    await server.stop(0);
    const client = dial('quota', [port]);
    await expect(client.unary('Admit', {}, { deadlineMs: 5_000 })).rejects.toMatchObject({ code: 'peer_unavailable' });
    expect(client.isConnected()).toBe(false);
  });

  test('comes back by itself after a restart of the server', async () => {
    const first = await serve('quota', { unary: { Admit: () => ({ limitSource: 'old' }) } });
    const client = dial('quota', [first.port]);
    expect(await who(client)).toBe('old');
    await first.server.stop(0);
    await serve('quota', { unary: { Admit: () => ({ limitSource: 'new' }) } }, first.port);
    let answer = '';
    while (answer !== 'new') answer = await who(client).catch((fault: unknown) => (fault instanceof Fault ? fault.code : 'not a fault'));
    expect(answer).toBe('new');
  });

  test('lets open calls finish on GOAWAY while new ones go elsewhere', async () => {
    const started = gate();
    const finish = gate();
    const leaving = await serve('quota', {
      unary: {
        Admit: async (request: AdmitRequest__Output) => {
          if (request.requestId !== 'slow') return { limitSource: 'leaving' };
          started.pass();
          await finish.passed;
          return { limitSource: 'leaving' };
        },
      },
    });
    const client = dial('quota', [leaving.port], { links: 1 });
    const slow = client.unary<object, AdmitResponse__Output>('Admit', { requestId: 'slow' });
    await started.passed;
    const stopped = leaving.server.stop(15_000);
    await serve('quota', { unary: { Admit: () => ({ limitSource: 'staying' }) } }, leaving.port);
    while ((await who(client)) !== 'staying');
    finish.pass();
    expect((await slow).limitSource).toBe('leaving');
    await stopped;
    expect(await who(client)).toBe('staying');
  });

  test('a stream that its client does not read blocks no other call', async () => {
    const { port } = await serve('worker', {
      unary: { Outcome: () => ({}) },
      stream: {
        Dispatch: async (_request, _call, emit) => {
          for (;;) if (!emit.write({ chunk: { choices: Buffer.alloc(20_000) } })) await emit.drained();
        },
      },
    });
    const client = dial('worker', [port], { links: 1 });
    const first = gate();
    const ended = gate();
    const call = client.stream<object, DispatchEvent__Output>('Dispatch', {}, { onMessage: first.pass, onEnd: ended.pass });
    call.pause();
    await first.passed;
    for (let i = 0; i < 20; i += 1) await expect(client.unary('Outcome', {})).resolves.toEqual({});
    call.cancel();
    await ended.passed;
  });

  test('throws overloaded at a handler that writes far beyond its credit', async () => {
    const { port } = await serve('worker', {
      unary: {},
      stream: {
        Dispatch: (_request, _call, emit) => {
          for (;;) emit.write({ chunk: { choices: Buffer.alloc(20_000) } });
        },
      },
    });
    const fault = await new Promise<Fault | undefined>((resolve) => dial('worker', [port]).stream('Dispatch', {}, { onMessage: () => undefined, onEnd: resolve }));
    expect(fault?.code).toBe('overloaded');
  });

  test('notices a frozen connection: its calls fail with a typed fault long before their deadline', async () => {
    const { port } = await serve('quota', { unary: { Admit: () => ({ limitSource: 'x' }) } });
    const proxy = await proxyTo(port);
    const client = dial('quota', [proxy.port], { keepalive: { timeMs: 100, timeoutMs: 100 } });
    expect(await who(client)).toBe('x');
    proxy.freeze();
    await expect(client.unary('Admit', {}, { deadlineMs: 15_000 })).rejects.toMatchObject({ code: 'link_lost' });
  });

  test('meets the deadline over a frozen connection', async () => {
    const { port } = await serve('quota', { unary: { Admit: () => ({ limitSource: 'x' }) } });
    const proxy = await proxyTo(port);
    const client = dial('quota', [proxy.port]);
    expect(await who(client)).toBe('x');
    proxy.freeze();
    await expect(client.unary('Admit', {}, { deadlineMs: 100 })).rejects.toMatchObject({ code: 'deadline_exceeded' });
  });
});
