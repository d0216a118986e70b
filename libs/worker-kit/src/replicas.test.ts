import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createMemoryBus, type MemoryBus } from '@signalbox/bus/memory';
import type { DispatchEvent__Output } from '@signalbox/contracts/worker';
import { silentLog } from '@signalbox/runtime/log';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { sse, startFakeProvider, type FakeProvider } from '@signalbox/testkit/fake-provider';
import { loadWorkerConfig } from './config.js';
import { createObservations, HELLO_MS, listenToObservations } from './observations.js';
import { createOpenAiChatAdapter } from './openai-chat-adapter.js';
import { serveWorker } from './serve.js';
import { NO_NEIGHBOURS, startAskedWorker, type AskedWorker } from './testing/asked-worker.js';

const HELLO = { messages: [{ role: 'user', content: 'Hi' }] };
const half = { chunks: [sse({ choices: [{ index: 0, delta: { content: 'half' }, finish_reason: null }] })], cut: true };
const whole = { chunks: [sse({ choices: [{ index: 0, delta: { content: 'Hello' }, finish_reason: null }] }), sse({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }), sse('[DONE]')] };

describe('two replicas of a worker', () => {
  let provider: FakeProvider;
  let bus: MemoryBus;
  /** Clock of the replicas; the client's deadlines are in real time. */
  let clock: FakeClock;
  let a: AskedWorker;
  let b: AskedWorker;

  beforeEach(async () => {
    provider = await startFakeProvider();
    clock = createFakeClock();
    bus = createMemoryBus({ clock });
    const config = loadWorkerConfig({ ...NO_NEIGHBOURS }, { credentials: [], baseUrl: 'FAKE_BASE_URL', defaultBaseUrl: provider.baseUrl });
    const start = (): Promise<AskedWorker> =>
      startAskedWorker(({ surroundings, options }) => serveWorker({ name: 'worker-fake', config, surroundings, adapter: createOpenAiChatAdapter({ provider: 'fake', baseUrl: provider.baseUrl }), isCredentialOptional: true, ...options }), { bus, clock });
    a = await start();
    b = await start();
    // By then each has heard from the other.
    await clock.advanceAsync(HELLO_MS);
  });
  afterEach(async () => {
    await Promise.all([a.stop(), b.stop()]);
    await bus.close();
    await provider.stop();
  });

  const ask = (worker: AskedWorker, endpointId = 'e1'): Promise<readonly DispatchEvent__Output[]> => worker.ask(HELLO, { endpointId });

  test('call a provider that cuts its streams no more than one breaker allows: five in a row, then one in 30 s until one is complete', async () => {
    provider.enqueue(half, half, half, half, half, half, whole, whole, whole);
    for (let n = 0; n < 12; n += 1) {
      await ask(n % 2 === 0 ? a : b);
      // Within this time a failure is known everywhere; many of them are sent together.
      clock.advance(20);
    }
    expect(provider.requests.length).toBe(5);
    expect(await ask(a)).toMatchObject([{ failed: { class: 'RATE_LIMITED', status: 0, retryable: true } }]);

    clock.advance(30_000);
    await Promise.all([ask(a), ask(b), ask(a), ask(b)]);
    expect(provider.requests.length).toBe(6);
    clock.advance(29_000);
    await Promise.all([ask(a), ask(b)]);
    expect(provider.requests.length).toBe(6);

    clock.advance(1_000);
    await Promise.all([ask(a), ask(b)]);
    expect(provider.requests.length).toBe(7);
    // It was complete: both know that as quickly as a failure.
    await clock.advanceAsync(20);
    await Promise.all([ask(a), ask(b)]);
    expect(provider.requests.length).toBe(9);
  });

  test('each learns of failures that only the other met, for that endpoint only', async () => {
    provider.enqueue(half, half, half, half, half);
    for (let n = 0; n < 5; n += 1) {
      await ask(a);
      clock.advance(20);
    }
    expect(await ask(b)).toMatchObject([{ failed: { class: 'RATE_LIMITED', status: 0 } }]);
    expect(provider.requests.length).toBe(5);
    provider.enqueue(whole);
    await ask(b, 'e2');
    expect(provider.requests.length).toBe(6);
  });

  test('each works on its own while the bus is away, and lost messages do no harm when it is back', async () => {
    bus.setConnected(false);
    for (let n = 0; n < 12; n += 1) {
      provider.enqueue(half);
      await ask(n % 2 === 0 ? a : b);
      clock.advance(20);
    }
    expect(provider.requests.length).toBe(10);
    bus.setConnected(true);
    provider.clear();
    provider.enqueue(whole, whole, whole);
    clock.advance(30_000);
    await Promise.all([ask(a), ask(b)]);
    expect(provider.requests.length).toBe(11);
    await clock.advanceAsync(1_000);
    await Promise.all([ask(a), ask(b)]);
    expect(provider.requests.length).toBe(13);
  });
});

test('many failures are sent in few messages, all within 20 ms, and never decoded by their sender', async () => {
  const clock = createFakeClock();
  const bus = createMemoryBus({ clock });
  const heard: number[] = [];
  const subscription = await listenToObservations(bus, 'fake', 'call_2', silentLog, ({ attempts }) => heard.push(attempts.length));
  const itself: unknown[] = [];
  const own = await listenToObservations(bus, 'fake', 'call_1', silentLog, (news) => itself.push(news));
  const observations = createObservations({ bus, provider: 'fake', origin: 'call_1', clock });
  for (let n = 0; n < 1_000; n += 1) {
    observations.observe({ endpointId: 'e1', ok: false, failure: 'PROVIDER_ERROR', forBreakers: true });
    clock.advance(1);
  }
  await clock.advanceAsync(20);
  expect(heard.reduce((sum, count) => sum + count, 0)).toBe(1_000);
  expect(heard.length).toBeLessThanOrEqual(51);
  expect(itself).toEqual([]);
  await Promise.all([subscription.stop(), own.stop()]);
});

test('tells at the start and every minute whether a credential is usable', async () => {
  const clock = createFakeClock();
  const bus = createMemoryBus({ clock });
  const heard: string[] = [];
  const subscription = await listenToObservations(bus, 'fake', 'call_2', silentLog, ({ freeProvider }) => heard.push(freeProvider));
  let hasCredential = true;
  const observations = createObservations({ bus, provider: 'fake', origin: 'call_1', clock, hasCredential: () => hasCredential });
  observations.start();
  hasCredential = false;
  await clock.advanceAsync(HELLO_MS);
  expect(heard).toEqual(['fake', '']);
  observations.stop();
  await subscription.stop();
});
