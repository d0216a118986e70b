import { describe, expect, test } from '@jest/globals';
import { Fault } from '@signalbox/kernel/fault';
import type { CallOptions, RpcClient } from '@signalbox/rpc/call';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { createWorkerClients } from './worker-clients.js';

/** A worker that is away until `backAtMs`; the monotonic milliseconds at which it was asked. */
function worker(clock: FakeClock, backAtMs: number, peer: object | undefined): { readonly client: RpcClient; readonly askedAtMs: number[] } {
  const askedAtMs: number[] = [];
  const client: RpcClient = {
    unary: () => {
      askedAtMs.push(clock.monotonicMs());
      return clock.monotonicMs() < backAtMs ? Promise.reject(new Fault('peer_unavailable', 'away')) : Promise.resolve({} as never);
    },
    stream: () => ({ cancel: () => undefined, pause: () => undefined, resume: () => undefined, peer: () => peer }),
    isConnected: () => true,
    close: () => Promise.resolve(),
  };
  return { client, askedAtMs };
}

/** `wasSent`: the attempt was sent to the worker. */
async function tell(backInMs: number, forMs: number, wasSent = true): Promise<{ readonly askedAfterMs: readonly number[]; readonly heardAfterMs: number | undefined }> {
  const clock = createFakeClock();
  const startMs = clock.monotonicMs();
  const { client, askedAtMs } = worker(clock, startMs + backInMs, wasSent ? {} : undefined);
  let heardAfterMs: number | undefined;
  const workers = createWorkerClients(new Map([['a', client]]), clock, 1_000);
  workers.dispatch('a', { requestId: 'req_1', attempt: 1 }, { onEvent: () => undefined, onEnd: () => undefined });
  const telling = workers.tellOutcome('a', 'req_1', 1, 'DISCARDED');
  void telling.then(() => (heardAfterMs = clock.monotonicMs() - startMs));
  await clock.advanceAsync(forMs);
  return { askedAfterMs: askedAtMs.map((atMs) => atMs - startMs), heardAfterMs };
}

test.each([0, 300, 1_000, 4_000, 20_000, 55_000])('a worker that is away for %i ms hears an outcome soon after its return: within a quarter of that time, or of a second', async (backInMs) => {
  const { heardAfterMs } = await tell(backInMs, 120_000);
  expect(heardAfterMs).toBeGreaterThanOrEqual(backInMs);
  expect(heardAfterMs).toBeLessThanOrEqual(Math.max(backInMs * 1.25, backInMs + 250));
});

test.each([90_000, 400_000, 880_000])('a worker that is away for %i ms, as one moved to another host, hears an outcome before it concludes by itself', async (backInMs) => {
  const { heardAfterMs } = await tell(backInMs, 1_000_000);
  expect(heardAfterMs).toBeGreaterThanOrEqual(backInMs);
  expect(heardAfterMs).toBeLessThanOrEqual(backInMs + 15_000);
});

test.each([
  ['after a quarter of an hour a worker is given up', true, 900_000, 90],
  ['after a minute it is given up for an attempt that was never sent', false, 60_000, 30],
])('%s, and no caller waits for it any more', async (_, wasSent, limitMs, callsMax) => {
  const { askedAfterMs, heardAfterMs } = await tell(Infinity, 1_200_000, wasSent);
  expect(heardAfterMs).toBe(askedAfterMs.at(-1));
  expect(heardAfterMs).toBeGreaterThanOrEqual(limitMs);
  expect(heardAfterMs).toBeLessThanOrEqual(limitMs * 1.25);
  expect(askedAfterMs.length).toBeLessThan(callsMax);
});

