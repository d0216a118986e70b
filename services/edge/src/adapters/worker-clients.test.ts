import { expect, test } from '@jest/globals';
import { Fault } from '@signalbox/kernel/fault';
import type { RpcClient } from '@signalbox/rpc/call';
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
