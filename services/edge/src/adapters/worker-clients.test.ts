import { describe, expect, test } from '@jest/globals';
import { Fault } from '@signalbox/kernel/fault';
import type { CallOptions, RpcClient } from '@signalbox/rpc/call';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { createWorkerClients } from './worker-clients.js';

/** A worker that is away until `backAtMs`; the monotonic milliseconds at which it was asked. */
function worker(clock: FakeClock, backAtMs: number): { readonly client: RpcClient; readonly askedAtMs: number[] } {
  const askedAtMs: number[] = [];
  const client: RpcClient = {
    unary: () => {
      askedAtMs.push(clock.monotonicMs());
      return clock.monotonicMs() < backAtMs ? Promise.reject(new Fault('peer_unavailable', 'away')) : Promise.resolve({} as never);
    },
    stream: () => ({ cancel: () => undefined, pause: () => undefined, resume: () => undefined }),
    isConnected: () => true,
    close: () => Promise.resolve(),
  };
  return { client, askedAtMs };
}

async function tell(backInMs: number, forMs: number): Promise<{ readonly askedAfterMs: readonly number[]; readonly heardAfterMs: number | undefined }> {
  const clock = createFakeClock();
  const startMs = clock.monotonicMs();
  const { client, askedAtMs } = worker(clock, startMs + backInMs);
  let heardAfterMs: number | undefined;
  const telling = createWorkerClients(new Map([['a', client]]), clock, 1_000).tellOutcome('a', 'acct_1', 'req_1', 1, 'DISCARDED');
  void telling.then(() => (heardAfterMs = clock.monotonicMs() - startMs));
  await clock.advanceAsync(forMs);
  return { askedAfterMs: askedAtMs.map((atMs) => atMs - startMs), heardAfterMs };
}

test.each([0, 300, 1_000, 4_000, 20_000, 55_000])('a worker that is away for %i ms hears an outcome soon after: within a quarter of that time, or of a second', async (backInMs) => {
  const { heardAfterMs } = await tell(backInMs, 120_000);
  expect(heardAfterMs).toBeGreaterThanOrEqual(backInMs);
  expect(heardAfterMs).toBeLessThanOrEqual(Math.max(backInMs * 1.25, backInMs + 250));
});

test('after a minute a worker is given up, and nobody waits for it any more', async () => {
  const { askedAfterMs, heardAfterMs } = await tell(Infinity, 300_000);
  expect(heardAfterMs).toBe(askedAfterMs.at(-1));
  expect(heardAfterMs).toBeGreaterThanOrEqual(60_000);
  expect(askedAfterMs.length).toBeLessThan(30);
});

test('where no worker serves a provider there is nobody to wait for', async () => {
  const clock = createFakeClock();
  await expect(createWorkerClients(new Map(), clock, 1_000).tellOutcome('a', 'acct_1', 'req_1', 1, 'DISCARDED')).resolves.toBeUndefined();
});

describe('two replicas of a worker', () => {
  /** Serves each dispatch from the next of its replicas; what it was told, with the replica that heard it. */
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
        stream: () => {
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

  test('what becomes of an attempt is told to the one that has it, however late it hears', async () => {
    const clock = createFakeClock();
    const made = replicas(clock);
    const workers = createWorkerClients(new Map([['p', made.client]]), clock, 1_000);
    for (const attempt of [1, 2, 3]) workers.dispatch('p', { requestId: 'r', attempt }, listener);
    workers.tend('p', 'r', 2);
    await workers.tellOutcome('p', 'acct_1', 'r', 3, 'DELIVERED');
    await workers.tellOutcome('p', 'acct_1', 'r', 2, 'SUPERSEDED');
    made.awayUntilMs = clock.monotonicMs() + 20_000;
    const late = workers.tellOutcome('p', 'acct_1', 'r', 1, 'SUPERSEDED');
    await clock.advanceAsync(30_000);
    await late;
    expect(made.told).toMatchObject([
      { method: 'Tend', message: { attempt: 2 }, peer: { name: 'b' } },
      { method: 'Outcome', message: { attempt: 3 }, peer: { name: 'a' } },
      { method: 'Outcome', message: { attempt: 2 }, peer: { name: 'b' } },
      { method: 'Outcome', message: { attempt: 1 }, peer: { name: 'a' } },
    ]);
  });

  test('a dispatch that ends while it is being sent is told of as ever', async () => {
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
    await workers.tellOutcome('p', 'acct_1', 'r', 1, 'DISCARDED');
    expect(ended).toEqual(['overloaded']);
    expect(made.told).toMatchObject([{ method: 'Outcome', peer: undefined }]);
  });
});