test('outcomes of attempts that never reached a worker take no room from others', async () => {
  const clock = createFakeClock();
  const backAtMs = clock.monotonicMs() + 200;
  const { client } = worker(clock, backAtMs, {});
  const workers = createWorkerClients(new Map([['a', client]]), clock, 1_000);
  for (let n = 0; n < 10_000; n += 1) void workers.tellOutcome('a', `unsent_${String(n)}`, 1, 'DISCARDED');
  await clock.advanceAsync(0);
  workers.dispatch('a', { requestId: 'sent', attempt: 1 }, { onEvent: () => undefined, onEnd: () => undefined });
  let heardAtMs = 0;
  void workers.tellOutcome('a', 'sent', 1, 'DISCARDED').then(() => (heardAtMs = clock.monotonicMs()));
  await clock.advanceAsync(300);
  expect(heardAtMs).toBeGreaterThanOrEqual(backAtMs);
});

describe('an edge that stops', () => {
  /** One outcome that could not be told for ten seconds, with the next retry seconds away; the worker is back in `backInMs`. */
  async function untold(backInMs: number, wasSent = true) {
    const clock = createFakeClock();
    const { client, askedAtMs } = worker(clock, clock.monotonicMs() + 10_000 + backInMs, wasSent ? {} : undefined);
    const workers = createWorkerClients(new Map([['a', client]]), clock, 1_000);
    workers.dispatch('a', { requestId: 'req_1', attempt: 1 }, { onEvent: () => undefined, onEnd: () => undefined });
    void workers.tellOutcome('a', 'req_1', 1, 'DISCARDED');
    await clock.advanceAsync(10_000);
    askedAtMs.length = 0;
    const stoppedAtMs = clock.monotonicMs();
    let settled: { readonly afterMs: number; readonly left: number } | undefined;
    void workers.settle(5_000).then((left) => (settled = { afterMs: clock.monotonicMs() - stoppedAtMs, left }));
    return { clock, askedAtMs, settledBy: async (ms: number) => (await clock.advanceAsync(ms), settled) };
  }

  test('sends waiting outcomes at once, and waits only for them', async () => {
    const { settledBy } = await untold(0);
    expect(await settledBy(0)).toEqual({ afterMs: 0, left: 0 });
  });

  test('keeps sending them often while it drains', async () => {
    const { settledBy } = await untold(3_100);
    expect(await settledBy(3_000)).toBeUndefined();
    expect(await settledBy(250)).toEqual({ afterMs: 3_250, left: 0 });
  });

  test('leaves untold outcomes to the workers at the end of its time, and reports their number', async () => {
    const { settledBy, clock, askedAtMs } = await untold(60_000);
    expect(await settledBy(5_000)).toEqual({ afterMs: 5_000, left: 1 });
    await clock.advanceAsync(250);
    const asked = askedAtMs.length;
    await clock.advanceAsync(60_000);
    expect(askedAtMs.length).toBe(asked);
  });

  test('does not wait for attempts that never reached a worker, or without outcomes to tell', async () => {
    const { settledBy } = await untold(60_000, false);
    expect(await settledBy(0)).toEqual({ afterMs: 0, left: 0 });
    await expect(createWorkerClients(new Map(), createFakeClock(), 1_000).settle(5_000)).resolves.toBe(0);
  });
});

test('a stop of a stream is asked once of its replica, and a failure of that is ignored', async () => {
  const clock = createFakeClock();
  const peer = {};
  const asked: unknown[] = [];
  const client: RpcClient = {
    ...worker(clock, 0, peer).client,
    unary: (method: string, message: object, options?: CallOptions) => {
      asked.push([method, message, options?.peer === peer]);
      return Promise.reject(new Fault('unknown_method', 'a worker of before'));
    },
  };
  const workers = createWorkerClients(new Map([['a', client]]), clock, 1_000);
  workers.dispatch('a', { requestId: 'req_1', attempt: 2 }, { onEvent: () => undefined, onEnd: () => undefined });
  workers.stop('a', 'req_1', 2);
  workers.stop('b', 'req_1', 2);
  await clock.advanceAsync(60_000);
  expect(asked).toEqual([['Stop', { requestId: 'req_1', attempt: 2 }, true]]);
});

test('for a provider without a worker there is nothing to wait for', async () => {
  const clock = createFakeClock();
  await expect(createWorkerClients(new Map(), clock, 1_000).tellOutcome('a', 'req_1', 1, 'DISCARDED')).resolves.toBe(false);
});

