import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createMemoryBus } from '@signalbox/bus/memory';
import type { DispatchEvent__Output, DispatchRequest } from '@signalbox/contracts/worker';
import type { RpcClient } from '@signalbox/rpc/call';
import { createRpcClient } from '@signalbox/rpc/client';
import { systemClock } from '@signalbox/runtime/clock';
import type { Service } from '@signalbox/runtime/lifecycle';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { FORGETFUL } from '@signalbox/worker-kit/testing/asked-worker';
import { createFakeClock } from '@signalbox/testkit/clock';
import { composeWorkerSim } from './compose.js';
import { loadWorkerSimConfig } from './config.js';

let service: Service;
let client: RpcClient;
let made = 0;

beforeAll(async () => {
  const config = loadWorkerSimConfig({ WAL_DIR: mkdtempSync(join(tmpdir(), 'worker-sim-')), QUOTA_ADDRS: '127.0.0.1:1', BILLING_ADDRS: '127.0.0.1:1' });
  service = composeWorkerSim(config, { clock: systemClock, randomBytes, log: silentLog, withProcessMetrics: false }, { bus: createMemoryBus({ clock: systemClock }), journal: FORGETFUL });
  await service.start();
  client = createRpcClient({ area: 'worker', addresses: [`127.0.0.1:${String(service.ports()['grpc'])}`], door: 'link', clock: systemClock, randomBytes, defaultDeadlineMs: 10_000 });
});
afterAll(async () => {
  await client.close();
  await service.stop();
});

function requestOf(said: string, over: DispatchRequest = {}, more: Readonly<Record<string, unknown>> = {}): DispatchRequest {
  made += 1;
  return {
    requestId: `chatcmpl-sim-test-${String(made)}`, attempt: 1, accountId: 'acct_1', keyId: 'key_1', endpointId: 'e', model: 'simulator/fast', provider: 'simulator', providerModelId: 'sim-fast',
    card: { id: 'c', inputUncached: '1000000', outputText: '1000000' }, periods: { day: '2026-01-01' }, heldNanoUsd: '0', stream: true, clientStream: true, promptTokens: 20, maxOutputTokens: 4_096,
    fields: Object.entries({ messages: [{ role: 'user', content: said }], ...more }).map(([name, value]) => ({ name, value: Buffer.from(JSON.stringify(value)) })), ...over,
  };
}

function ask(said: string, over: DispatchRequest = {}, more: Readonly<Record<string, unknown>> = {}): Promise<DispatchEvent__Output[]> {
  const request = requestOf(said, over, more);
  return new Promise((resolve, reject) => {
    const events: DispatchEvent__Output[] = [];
    client.stream<DispatchRequest, DispatchEvent__Output>('Dispatch', request, { onMessage: (event) => events.push(event), onEnd: (fault) => (fault === undefined ? resolve(events) : reject(fault)) });
  });
}

test('streams an answer that says it is simulated, through the ordinary wire, with a cost', async () => {
  const events = await ask('hello there');
  const text = events.flatMap((event) => (event.chunk ? (JSON.parse(event.chunk.choices.toString()) as { delta: { content?: string } }[]) : [])).map((choice) => choice.delta.content ?? '').join('');
  expect(text).toContain('not a language model');
  expect(text).toContain('hello there');
  expect(events.at(-1)?.end).toMatchObject({ source: 'PROVIDER', finishReason: 'stop' });
  expect(Number(events.at(-1)?.end?.costNanoUsd)).toBeGreaterThan(0);
});

test.each([
  ['no schema', undefined, {}],
  ['an empty schema', {}, {}],
  ['bounds that mean none', { type: 'object', properties: { n: { type: 'integer', minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER } } }, { n: 1 }],
  ['bounds below one', { type: 'object', properties: { n: { type: 'integer', maximum: -4 }, x: { type: 'number', minimum: 7 }, y: { type: 'integer', exclusiveMinimum: 2 } } }, { n: -4, x: 7, y: 3 }],
])('calls a function of %s with an object that fits', async (_name, parameters, expected) => {
  const called = await ask('go', { stream: false }, { tools: [{ type: 'function', function: { name: 'f', parameters } }] });
  const [choice] = JSON.parse(String(called[0]?.body?.choices)) as { message: { tool_calls: { function: { arguments: string } }[] } }[];
  const text = choice?.message.tool_calls[0]?.function.arguments ?? '';
  expect(JSON.parse(text)).toEqual(expected);
});

test('returns as many choices as the API allows', async () => {
  const [answered] = await ask('hello', { stream: false }, { n: 128 });
  expect((JSON.parse(String(answered?.body?.choices)) as Choice[]).length).toBe(128);
});

test('chunks of one choice say how the other one ended, in case the link breaks', async () => {
  const chunks = (await ask('hello there', {}, { n: 2 })).flatMap(({ chunk }) => (chunk ? [chunk] : []));
  const ofSecond = chunks.filter(({ choices, finish }) => !finish && choices.toString().includes('"index":1'));
  expect(JSON.parse(String(ofSecond.at(-2)?.ended))).toEqual([{ index: 0, delta: {}, logprobs: null, finish_reason: 'stop' }]);
  expect((await ask('hello there')).some(({ chunk }) => chunk?.ended !== undefined)).toBe(false);
});

