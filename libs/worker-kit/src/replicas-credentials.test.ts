import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createMemoryBus, type MemoryBus } from '@signalbox/bus/memory';
import type { AttemptsObserved, AttemptsObserved__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import type { DispatchEvent__Output } from '@signalbox/contracts/worker';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { sse, startFakeProvider, type FakeProvider } from '@signalbox/testkit/fake-provider';
import { loadWorkerConfig } from './config.js';
import { HELLO_MS } from './observations.js';
import { createOpenAiChatAdapter } from './openai-chat-adapter.js';
import { serveWorker } from './serve.js';
import { NO_NEIGHBOURS, startAskedWorker, type AskedWorker } from './testing/asked-worker.js';

const WHOLE = { chunks: [sse({ choices: [{ index: 0, delta: { content: 'Hello' }, finish_reason: null }] }), sse({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }), sse('[DONE]')] };
const REFUSED = { status: 401, body: { error: { message: 'no' } } };
const limited = (seconds: number): object => ({ status: 429, headers: { 'retry-after': String(seconds) }, body: {} });

let provider: FakeProvider;
let bus: MemoryBus;
let clock: FakeClock;
let heard: Buffer[];
const workers: AskedWorker[] = [];
beforeEach(async () => {
  provider = await startFakeProvider();
  clock = createFakeClock();
  bus = createMemoryBus({ clock });
  heard = [];
  await bus.listen('attempts.v1.fake', ({ payload }) => void heard.push(Buffer.from(payload)));
});
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
  await bus.close();
  await provider.stop();
});

const start = async (keys: string): Promise<AskedWorker> => {
  const config = loadWorkerConfig({ ...NO_NEIGHBOURS, FAKE_API_KEY: keys }, { credentials: ['FAKE_API_KEY'], baseUrl: 'FAKE_BASE_URL', defaultBaseUrl: provider.baseUrl });
  const worker = await startAskedWorker(({ surroundings, options }) => serveWorker({ name: 'worker-fake', config, surroundings, adapter: createOpenAiChatAdapter({ provider: 'fake', baseUrl: provider.baseUrl }), ...options }), { bus, clock });
  workers.push(worker);
  return worker;
};
/** Includes the time that messages take. */
const ask = async (worker: AskedWorker, providerModelId = 'm1'): Promise<readonly DispatchEvent__Output[]> => {
  const events = await worker.ask({ messages: [{ role: 'user', content: 'Hi' }] }, { endpointId: `e-${providerModelId}`, providerModelId });
  await clock.advanceAsync(20);
  return events;
};
const asked = (): readonly unknown[] => provider.requests.map(({ headers }) => headers.authorization?.replace('Bearer ', ''));

test('a credential that one replica was refused with is benched in all that have it, whatever its position', async () => {
  const a = await start('sk-one,sk-two');
  const b = await start('sk-three,sk-one');
  provider.enqueue(REFUSED, WHOLE, WHOLE);
  await ask(a);
  await ask(b);
  await ask(b);
  expect(asked()).toEqual(['sk-one', 'sk-three', 'sk-three']);
  // Nothing of the credential itself is in the message.
  expect(heard.some((payload) => payload.includes('sk-'))).toBe(false);
});

test('the replica that was refused tries first; the others follow when the credential is accepted, or was not refused for three seconds', async () => {
  const a = await start('sk-one');
  const b = await start('sk-one');
  provider.enqueue(REFUSED, WHOLE, WHOLE);
  await ask(a);
  expect((await ask(b)).at(-1)?.failed).toMatchObject({ class: 'NO_CREDENTIAL' });
  await clock.advanceAsync(30_000);
  expect((await ask(b)).at(-1)?.failed).toMatchObject({ class: 'NO_CREDENTIAL' });
  expect((await ask(a)).at(-1)?.end).toBeDefined();
  expect((await ask(b)).at(-1)?.end).toBeDefined();
  provider.enqueue(REFUSED, WHOLE);
  await ask(a);
  await clock.advanceAsync(33_000);
  expect((await ask(b)).at(-1)?.end).toBeDefined();
  expect(provider.requests).toHaveLength(5);
});

test('a rate limit rests a credential for that model on all replicas, as long as the provider said', async () => {
  const a = await start('sk-one,sk-two');
  const b = await start('sk-one,sk-two');
  provider.enqueue(limited(7), WHOLE, WHOLE, WHOLE, WHOLE);
  await ask(a);
  await ask(b);
  await ask(b);
  await ask(b, 'm2');
  await clock.advanceAsync(7_000);
  await ask(b);
  expect(asked()).toEqual(['sk-one', 'sk-two', 'sk-two', 'sk-one', 'sk-two']);
});

test('replicas with other credentials go on, for the same model too, and identify theirs only by a mark', async () => {
  const old = await start('sk-old-1,sk-old-2');
  const fresh = await start('sk-new');
  const again = await start('sk-old-2,sk-old-1');
  provider.enqueue(limited(60), limited(60), WHOLE);
  await ask(old);
  await ask(old);
  expect((await ask(fresh)).at(-1)?.end).toBeDefined();
  expect((await ask(again)).at(-1)?.failed).toMatchObject({ class: 'RATE_LIMITED' });
  expect(asked()).toEqual(['sk-old-1', 'sk-old-2', 'sk-new']);
  const codec = messageCodec<AttemptsObserved, AttemptsObserved__Output>('signalbox.events.v1.AttemptsObserved');
  const pools = new Set(heard.map((payload) => codec.decode(payload).pool));
  expect([pools.size, pools.has(0)]).toEqual([2, false]);
  expect(heard.some((payload) => payload.includes('sk-'))).toBe(false);
});

test('routing is told at the start and every minute whether a credential is usable, which a benched one is not', async () => {
  const a = await start('sk-one');
  const codec = messageCodec<AttemptsObserved, AttemptsObserved__Output>('signalbox.events.v1.AttemptsObserved');
  const hellos = (): readonly string[] => heard.map((payload) => codec.decode(payload)).filter(({ attempts, credentials }) => attempts.length + credentials.length === 0).map(({ freeProvider }) => freeProvider);
  await clock.advanceAsync(40_000);
  provider.enqueue(REFUSED);
  await ask(a);
  await clock.advanceAsync(HELLO_MS);
  await clock.advanceAsync(HELLO_MS - 40_000);
  expect(hellos()).toEqual(['fake', '', 'fake']);
  await start('');
  expect(hellos().at(-1)).toBe('');
});

test('each replica works on its own while the bus is away', async () => {
  const a = await start('sk-one');
  const b = await start('sk-one');
  bus.setConnected(false);
  provider.enqueue(REFUSED, REFUSED);
  await ask(a);
  expect((await ask(b)).at(-1)?.failed).toMatchObject({ class: 'CREDENTIAL' });
});