describe('two replicas of a worker', () => {
  /** Serves each dispatch from the next of its replicas. Records what was told, with the replica. */
  function replicas(clock: FakeClock): { readonly client: RpcClient; readonly told: { readonly method: string; readonly message: object; readonly peer: object | undefined }[]; readonly peers: readonly object[]; awayUntilMs: number } {
    const peers = [{ name: 'a' }, { name: 'b' }];
    let next = 0;
    const made = {
      peers,
      told: [] as { method: string; message: object; peer: object | undefined }[],
      awayUntilMs: 0,
      client: {
        unary: (method: string, message: object, options: CallOptions | undefined) => {
          if (clock.monotonicMs() < made.awayUntilMs) return Promise.reject(new Fault('peer_unavailable', 'away'));
          made.told.push({ method, message, peer: options?.peer });
          return Promise.resolve({} as never);
        },
        stream: (..._args: Parameters<RpcClient['stream']>) => {
          const peer = peers[next++ % peers.length];
          return { cancel: () => undefined, pause: () => undefined, resume: () => undefined, peer: () => peer };
        },
        isConnected: () => true,
        close: () => Promise.resolve(),
      } satisfies RpcClient,
    };
    return made;
  }
  const listener = { onEvent: () => undefined, onEnd: () => undefined };

  test('the outcome of an attempt is told to the replica that ran it, however late', async () => {
    const clock = createFakeClock();
    const made = replicas(clock);
    const workers = createWorkerClients(new Map([['p', made.client]]), clock, 1_000);
    for (const attempt of [1, 2, 3]) workers.dispatch('p', { requestId: 'r', attempt }, listener);
    workers.tend('p', 'r', 2);
    await workers.tellOutcome('p', 'r', 3, 'DELIVERED');
    await workers.tellOutcome('p', 'r', 2, 'SUPERSEDED');
    made.awayUntilMs = clock.monotonicMs() + 20_000;
    const late = workers.tellOutcome('p', 'r', 1, 'SUPERSEDED');
    await clock.advanceAsync(30_000);
    await late;
    expect(made.told).toMatchObject([
      { method: 'Tend', message: { attempt: 2 }, peer: { name: 'b' } },
      { method: 'Outcome', message: { attempt: 3 }, peer: { name: 'a' } },
      { method: 'Outcome', message: { attempt: 2 }, peer: { name: 'b' } },
      { method: 'Outcome', message: { attempt: 1 }, peer: { name: 'a' } },
    ]);
  });

  test('a repeated attempt goes to another replica than the lost one', async () => {
    const clock = createFakeClock();
    const made = replicas(clock);
    const besides: unknown[] = [];
    const client: RpcClient = { ...made.client, stream: (...args) => (besides.push(args[3]?.besides), made.client.stream(...args)) };
    const workers = createWorkerClients(new Map([['p', client]]), clock, 1_000);
    const lost = workers.dispatch('p', { requestId: 'r', attempt: 1 }, listener)?.peer?.();
    workers.dispatch('p', { requestId: 'r', attempt: 2 }, listener, lost);
    expect(besides).toEqual([undefined, made.peers[0]]);
  });

  test('the outcome of a dispatch that ends while it is being sent is told as usual', async () => {
    const clock = createFakeClock();
    const made = replicas(clock);
    const ended: string[] = [];
    const client: RpcClient = {
      ...made.client,
      stream: (_method, _request, { onEnd }) => {
        onEnd(new Fault('overloaded', 'full'));
        return { cancel: () => undefined, pause: () => undefined, resume: () => undefined, peer: () => undefined };
      },
    };
    const workers = createWorkerClients(new Map([['p', client]]), clock, 1_000);
    workers.dispatch('p', { requestId: 'r', attempt: 1 }, { ...listener, onEnd: (fault) => ended.push(fault?.code ?? '') });
    await workers.tellOutcome('p', 'r', 1, 'DISCARDED');
    expect(ended).toEqual(['overloaded']);
    expect(made.told).toMatchObject([{ method: 'Outcome', peer: undefined }]);
  });
});
