import { expect, test } from '@jest/globals';
import { createMemoryBus } from '@signalbox/bus/memory';
import type { DispatchEvent__Output, DispatchRequest, StopRequest } from '@signalbox/contracts/worker';
import { createRpcClient } from '@signalbox/rpc/client';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { startFakeProvider } from '@signalbox/testkit/fake-provider';
import { loadWorkerConfig } from './config.js';
import { createOpenAiChatAdapter } from './openai-chat-adapter.js';
import { serveWorker } from './serve.js';
import { FORGETFUL, NO_NEIGHBOURS } from './testing/asked-worker.js';
import { requestOf, text } from './testing/dispatch-rig.js';

test.each(['link', 'unary'] as const)('a stream that is stopped over the %s listener ends with its figures, after all that was generated', async (door) => {
  const provider = await startFakeProvider();
  const config = loadWorkerConfig({ ...NO_NEIGHBOURS }, { credentials: [], baseUrl: 'FAKE_BASE_URL', defaultBaseUrl: 'http://127.0.0.1:1' });
  const service = serveWorker({
    name: 'worker-fake', config, adapter: createOpenAiChatAdapter({ provider: 'fake', baseUrl: provider.baseUrl }), isCredentialOptional: true,
    surroundings: { clock: systemClock, randomBytes, log: silentLog, withProcessMetrics: false }, bus: createMemoryBus({ clock: systemClock }), journal: FORGETFUL,
  });
  await service.start();
  const client = createRpcClient({ area: 'worker', addresses: [`127.0.0.1:${String(service.ports()['grpc'])}`], door, clock: systemClock, randomBytes, defaultDeadlineMs: 5_000 });
  provider.enqueue({ chunks: [text('Hello wo')], hang: true });
  const events: DispatchEvent__Output[] = [];
  const request = requestOf();
  const { requestId, attempt } = request;
  await new Promise<void>((resolve, reject) => {
    client.stream<DispatchRequest, DispatchEvent__Output>('Dispatch', request, {
      onMessage: (event) => {
        events.push(event);
        if (event.chunk?.content === true) client.unary<StopRequest, object>('Stop', { requestId, attempt }).catch(reject);
      },
      onEnd: (fault) => (fault === undefined ? resolve() : reject(fault)),
    });
  });
  expect(events.map(({ event }) => event)).toEqual(['head', 'chunk', 'end']);
  expect(events.at(-1)?.end).toMatchObject({ tokens: { inputUncached: 10, outputText: 2 }, cut: { class: 'STOPPED' }, finishReason: 'error' });
  await client.close();
  await service.stop();
  await provider.stop();
});
