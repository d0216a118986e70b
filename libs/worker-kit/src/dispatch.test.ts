import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createMemoryBus } from '@signalbox/bus/memory';
import type { DispatchEvent, DispatchRequest__Output } from '@signalbox/contracts/worker';
import { silentLog } from '@signalbox/runtime/log';
import { Fault, type FaultCode } from '@signalbox/kernel/fault';
import { createMetrics } from '@signalbox/runtime/metrics';
import { Secret } from '@signalbox/runtime/secret';
import { failure, type Failure } from '@signalbox/wires/canonical';
import { systemClock } from '@signalbox/runtime/clock';
import { sse, startFakeProvider, type FakeProvider } from '@signalbox/testkit/fake-provider';
import { createCredentialPool } from './credentials.js';
import { createDispatcher, type Dispatcher } from './dispatch.js';
import type { AttemptEnd, Journal } from './journal.js';
import { createWorkerMetrics } from './metrics.js';
import { createObservations } from './observations.js';
import { createOpenAiChatAdapter } from './openai-chat-adapter.js';
import type { ProviderAdapter } from './provider.js';
import { createUpstream, type Upstream } from './upstream.js';

const CARD = { id: 'card-1', inputUncached: '1000000000', cacheRead: '500000000', cacheWrite: '0', outputText: '2000000000', outputReasoning: '2000000000', audio: '0', image: '0', requestNanoUsd: '0' };
const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

const UNSENDABLE: Failure = { ...failure('BAD_REQUEST'), publicMessage: 'This provider takes no sound.', publicParam: 'messages.[0]' };

function requestOf(over: Partial<DispatchRequest__Output> = {}): DispatchRequest__Output {
  return {
    requestId: 'chatcmpl-01JD8Z6T9M3W5R7V2K4X6B8N0Q', attempt: 1, retryOf: [], accountId: 'acct_1', keyId: 'key_1', endpointId: 'e1', model: 'm', provider: 'fake',
    providerModelId: 'fake-1', wireProtocol: 'openai-chat', card: CARD, referenceCard: null, periods: { day: '', week: '', month: '', plan: '', reservedAtMs: '0' }, heldNanoUsd: '0',
    byok: false, stream: true, maxTokensParam: '', temperatureMax: 2, fields: [{ name: 'messages', value: Buffer.from('[{"role":"user","content":"hi"}]') }], promptTokens: 10,
    firstByteTimeoutMs: 5_000, idleTimeoutMs: 5_000, responseFormat: '', routedFrom: '', decisionId: '', clientStream: true, maxOutputTokens: 0, ...over,
  };
}

const chunk = (choices: readonly object[], more: object = {}): string => sse({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more });
const text = (content: string): string => chunk([{ index: 0, delta: { content }, finish_reason: null }]);

