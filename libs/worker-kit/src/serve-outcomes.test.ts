import { afterEach, describe, expect, test } from '@jest/globals';
import { createMemoryBus } from '@signalbox/bus/memory';
import type { OutcomesRequest } from '@signalbox/contracts/worker';
import { Fault } from '@signalbox/kernel/fault';
import type { RpcClient } from '@signalbox/rpc/call';
import { createRpcClient } from '@signalbox/rpc/client';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { loadWorkerConfig } from './config.js';
import type { Journal } from './journal.js';
import { createOpenAiChatAdapter } from './openai-chat-adapter.js';
import { serveWorker } from './serve.js';
import { FORGETFUL, NO_NEIGHBOURS } from './testing/asked-worker.js';

let stop = async (): Promise<void> => Promise.resolve();
afterEach(() => stop());

async function worker(door: 'link' | 'unary', outcome: Journal['outcome']): Promise<RpcClient> {
  const config = loadWorkerConfig({ ...NO_NEIGHBOURS }, { credentials: [], baseUrl: 'FAKE_BASE_URL', defaultBaseUrl: 'http://127.0.0.1:1' });
  const service = serveWorker({
    name: 'worker-fake', config, adapter: createOpenAiChatAdapter({ provider: 'fake', baseUrl: 'http://127.0.0.1:1' }), isCredentialOptional: true,
    surroundings: { clock: systemClock, randomBytes, log: silentLog, withProcessMetrics: false }, bus: createMemoryBus({ clock: systemClock }), journal: { ...FORGETFUL, outcome },
  });
  await service.start();
  const client = createRpcClient({ area: 'worker', addresses: [`127.0.0.1:${String(service.ports()['grpc'])}`], door, clock: systemClock, randomBytes, defaultDeadlineMs: 5_000 });
  stop = async () => {
    await client.close();
    await service.stop();
  };
  return client;
}

const TOLD: OutcomesRequest = { outcomes: [{ requestId: 'r1', attempt: 1, outcome: 'DELIVERED' }, { requestId: 'r2', attempt: 3, outcome: 'DISCARDED', followed: true }, { requestId: 'r3', attempt: 2, outcome: 'DELIVERED', reserve: true }] };

describe.each(['link', 'unary'] as const)('outcomes of several attempts, over the %s listener', (door) => {
  test('are each journaled as a single one is, and answered when the last of them is written', async () => {
    const heard: unknown[] = [];
    let write: () => void = () => undefined;
    const written = new Promise<void>((resolve) => (write = resolve));
    let isAnswered = false;
    const client = await worker(door, (...told) => {
      heard.push(told);
      if (heard.length === 3) setImmediate(() => (heard.push(isAnswered), write()));
      return told[0] === 'r2' ? written : undefined;
    });
    await client.unary('Outcomes', TOLD);
    isAnswered = true;
    expect(heard).toEqual([
      ['r1', 1, 'DELIVERED', true, { isFollowed: false, isReserve: false }],
      ['r2', 3, 'DISCARDED', true, { isFollowed: true, isReserve: false }],
      ['r3', 2, 'DELIVERED', true, { isFollowed: false, isReserve: true }],
      false,
    ]);
  });

  test('fail as a whole if one cannot be written, or if one has no outcome', async () => {
    const client = await worker(door, (requestId) => (requestId === 'r2' ? Promise.reject(new Fault('store_unavailable', 'full')) : undefined));
    await expect(client.unary('Outcomes', TOLD)).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(client.unary('Outcomes', { outcomes: [{ requestId: 'r1', attempt: 1 }] })).rejects.toMatchObject({ code: 'bad_message' });
  });
});