test('answers a schema with a value that conforms and calls a given tool', async () => {
  const schema = { type: 'object', properties: { n: { type: 'integer', minimum: 3 } }, required: ['n'] };
  const shaped = await ask('go', { stream: false }, { response_format: { type: 'json_schema', json_schema: { name: 's', schema } } });
  expect(JSON.parse((JSON.parse(String(shaped[0]?.body?.choices)) as { message: { content: string } }[])[0]?.message.content ?? '')).toEqual({ n: 3 });
  const called = await ask('go', { stream: false }, { tools: [{ type: 'function', function: { name: 'f', parameters: schema } }] });
  expect(JSON.parse(String(called[0]?.body?.choices))).toMatchObject([{ finish_reason: 'tool_calls', message: { content: null, tool_calls: [{ function: { name: 'f', arguments: '{"n":3}' } }] } }]);
});

interface Told { readonly token: string; readonly logprob: number; readonly bytes: readonly number[] }
interface Choice { readonly message?: { content: string }; readonly delta?: { content?: string }; readonly logprobs: { readonly content: readonly (Told & { readonly top_logprobs: readonly Told[] })[] } | null }

test.each<[object, number]>([[{ logprobs: true }, 0], [{ logprobs: true, top_logprobs: 1 }, 1], [{ logprobs: true, top_logprobs: 20 }, 20]])('says how probable its words were where it is asked %j, streamed as whole', async (asked, count) => {
  const said = 'hello a é 日本語 😀';
  const choices = (await ask(said, {}, { ...asked })).flatMap(({ chunk }) => (chunk ? (JSON.parse(chunk.choices.toString()) as Choice[]) : []));
  const [whole] = JSON.parse(String((await ask(said, { stream: false }, { ...asked }))[0]?.body?.choices)) as Choice[];
  const tokens = whole?.logprobs?.content ?? [];
  const streamed = choices.flatMap(({ delta, logprobs }) => {
    expect(logprobs?.content.map(({ token }) => token).join('') ?? '').toBe(delta?.content ?? '');
    return logprobs?.content ?? [];
  });
  expect(streamed).toEqual(tokens);
  expect(tokens.map(({ token }) => token).join('')).toBe(whole?.message?.content);
  for (const { token, logprob, bytes, top_logprobs: top } of tokens) {
    expect(Buffer.from(bytes).toString('utf8')).toBe(token);
    expect([logprob < 0 && logprob > Math.log(0.49), top.length]).toEqual([true, count]);
    if (count > 0) expect(top[0]).toEqual({ token, logprob, bytes });
    expect(new Set(top.map((one) => one.token)).size).toBe(count);
    expect(top.map((one) => one.logprob)).toEqual(top.map((one) => one.logprob).toSorted((a, b) => b - a));
    expect(top.reduce((sum, one) => sum + Math.exp(one.logprob), 0)).toBeLessThan(1.000_1);
  }
});

test.each<[string, object]>([['nothing is asked', {}], ['it calls a tool', { logprobs: true, tools: [{ type: 'function', function: { name: 'f' } }] }]])('tells no probabilities where %s', async (_what, more) => {
  const [whole] = JSON.parse(String((await ask('hello', { stream: false }, { ...more }))[0]?.body?.choices)) as Choice[];
  expect(whole?.logprobs).toBeNull();
});

test.each([
  ['[sim:status=429 retry-after=2] x', { class: 'RATE_LIMITED', retryAfterMs: 2_000 }],
  ['[sim:garbage]', { class: 'GARBAGE' }],
  ['[sim:empty]', { class: 'EMPTY' }],
])('%s fails the attempt', async (said, expected) => {
  expect((await ask(said, { providerModelId: `sim-${said}` })).at(-1)?.failed).toMatchObject(expected);
});

test('a cut after three chunks ends with what was delivered', async () => {
  expect((await ask('[sim:cut-after=3] some words')).at(-1)?.end).toMatchObject({ cut: { class: 'DISCONNECTED' }, source: 'ESTIMATED', flags: ['estimated'] });
});

test('DRAIN_MS is how long SIGTERM waits for a stream, and then for its usage', async () => {
  const clock = createFakeClock();
  const config = loadWorkerSimConfig({ WAL_DIR: '/nonexistent', QUOTA_ADDRS: '127.0.0.1:1', BILLING_ADDRS: '127.0.0.1:1', DRAIN_MS: '700' });
  const draining = composeWorkerSim(config, { clock, randomBytes, log: silentLog, withProcessMetrics: false }, { bus: createMemoryBus({ clock }), journal: FORGETFUL });
  await draining.start();
  const caller = createRpcClient({ area: 'worker', addresses: [`127.0.0.1:${String(draining.ports()['grpc'])}`], door: 'link', clock: systemClock, randomBytes, defaultDeadlineMs: 10_000 });
  let isCut = (): void => undefined;
  const cut = new Promise<void>((resolve) => (isCut = resolve));
  await new Promise<void>((resolve) => {
    caller.stream<DispatchRequest, DispatchEvent__Output>('Dispatch', requestOf('[sim:tokens=1000 chunk-delay-ms=1000] go'), { onMessage: () => resolve(), onEnd: () => isCut() });
  });
  let isStopped = false;
  const stopping = draining.stop().then(() => (isStopped = true));
  await clock.advanceAsync(650);
  expect(isStopped).toBe(false);
  // 700 ms for the stream, then 700 for what a cut stream cost: no hand moves the clock further.
  await clock.advanceAsync(50);
  await cut;
  await clock.advanceAsync(700);
  await stopping;
  await caller.close();
}, 20_000);