describe('dispatch', () => {
  let provider: FakeProvider;
  let upstream: Upstream;
  let dispatcher: Dispatcher;
  let log: string[];
  let ends: AttemptEnd[];

  beforeEach(async () => {
    provider = await startFakeProvider();
    log = [];
    ends = [];
    const journal: Journal = {
      start: (record) => Promise.resolve(void log.push(`start ${String(record.attempt)} after ${String(provider.requests.length)} requests`)),
      checkpoint: () => undefined,
      end: (_id, _attempt, end) => Promise.resolve(void (log.push('end'), ends.push(end))),
      outcome: (_id, _attempt, outcome, told) => void log.push(`${outcome} ${String(told)}`),
      state: () => ({ writer: 'wrt_1', lastSeq: 0, shippedSeq: 0, ledgerSeq: 0 }),
    };
    const ordinary = createOpenAiChatAdapter({ provider: 'fake', baseUrl: provider.baseUrl });
    const adapter: ProviderAdapter = { ...ordinary, compose: (request, secret) => (request.providerModelId === 'unsendable' ? UNSENDABLE : ordinary.compose(request, secret)) };
    upstream = createUpstream(adapter.origin);
    dispatcher = createDispatcher({
      adapter, upstream, journal, clock: systemClock, log: silentLog,
      credentials: createCredentialPool([new Secret('sk-secret-one')], systemClock),
      observations: createObservations(createMemoryBus({ clock: systemClock }), 'fake', systemClock),
      metrics: createWorkerMetrics(createMetrics({ service: 'worker-fake', withProcessMetrics: false })),
    });
  });
  afterEach(async () => {
    await upstream.close();
    await provider.stop();
  });

  /** `leave` ends the call before its end, as a cancel or with another reason. */
  async function run(request: DispatchRequest__Output, onEvent: (event: DispatchEvent, leave: (code?: FaultCode) => void) => void = () => undefined): Promise<DispatchEvent[]> {
    const events: DispatchEvent[] = [];
    let tell: (reason: Fault) => void = () => undefined;
    const { signal } = new AbortController();
    await dispatcher.dispatch(request, { requestId: request.requestId, traceparent: '', signal, onAbort: (listener) => void (tell = listener), remainingMs: () => Infinity }, {
      write: (event) => {
        if (event.end !== undefined || event.failed !== undefined) log.push('last event');
        events.push(event);
        onEvent(event, (code = 'cancelled') => tell(new Fault(code, 'left')));
        return true;
      },
      drained: () => Promise.resolve(),
    });
    return events;
  }

  test('journals before a byte leaves and before the last event does, and charges what the provider says', async () => {
    provider.enqueue({ chunks: [text('Hel'), text('lo'), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: USAGE }), sse('[DONE]')] });
    const events = await run(requestOf());
    expect(log).toEqual(['start 1 after 0 requests', 'end', 'last event']);
    expect(events.at(0)?.head).toBeDefined();
    expect(events.at(-1)?.end).toMatchObject({ costNanoUsd: '20000', source: 'PROVIDER', finishReason: 'stop', flags: [] });
    expect(provider.requests[0]?.headers['x-request-id']).toBe('chatcmpl-01JD8Z6T9M3W5R7V2K4X6B8N0Q/1');
    expect(provider.requests[0]?.headers.authorization).toBe('Bearer sk-secret-one');
    expect(JSON.parse(provider.requests[0]?.body ?? '')).toMatchObject({ model: 'fake-1', stream: true, stream_options: { include_usage: true } });
  });

  test('answers a whole body with its cost', async () => {
    provider.enqueue({ body: { choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }], usage: USAGE } });
    const events = await run(requestOf({ stream: false, clientStream: false }));
    expect(JSON.parse(String(events[0]?.body?.choices))).toEqual([{ index: 0, message: { role: 'assistant', content: 'Hello', refusal: null }, logprobs: null, finish_reason: 'stop' }]);
    expect(events[1]?.end).toMatchObject({ costNanoUsd: '20000' });
  });

  test('a cut after content ends with what was delivered, flagged estimated', async () => {
    provider.enqueue({ chunks: [text('Hello wo')], cut: true });
    const end = (await run(requestOf())).at(-1)?.end;
    expect(end).toMatchObject({ finishReason: 'error', source: 'ESTIMATED', flags: ['estimated'], cut: { class: 'DISCONNECTED' }, tokens: { inputUncached: 10, outputText: 2 } });
  });

  test('a client that hangs up mid-stream stops the provider and pays what was generated', async () => {
    provider.enqueue({ chunks: [text('Hello wo')], hang: true });
    await run(requestOf(), (event, leave) => {
      if (event.chunk?.content === true) leave();
    });
    expect(log).toEqual(['start 1 after 0 requests', 'end', 'DELIVERED false']);
    expect(ends[0]).toMatchObject({ source: 'ESTIMATED', flags: ['estimated'], tokens: { inputUncached: 10, outputText: 2 } });
  });

  test('an attempt that supersedes others says so once it is journaled, before the provider is asked', async () => {
    provider.enqueue({ body: { choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }], usage: USAGE } });
    let asked = -1;
    const events = await run(requestOf({ attempt: 2, retryOf: [1], stream: false, clientStream: false }), (event) => {
      if (event.started !== undefined) asked = provider.requests.length;
    });
    expect(Object.keys(events[0] ?? {})).toEqual(['started']);
    expect([log[0], asked]).toEqual(['start 2 after 0 requests', 0]);
    expect(Object.keys((await run(requestOf()))[0] ?? {})).not.toContain('started');
  });

  test.each([true, false])('a client that left before the provider was asked costs nothing (stream: %s)', async (clientStream) => {
    await run(requestOf({ retryOf: [1], attempt: 2, clientStream }), (event, leave) => {
      if (event.started !== undefined) leave();
    });
    expect(provider.requests).toHaveLength(0);
    expect(ends[0]).toMatchObject({ costNanoUsd: 0n });
    expect(log.at(-1)).toBe('DELIVERED false');
  });

  test.each<FaultCode>(['link_lost', 'deadline_exceeded'])('a call that ends by %s stops the provider, and what became of it stays for edge to tell', async (code) => {
    provider.enqueue({ chunks: [text('Hello wo')], hang: true });
    await run(requestOf(), (event, leave) => {
      if (event.chunk?.content === true) leave(code);
    });
    expect(log).toEqual(['start 1 after 0 requests', 'end']);
    expect(ends[0]).toMatchObject({ source: 'ESTIMATED' });
  });

  test('a client that hangs up on a whole answer leaves it to be fetched and booked in full', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    provider.enqueue({ chunks: [text('Hello'), () => held, chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: USAGE }), sse('[DONE]')] });
    await run(requestOf({ clientStream: false }), (event, leave) => {
      if (event.chunk?.content === true) {
        leave();
        release();
      }
    });
    expect(ends[0]).toMatchObject({ source: 'PROVIDER', costNanoUsd: 20000n });
    expect(log.at(-1)).toBe('DELIVERED false');
  });

  test.each([
    [{ status: 429, headers: { 'retry-after': '2' }, body: { error: { message: 'slow down' } } }, { class: 'RATE_LIMITED', retryAfterMs: 2_000, retryable: true }],
    [{ status: 500, body: '<html>oops</html>' }, { class: 'PROVIDER_ERROR', retryable: true, publicMessage: '' }],
    [{ status: 302, headers: { location: 'http://127.0.0.1:1/' }, body: '' }, { class: 'PROVIDER_ERROR' }],
    [{ status: 400, body: { error: { message: 'bad key sk-abcdef123456 in temperature', param: 'temperature' } } }, { class: 'BAD_REQUEST', publicMessage: 'bad key [redacted] in temperature', publicParam: 'temperature', retryable: false }],
    [{ chunks: [sse({ error: { message: 'overloaded', type: 'overloaded_error' } })] }, { class: 'PROVIDER_ERROR', retryable: true }],
    [{ chunks: ['data: {"choi\n\n'] }, { class: 'GARBAGE' }],
    [{ chunks: [sse('[DONE]')] }, { class: 'EMPTY' }],
    [{ chunks: [], cut: true }, { class: 'DISCONNECTED' }],
  ])('classifies a failure before content and books it at 0: %#', async (answer, expected) => {
    provider.enqueue(answer);
    const events = await run(requestOf());
    expect(events.at(-1)?.failed).toMatchObject(expected);
    expect(ends[0]?.costNanoUsd).toBe(0n);
  });

  test('a request that the wire cannot carry fails with its reason, unsent and unjournaled', async () => {
    const events = await run(requestOf({ providerModelId: 'unsendable' }));
    expect(events).toEqual([{ failed: UNSENDABLE }]);
    expect(log).toEqual(['last event']);
    expect(provider.requests).toHaveLength(0);
  });

  test('benches a refused credential: the next attempt reaches no provider', async () => {
    provider.enqueue({ status: 401, body: { error: { message: 'no' } } });
    expect((await run(requestOf())).at(-1)?.failed).toMatchObject({ class: 'CREDENTIAL' });
    expect((await run(requestOf({ attempt: 2 }))).at(-1)?.failed).toMatchObject({ class: 'NO_CREDENTIAL' });
    expect(provider.requests).toHaveLength(1);
  });

  test('fails on the first byte timer when the provider says nothing', async () => {
    provider.enqueue({ hang: true });
    expect((await run(requestOf({ firstByteTimeoutMs: 50 }))).at(-1)?.failed).toMatchObject({ class: 'TIMEOUT_FIRST_BYTE' });
  });
});
