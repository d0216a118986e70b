import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { AttemptObserved } from '@signalbox/contracts/events';
import type { DispatchEvent, DispatchRequest__Output } from '@signalbox/contracts/worker';
import { silentLog } from '@signalbox/runtime/log';
import type { Clock } from '@signalbox/kernel/clock';
import { Fault, type FaultCode } from '@signalbox/kernel/fault';
import type { TokenCounts } from '@signalbox/kernel/tokens';
import { createAllowList } from '@signalbox/net-guard/allow-list';
import { createDialer } from '@signalbox/net-guard/dialer';
import { createMetrics } from '@signalbox/runtime/metrics';
import { Secret } from '@signalbox/runtime/secret';
import { failure, type Failure } from '@signalbox/wires/canonical';
import { systemClock } from '@signalbox/runtime/clock';
import { sse, startFakeProvider, type FakeProvider } from '@signalbox/testkit/fake-provider';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { createCredentialPool } from './credentials.js';
import { createDispatcher, type Dispatcher, type DispatchOptions } from './dispatch.js';
import { createEndpointBreakers } from './endpoint-breakers.js';
import type { AttemptEnd, AttemptStart, Journal } from './journal.js';
import { createWorkerMetrics } from './metrics.js';
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
    byok: false, byokHandle: '', stream: true, maxTokensParam: '', temperatureMax: 2, fields: [{ name: 'messages', value: Buffer.from('[{"role":"user","content":"hi"}]') }], promptTokens: 10,
    firstByteTimeoutMs: 5_000, idleTimeoutMs: 5_000, responseFormat: '', routedFrom: '', decisionId: '', clientStream: true, maxOutputTokens: 0,
    gather: false, heldOutputTokens: 0, heldTokens: '0', outputPriceMax: '0', wholeNanoUsd: '0', shortened: false, holdEpoch: '', rounds: false, earlierNanoUsd: '0', earlierTokens: '0', steps: [], referenceSteps: [], ...over,
  };
}

const chunk = (choices: readonly object[], more: object = {}): string => sse({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more });
const text = (content: string): string => chunk([{ index: 0, delta: { content }, finish_reason: null }]);

describe('dispatch', () => {
  let provider: FakeProvider;
  /** Of the breakers alone. */
  let clock: FakeClock;
  let upstream: Upstream;
  let dispatcher: Dispatcher;
  let createOn: (time: Clock, over?: Partial<DispatchOptions>) => Dispatcher;
  let log: string[];
  let starts: AttemptStart[];
  let ends: AttemptEnd[];
  let checkpoints: string[];
  let checkpointed: TokenCounts[];
  let extended: string[];
  /** Answers of quota in order; the last one stays. */
  let secrets: string[];
  let observed: AttemptObserved[];
  let grants: (boolean | Fault | Promise<boolean>)[];

  beforeEach(async () => {
    provider = await startFakeProvider();
    clock = createFakeClock();
    log = [];
    starts = [];
    ends = [];
    checkpoints = [];
    checkpointed = [];
    extended = [];
    grants = [true];
    secrets = ['sk-secret-one'];
    observed = [];
    const journal: Journal = {
      start: (record) => Promise.resolve(void (log.push(`start ${String(record.attempt)} after ${String(provider.requests.length)} requests`), starts.push(record))),
      checkpoint: (requestId, _attempt, tokens) => void (checkpoints.push(requestId), checkpointed.push(tokens)),
      end: (_id, _attempt, end) => Promise.resolve(void (log.push('end'), ends.push(end))),
      outcome: (_id, _attempt, outcome, told) => void log.push(`${outcome} ${String(told)}`),
      tend: () => undefined,
      state: () => ({ writer: 'wrt_1', lastSeq: 0, shippedSeq: 0, ledgerSeq: 0 }),
    };
    const ordinary = createOpenAiChatAdapter({ provider: 'fake', baseUrl: provider.baseUrl });
    const adapter: ProviderAdapter = { ...ordinary, compose: (request, secret, onLeave) => (request.providerModelId === 'unsendable' ? UNSENDABLE : request.providerModelId === 'waiting' ? new Promise((resolve) => onLeave?.(() => resolve(UNSENDABLE))) : ordinary.compose(request, secret)) };
    upstream = createUpstream(adapter.origin);
    createOn = (time, over) => createDispatcher({
      adapter, upstream, journal, clock: time, log: silentLog,
      credentials: createCredentialPool(secrets.map((secret) => new Secret(secret)), time),
      breakers: createEndpointBreakers({ clock, origin: 'call_1', onProbe: () => undefined }),
      extendHold: async (_account, _request, toNanoUsd, toTokens) => {
        extended.push(`${String(toNanoUsd)} ${String(toTokens)}`);
        const granted = (await (grants.length > 1 ? grants.shift() : grants[0])) ?? false;
        if (granted instanceof Fault) throw granted;
        return granted;
      },
      observations: { observe: (attempt) => void observed.push(attempt), observeProbe: () => undefined, start: () => undefined, stop: () => undefined },
      metrics: createWorkerMetrics(createMetrics({ service: 'worker-fake', withProcessMetrics: false })),
      ...over,
    });
    dispatcher = createOn(systemClock);
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

  describe('usage that is hard to believe', () => {
    const absurd = { prompt_tokens: 5_000, completion_tokens: 2, total_tokens: 5_002 };
    const answer = { chunks: [text('Hello'), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: absurd }), sse('[DONE]')] };
    let lines: object[];
    let watched: Partial<DispatchOptions>;
    let alarmed: number;
    beforeEach(() => {
      lines = [];
      alarmed = 0;
      const metrics = createWorkerMetrics(createMetrics({ service: 'worker-fake', withProcessMetrics: false }));
      watched = { log: { ...silentLog, warn: (line, fields = {}) => void lines.push({ line, ...fields }) }, metrics: { ...metrics, suspect: () => void (alarmed += 1) } };
    });

    test('is booked, flagged and counted each time, and told of once a minute', async () => {
      dispatcher = createOn(clock, watched);
      for (let attempt = 1; attempt <= 20; attempt += 1) {
        provider.enqueue(answer);
        await run(requestOf({ attempt }));
      }
      expect(ends.map(({ source, flags }) => [source, ...flags])).toEqual(Array<string[]>(20).fill(['PROVIDER', 'suspect']));
      expect(alarmed).toBe(20);
      expect(lines).toEqual([expect.objectContaining({ line: 'Usage figures are hard to believe.', provider: 'fake', model: 'fake-1', source: 'PROVIDER', booked_prompt: 5_000, own_prompt: 10, booked_output: 2 })]);
    });

    test('of an address of an account’s own alarms nobody else', async () => {
      const own = createUpstream('http://127.0.0.1:1', createDialer({ allow: createAllowList([new URL(provider.origin).host]) }));
      const adapter = createOpenAiChatAdapter({ provider: 'fake', baseUrl: provider.baseUrl });
      dispatcher = createOn(clock, { ...watched, upstream: own, ownCredentials: { resolve: () => ({ adapter, pool: createCredentialPool([new Secret('sk-own')], clock), isAtOwnAddress: true }) } });
      provider.enqueue(answer);
      await run(requestOf({ byok: true, byokHandle: 'cred_1' }));
      await own.close();
      expect(ends.map(({ flags }) => flags)).toEqual([['suspect']]);
      expect([alarmed, lines]).toEqual([0, []]);
    });
  });

  test('a caller that leaves while its request is put together ends that, and what is not sent is journaled as given up', async () => {
    const events: DispatchEvent[] = [];
    const { signal } = new AbortController();
    await dispatcher.dispatch(requestOf({ providerModelId: 'waiting' }), { requestId: 'chatcmpl-1', traceparent: '', signal, onAbort: (listener) => listener(new Fault('cancelled', 'left')), remainingMs: () => Infinity }, {
      write: (event) => events.push(event) > 0,
      drained: () => Promise.resolve(),
    });
    expect([events, provider.requests]).toEqual([[], []]);
    expect(log).toEqual(['start 1 after 0 requests', 'end', 'DELIVERED false']);
    expect(ends).toMatchObject([{ costNanoUsd: 0n, status: 0 }]);
  });

  describe('of prices with steps', () => {
    const dear = { ...CARD, id: 'card-2', inputUncached: '2000000000', outputText: '3000000000' };
    const list = { ...CARD, id: 'list-1', inputUncached: '4000000000' };
    const dearList = { ...CARD, id: 'list-2', inputUncached: '8000000000' };
    const steps = [{ fromPromptTokens: 0, card: CARD }, { fromPromptTokens: 1_000, card: dear }];
    const referenceSteps = [{ fromPromptTokens: 0, card: list }, { fromPromptTokens: 1_000, card: dearList }];
    /** As edge sends it: the cards are those of the estimate of the first round. */
    const stepped = (planned: number, over: Partial<DispatchRequest__Output> = {}): DispatchRequest__Output => {
      const isLong = planned >= 1_000;
      return requestOf({ stream: false, clientStream: false, promptTokens: planned, card: isLong ? dear : CARD, referenceCard: isLong ? dearList : list, steps, referenceSteps, ...over });
    };
    const answers = (told: number | undefined): void => {
      const usage = told === undefined ? {} : { usage: { prompt_tokens: told, completion_tokens: 5, total_tokens: told + 5 } };
      provider.enqueue({ body: JSON.stringify({ choices: [{ index: 0, message: { role: 'assistant', content: '12345678901234567890' }, finish_reason: 'stop' }], ...usage }) });
    };

    test.each([
      ['told beyond the step, estimated below it', 900, 1_100, 'card-1', 'card-2', 1_100n * 2_000n + 5n * 3_000n, 1_100n * 8_000n + 5n * 2_000n],
      ['told below the step, estimated beyond it', 1_100, 900, 'card-2', 'card-1', 900n * 1_000n + 5n * 2_000n, 900n * 4_000n + 5n * 2_000n],
      ['told at the step', 900, 1_000, 'card-1', 'card-2', 1_000n * 2_000n + 5n * 3_000n, 1_000n * 8_000n + 5n * 2_000n],
      ['told one below the step', 900, 999, 'card-1', 'card-1', 999n * 1_000n + 5n * 2_000n, 999n * 4_000n + 5n * 2_000n],
      ['told and estimated beyond the step', 1_100, 1_200, 'card-2', 'card-2', 1_200n * 2_000n + 5n * 3_000n, 1_200n * 8_000n + 5n * 2_000n],
      ['not told, estimated below the step', 900, undefined, 'card-1', 'card-1', 900n * 1_000n + 5n * 2_000n, 900n * 4_000n + 5n * 2_000n],
      ['not told, estimated beyond the step', 1_100, undefined, 'card-2', 'card-2', 1_100n * 2_000n + 5n * 3_000n, 1_100n * 8_000n + 5n * 2_000n],
    ])('a prompt %s is charged whole at the card for its size', async (_name, planned, told, begun, charged, cost, referenceCost) => {
      answers(told);
      const events = await run(stepped(planned));
      expect([starts[0]?.card.id, ends[0]?.costNanoUsd, ends[0]?.savingsNanoUsd]).toEqual([begun, cost, referenceCost - cost]);
      expect(ends[0]?.cards).toEqual(begun === charged ? undefined : { card: charged === 'card-2' ? dear : CARD, referenceCard: charged === 'card-2' ? dearList : list });
      expect(events.at(-1)?.end).toMatchObject({ costNanoUsd: String(cost), cardId: begun === charged ? '' : charged });
    });

    test('a round whose prompt has grown over the step since it was planned is begun at the card for its size', async () => {
      answers(undefined);
      const events = await run(stepped(900, { promptTokens: 1_100 }));
      expect([starts[0]?.card, starts[0]?.referenceCard, ends[0]?.cards]).toEqual([dear, dearList, undefined]);
      expect([ends[0]?.costNanoUsd, events.at(-1)?.end?.cardId]).toEqual([1_100n * 2_000n + 5n * 3_000n, 'card-2']);
    });

    test('a refused attempt costs nothing and keeps the card that it began at', async () => {
      provider.enqueue({ status: 500, body: '{}' });
      await run(stepped(1_100));
      expect(ends[0]).toMatchObject({ costNanoUsd: 0n, savingsNanoUsd: 0n });
      expect(ends[0]?.cards).toBeUndefined();
    });

    test.each([
      ['no card for short prompts', steps.slice(1)],
      ['a step without a card', [...steps, { fromPromptTokens: 2_000, card: null }]],
      ['a price that is no number', [...steps, { fromPromptTokens: 2_000, card: { ...dear, id: 'card-3', image: 'x' } }]],
    ])('a request with %s is refused before anything is journaled', async (_name, broken) => {
      await expect(run(stepped(900, { steps: broken }))).rejects.toMatchObject({ code: 'bad_message' });
      expect(log).toEqual([]);
    });
  });

  test('asks a provider that cuts its streams no more than its breaker allows: five in a row, then one in 30 s until one is whole', async () => {
    const half = { chunks: [text('half')], cut: true };
    const whole = { chunks: [text('Hello'), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: USAGE }), sse('[DONE]')] };
    provider.enqueue(half, half, half, half, half, half, whole, whole);
    const nth = (n: number): DispatchRequest__Output => requestOf({ requestId: `chatcmpl-${String(n)}` });
    for (let n = 0; n < 9; n += 1) await run(nth(n));
    expect(provider.requests.length).toBe(5);
    const started = log.filter((line) => line.startsWith('start')).length;
    expect(await run(nth(10))).toMatchObject([{ failed: { class: 'RATE_LIMITED', status: 0, retryable: true, retryAfterMs: 30_000 } }]);
    expect(log.filter((line) => line.startsWith('start')).length).toBe(started);
    clock.advance(30_000);
    await Promise.all([run(nth(11)), run(nth(12)), run(nth(13))]);
    expect(provider.requests.length).toBe(6);
    clock.advance(30_000);
    await run(nth(14));
    await run(nth(15));
    expect(provider.requests.length).toBe(8);
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

  const TOLD_FIRST = chunk([], { usage: { prompt_tokens: 12, completion_tokens: 0, prompt_tokens_details: { cached_tokens: 8 } } });

  test('of an answer that broke off the prompt is charged as it was told, and the client hears of it', async () => {
    provider.enqueue({ chunks: [TOLD_FIRST, text('Hello wo')], cut: true });
    const end = (await run(requestOf())).at(-1)?.end;
    expect(end).toMatchObject({ source: 'ESTIMATED', flags: ['estimated'], cut: { class: 'DISCONNECTED' }, tokens: { inputUncached: 4, cacheRead: 8, outputText: 2 }, cachedKnown: true, costNanoUsd: '12000' });
  });

  test('an answer behind its usage is not booked as none, and its checkpoints know its prompt', async () => {
    provider.enqueue({ chunks: [TOLD_FIRST, text('x'.repeat(8_192)), text('y'.repeat(1_808)), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), sse('[DONE]')] });
    const end = (await run(requestOf())).at(-1)?.end;
    expect(end).toMatchObject({ source: 'ESTIMATED', flags: ['estimated'], finishReason: 'stop', tokens: { inputUncached: 4, cacheRead: 8, outputText: 2_500 } });
    expect(checkpointed[0]).toMatchObject({ inputUncached: 4, cacheRead: 8 });
    expect(checkpointed[0]?.outputText).toBeGreaterThanOrEqual(2_048);
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

  test.each<[boolean, FaultCode, boolean]>([
    [false, 'link_lost', true],
    [false, 'deadline_exceeded', true],
    [false, 'cancelled', false],
    [true, 'link_lost', false],
  ])('a client (of a stream: %s) whose call ended by %s before its end has seen nothing: %s', async (clientStream, code, undelivered) => {
    provider.enqueue({ chunks: [text('Hello'), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: USAGE }), sse('[DONE]')] });
    await run(requestOf({ clientStream }), (event, leave) => {
      if (event.chunk?.content === true) leave(code);
    });
    expect(ends[0]?.undelivered).toBe(undelivered);
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
    [{ status: 400, body: { error: { message: 'house.key-7 may not ask for that' } } }, { class: 'BAD_REQUEST', publicMessage: '[redacted] may not ask for that' }],
    [{ chunks: [sse({ error: { message: 'overloaded', type: 'overloaded_error' } })] }, { class: 'PROVIDER_ERROR', retryable: true }],
    [{ chunks: ['data: {"choi\n\n'] }, { class: 'GARBAGE' }],
    [{ chunks: [sse('[DONE]')] }, { class: 'EMPTY' }],
    [{ chunks: [], cut: true }, { class: 'DISCONNECTED' }],
    // A stream that was asked for, answered by one object of JSON.
    [{ body: { error: { message: 'slow down', code: 429 } } }, { class: 'RATE_LIMITED', status: 429, retryable: true }],
    [{ body: { error: { message: 'temperature is too high', type: 'invalid_request_error' } } }, { class: 'BAD_REQUEST', status: 200, publicMessage: 'temperature is too high', retryable: false }],
  ])('classifies a failure before content and books it at 0: %#', async (answer, expected) => {
    provider.enqueue(answer);
    secrets[0] = 'house.key-7';
    dispatcher = createOn(systemClock);
    const events = await run(requestOf());
    expect(events.at(-1)?.failed).toMatchObject(expected);
    expect(ends[0]?.costNanoUsd).toBe(0n);
  });

  const asked = (): readonly unknown[] => provider.requests.map(({ headers }) => headers.authorization);
  test('a 429 on one of two credentials is told of the other, and closes the endpoint to nobody', async () => {
    secrets = ['sk-one', 'sk-two'];
    dispatcher = createOn(clock);
    provider.enqueue({ status: 429, headers: { 'retry-after': '600' }, body: {} }, { status: 429, headers: { 'retry-after': '7' }, body: {} });
    expect(await run(requestOf({ requestId: 'chatcmpl-1' }))).toMatchObject([{ failed: { class: 'RATE_LIMITED', status: 429, retryAfterMs: 0, otherCredential: true } }]);
    expect((await run(requestOf({ requestId: 'chatcmpl-1', attempt: 2, retryOf: [1] }))).at(-1)?.failed).toMatchObject({ class: 'RATE_LIMITED', status: 429, retryAfterMs: 7_000, otherCredential: false });
    expect(asked()).toEqual(['Bearer sk-one', 'Bearer sk-two']);
    expect(await run(requestOf({ requestId: 'chatcmpl-2' }))).toMatchObject([{ failed: { class: 'RATE_LIMITED', status: 0, retryAfterMs: 7_000 } }]);
    expect(observed.map(({ failure: kind, retryAfterMs }) => [kind, retryAfterMs])).toEqual([['RATE_LIMITED', 0], ['RATE_LIMITED', 7_000], ['RATE_LIMITED', 7_000]]);
  });

  test('a 429 without a hint is tried on the other credential, and rests none where there is no other', async () => {
    secrets = ['sk-one', 'sk-two', 'sk-three'];
    dispatcher = createOn(clock);
    provider.enqueue(...Array.from({ length: 6 }, () => ({ status: 429, body: {} })));
    for (const otherCredential of [true, true, false, false]) expect(await run(requestOf())).toMatchObject([{ failed: { retryAfterMs: 0, otherCredential } }]);
    expect(asked()).toEqual(['Bearer sk-one', 'Bearer sk-two', 'Bearer sk-three', 'Bearer sk-three']);
    clock.advance(1_000);
    await run(requestOf());
    expect(asked().at(-1)).toBe('Bearer sk-one');
  });

  test('a refused credential leaves the endpoint to the other; when that is refused too, the endpoint waits for the bench', async () => {
    secrets = ['sk-one', 'sk-two'];
    dispatcher = createOn(clock);
    provider.enqueue({ status: 401, body: {} }, { status: 403, body: {} });
    expect(await run(requestOf())).toMatchObject([{ failed: { class: 'CREDENTIAL', retryAfterMs: 0, otherCredential: true } }]);
    clock.advance(10_000);
    expect(await run(requestOf())).toMatchObject([{ failed: { class: 'CREDENTIAL', retryAfterMs: 20_000, otherCredential: false } }]);
    expect(observed.map(({ retryAfterMs }) => retryAfterMs)).toEqual([0, 20_000]);
  });

  test.each<[string, Readonly<Record<string, string>>, number]>([
    ['seconds', { 'retry-after': '7' }, 7_000],
    ['milliseconds', { 'retry-after-ms': '7000', 'retry-after': '9' }, 7_000],
    ['a date', { 'retry-after': new Date(createFakeClock().nowMs() + 7_000).toUTCString() }, 7_000],
    ['a date too far away', { 'retry-after': 'Fri, 31 Dec 2077 23:59:59 GMT' }, 600_000],
  ])('a 429 that names its end in %s: until then nothing is sent for that model, and the rest is told', async (_name, headers, waitMs) => {
    dispatcher = createOn(clock);
    provider.enqueue({ status: 429, headers, body: {} });
    expect(await run(requestOf({ requestId: 'chatcmpl-1' }))).toMatchObject([{ failed: { class: 'RATE_LIMITED', status: 429, retryAfterMs: waitMs } }]);
    clock.advance(waitMs - 1);
    expect(await run(requestOf({ requestId: 'chatcmpl-2' }))).toMatchObject([{ failed: { class: 'RATE_LIMITED', status: 0, retryable: true, retryAfterMs: 1 } }]);
    expect(provider.requests).toHaveLength(1);
    await run(requestOf({ requestId: 'chatcmpl-3', providerModelId: 'fake-2' }));
    expect(provider.requests).toHaveLength(2);
    clock.advance(1);
    await run(requestOf({ requestId: 'chatcmpl-4' }));
    expect(provider.requests).toHaveLength(3);
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

  test('an answer of many choices is as long as all of them together', async () => {
    const choices = 20;
    const long = 'abcd'.repeat(2_000);
    const finish = Array.from({ length: choices }, (_, index) => chunk([{ index, delta: {}, finish_reason: 'stop' }]));
    provider.enqueue({ chunks: [...Array.from({ length: choices }, (_, index) => chunk([{ index, delta: { content: long }, finish_reason: null }])), ...finish, chunk([], { usage: USAGE }), sse('[DONE]')] });
    const events = await run(requestOf({ maxTokens: 2_000, fields: [{ name: 'messages', value: Buffer.from('[{"role":"user","content":"hi"}]') }, { name: 'n', value: Buffer.from(String(choices)) }] }));
    expect(events.at(-1)?.end).toMatchObject({ finishReason: 'stop', source: 'PROVIDER' });
  });

  test.each([
    ['a round that gave a stream nothing but calls', true, '', true], ['one that spoke before its calls', true, 'Let me see. ', false], ['one whose client takes no stream', false, 'Let me see. ', true], ['calls of a request that is asked once', true, '', undefined],
  ])('%s is told apart in the journal', async (_case, clientStream, said, callsOnly) => {
    const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'code_exec', arguments: '{}' } };
    provider.enqueue({ chunks: [chunk([{ index: 0, delta: { role: 'assistant', content: said }, finish_reason: null }]), chunk([{ index: 0, delta: { tool_calls: [call] }, finish_reason: null }]), chunk([{ index: 0, delta: {}, finish_reason: 'tool_calls' }]), chunk([], { usage: USAGE }), sse('[DONE]')] });
    await run(requestOf({ rounds: callsOnly !== undefined, clientStream, gather: !clientStream }));
    expect(ends[0]?.callsOnly).toBe(callsOnly ?? false);
  });

  describe('with a hold that covers the first tranche', () => {
    const FINISH = chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]);
    /** 100 tokens as they are counted: 300 bytes. */
    const hundreds = (count: number): string[] => Array.from({ length: count }, () => text('abc '.repeat(75)));
    const held = (over: Partial<DispatchRequest__Output> = {}): DispatchRequest__Output => requestOf({ maxTokens: 5_000, heldNanoUsd: '1000', heldTokens: '1100', heldOutputTokens: 1_024, outputPriceMax: '2000000', wholeNanoUsd: '9000', ...over });
    const deltasOf = (events: readonly DispatchEvent[]) => events.flatMap((event) => (event.chunk === undefined ? [] : (JSON.parse(String(event.chunk?.choices)) as { delta: { content?: string }; finish_reason: string | null }[])));

    test('asks for another when three quarters are used, at the price of its output, and gives the whole answer', async () => {
      provider.enqueue({ chunks: [...hundreds(20), FINISH, chunk([], { usage: { ...USAGE, completion_tokens: 2_000 } }), sse('[DONE]')] });
      const events = await run(held());
      expect(deltasOf(events).reduce((sum, { delta }) => sum + (delta.content?.length ?? 0), 0)).toBe(6_000);
      expect(extended).toEqual(['3048 2124', '5096 3148']);
      expect(events.at(-1)?.end).toMatchObject({ finishReason: 'stop', stoppedBy: '', source: 'PROVIDER', tokens: { outputText: 2_000 } });
    });

    test('never asks for more than the whole answer', async () => {
      provider.enqueue({ chunks: [...hundreds(10), FINISH, chunk([], { usage: USAGE }), sse('[DONE]')] });
      await run(held({ maxTokens: 1_030, wholeNanoUsd: '1011' }));
      expect(extended).toEqual(['1011 1106']);
    });

    test('stops 64 tokens before its end when no more is granted, finished for its length, and charges what was given', async () => {
      grants = [false];
      provider.enqueue({ chunks: hundreds(40), hang: true });
      const events = await run(held());
      const deltas = deltasOf(events);
      const bytes = deltas.reduce((sum, { delta }) => sum + (delta.content?.length ?? 0), 0);
      // 960 tokens, and what the read in which they were reached brought.
      expect(bytes).toBeGreaterThanOrEqual(960 * 3);
      expect(bytes).toBeLessThanOrEqual(960 * 3 + 2_048);
      expect(deltas.at(-1)?.finish_reason).toBe('length');
      expect(events.at(-1)?.end).toMatchObject({ finishReason: 'length', stoppedBy: 'cost_cap', source: 'ESTIMATED' });
      expect(Number(ends[0]?.tokens.outputText)).toBeLessThanOrEqual(1_024);
      expect(extended.length).toBeGreaterThan(1);
    });

    test('the shortest of holds gives some answer before it stops', async () => {
      grants = [false];
      provider.enqueue({ chunks: Array.from({ length: 100 }, () => text('abc ')), hang: true });
      const events = await run(held({ heldOutputTokens: 64, heldTokens: '140' }));
      const deltas = deltasOf(events);
      expect(deltas.reduce((sum, { delta }) => sum + (delta.content?.length ?? 0), 0)).toBeGreaterThanOrEqual(32 * 3);
      expect(deltas.at(-1)?.finish_reason).toBe('length');
      expect(Number(ends[0]?.tokens.outputText)).toBeLessThanOrEqual(64);
    });

    test('an estimate of ours is never above the hold, however long its last chunk', async () => {
      grants = [false];
      provider.enqueue({ chunks: [...hundreds(9), text('incomprehensibilities '.repeat(300))], hang: true });
      const { end } = (await run(held())).at(-1) ?? {};
      expect(end).toMatchObject({ stoppedBy: 'cost_cap', source: 'ESTIMATED', tokens: { outputText: 1_024 } });
    });

    test('nor is a prompt that is told before the answer breaks', async () => {
      const toldPrompt = (promptTokens: number): string => chunk([], { usage: { prompt_tokens: promptTokens, completion_tokens: 0 } });
      provider.enqueue({ chunks: [toldPrompt(76), text('Hello wo')], cut: true }, { chunks: [toldPrompt(77), text('Hello wo')], cut: true });
      expect((await run(held())).at(-1)?.end).toMatchObject({ tokens: { inputUncached: 76, outputText: 2 } });
      expect((await run(held())).at(-1)?.end).toMatchObject({ tokens: { inputUncached: 10, outputText: 2 } });
    });

    const AWAY = new Fault('quota_unavailable', 'away');

    test.each([['a stream', true], ['an answer that is gathered', false]])('quota that stays away at the end of the hold of %s is a fault of ours after five seconds, never a cost cap', async (_name, clientStream) => {
      dispatcher = createOn(clock);
      grants = [AWAY];
      provider.enqueue({ chunks: hundreds(40), hang: true });
      const startMs = clock.monotonicMs();
      let isOver = false;
      const running = run(held({ clientStream, gather: !clientStream })).finally(() => (isOver = true));
      while (!isOver) {
        await clock.advanceAsync(250);
        await new Promise((resolve) => setImmediate(resolve));
      }
      const { end } = (await running).at(-1) ?? {};
      expect(end).toMatchObject({ cut: { class: 'QUOTA_AWAY', retryable: false }, finishReason: 'error', stoppedBy: '', source: 'ESTIMATED' });
      expect(ends[0]).toMatchObject({ failure: 'QUOTA_AWAY', finishReason: 'error' });
      expect(Number(end?.tokens?.outputText)).toBeLessThanOrEqual(1_024);
      expect(Number(end?.cut?.retryAfterMs)).toBeGreaterThanOrEqual(2_000);
      expect(clock.monotonicMs() - startMs).toBeGreaterThanOrEqual(5_000);
      // The endpoint is well: five such ends in a row would else have opened its breaker.
      provider.enqueue({ chunks: [text('a'), FINISH, chunk([], { usage: USAGE }), sse('[DONE]')] });
      expect((await run(requestOf())).at(-1)?.end).toMatchObject({ finishReason: 'stop' });
    });

    test('an answer outwaits a quota that comes back, without a word', async () => {
      grants = [AWAY, AWAY, AWAY, AWAY, AWAY, AWAY, true];
      provider.enqueue({ chunks: [[...hundreds(20), FINISH, chunk([], { usage: { ...USAGE, completion_tokens: 2_000 } }), sse('[DONE]')].join('')] });
      const events = await run(held());
      expect(deltasOf(events).reduce((sum, { delta }) => sum + (delta.content?.length ?? 0), 0)).toBe(6_000);
      expect(events.at(-1)?.end).toMatchObject({ finishReason: 'stop', stoppedBy: '', source: 'PROVIDER' });
    });

    test('a grant too small to go on, after a quota that was away, is followed by another question', async () => {
      const most = text('abc '.repeat(202));
      grants = [AWAY, AWAY, false, false, false, false, true];
      provider.enqueue({ chunks: [[most, most, most, most, most, most, FINISH, chunk([], { usage: USAGE }), sse('[DONE]')].join('')] });
      expect((await run(held())).at(-1)?.end).toMatchObject({ finishReason: 'stop', stoppedBy: '' });
    });

    test('waits for the answer to its question, however fast the provider is', async () => {
      let answer: (isGranted: boolean) => void = () => undefined;
      grants = [new Promise((resolve) => (answer = resolve)), true];
      provider.enqueue({ chunks: [[...hundreds(20), FINISH, chunk([], { usage: USAGE }), sse('[DONE]')].join('')] });
      let given = 0;
      const done = run(held(), (event) => {
        given += event.chunk?.choices?.length ?? 0;
      });
      while (extended.length === 0) await new Promise((resolve) => setImmediate(resolve));
      await new Promise((resolve) => setImmediate(resolve));
      const before = given;
      expect(before).toBeLessThan(1_024 * 3 + 4_096);
      answer(true);
      const events = await done;
      expect(given).toBeGreaterThan(before);
      expect(events.at(-1)?.end).toMatchObject({ finishReason: 'stop', stoppedBy: '' });
    });

    test('a provider that goes on beyond max_tokens is stopped once its tokens cannot be so few, and what was held is charged at most', async () => {
      const whole = 1_100;
      provider.enqueue({ chunks: Array.from({ length: 40 }, () => text('abc '.repeat(250))), hang: true });
      const events = await run(held({ maxTokens: whole, wholeNanoUsd: '1090' }));
      const bytes = deltasOf(events).reduce((sum, { delta }) => sum + (delta.content?.length ?? 0), 0);
      expect(bytes).toBeGreaterThan(whole * 16);
      expect(bytes).toBeLessThanOrEqual(whole * 16 + 6_144);
      expect(events.at(-1)?.end).toMatchObject({ finishReason: 'length', source: 'ESTIMATED', tokens: { outputText: whole } });
    });

    test('where there is no room for a tranche it asks for half, and for more again once that was granted', async () => {
      grants = [false, false, true];
      provider.enqueue({ chunks: [...hundreds(20), FINISH, chunk([], { usage: USAGE }), sse('[DONE]')] });
      await run(held());
      expect(extended.slice(0, 4)).toEqual(['3048 2124', '2024 1612', '1512 1356', '2536 1868']);
    });

    test('goes on when a refusal is followed by a grant', async () => {
      grants = [false, true];
      provider.enqueue({ chunks: [...hundreds(12), FINISH, chunk([], { usage: USAGE }), sse('[DONE]')] });
      expect((await run(held())).at(-1)?.end).toMatchObject({ finishReason: 'stop', stoppedBy: '' });
    });

    test('an answer that ends by itself in the read that reaches the stop is not stopped', async () => {
      grants = [false];
      provider.enqueue({ chunks: [...hundreds(9), `${text('abc '.repeat(50))}${FINISH}${chunk([], { usage: USAGE })}${sse('[DONE]')}`] });
      expect((await run(held())).at(-1)?.end).toMatchObject({ finishReason: 'stop', stoppedBy: '' });
    });

    test('a shortened answer that the provider ends for its length says what shortened it', async () => {
      provider.enqueue({ chunks: [text('abc'), chunk([{ index: 0, delta: {}, finish_reason: 'length' }]), chunk([], { usage: USAGE }), sse('[DONE]')] });
      expect((await run(requestOf({ maxTokens: 70, shortened: true }))).at(-1)?.end).toMatchObject({ finishReason: 'length', stoppedBy: 'cost_cap' });
    });
  });

  describe('gathered for a client without a stream', () => {
    test('one body says what all chunks said', async () => {
      const call = (more: object) => chunk([{ index: 0, delta: { tool_calls: [{ index: 0, ...more }] }, finish_reason: null }]);
      provider.enqueue({
        chunks: [
          chunk([{ index: 0, delta: { role: 'assistant', reasoning_content: 'Hm' }, logprobs: null, finish_reason: null }]), text('Hel'), text('lo'), chunk([{ index: 1, delta: { content: 'You' }, finish_reason: null }]),
          call({ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a"' } }), call({ function: { arguments: ':1}' } }),
          chunk([{ index: 0, delta: {}, finish_reason: 'tool_calls' }]), chunk([{ index: 1, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: USAGE }), sse('[DONE]'),
        ],
      });
      const events = await run(requestOf({ clientStream: false, gather: true }));
      expect(events.map((event) => Object.keys(event)[0])).toEqual(['head', 'body', 'end']);
      expect(JSON.parse(String(events[1]?.body?.choices))).toEqual([
        { index: 0, message: { role: 'assistant', content: 'Hello', refusal: null, reasoning_content: 'Hm', tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }].map(({ index, ...rest }) => (index === 0 ? rest : {})) }, logprobs: null, finish_reason: 'tool_calls' },
        { index: 1, message: { role: 'assistant', content: 'You', refusal: null }, logprobs: null, finish_reason: 'stop' },
      ]);
      expect(events[2]?.end).toMatchObject({ costNanoUsd: '20000', finishReason: 'tool_calls' });
    });

    test('no checkpoint says that anything was delivered before the body is', async () => {
      const long = { chunks: [text('x'.repeat(8_192)), text('y'), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), sse('[DONE]')] };
      provider.enqueue(long, long);
      await run(requestOf({ maxTokens: 9_000 }));
      expect(checkpoints).not.toEqual([]);
      checkpoints = [];
      await run(requestOf({ maxTokens: 9_000, clientStream: false, gather: true }));
      expect(checkpoints).toEqual([]);
    });

    test('nor does one of a round that gave its client nothing but calls', async () => {
      const call = (args: string) => chunk([{ index: 0, delta: { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'code_exec', arguments: args } }] }, finish_reason: null }]);
      const round = (said: string) => ({ chunks: [text(said), call(`"${'x'.repeat(8_192)}`), call('y"'), chunk([{ index: 0, delta: {}, finish_reason: 'tool_calls' }]), sse('[DONE]')] });
      provider.enqueue(round(''), round('Let me see.'));
      await run(requestOf({ maxTokens: 9_000, rounds: true }));
      expect(checkpoints).toEqual([]);
      await run(requestOf({ maxTokens: 9_000, rounds: true }));
      expect(checkpoints).not.toEqual([]);
    });

    test('a stream that breaks gives no body, so that another attempt may answer', async () => {
      provider.enqueue({ chunks: [text('Hel')], cut: true });
      const events = await run(requestOf({ clientStream: false, gather: true }));
      expect(events.map((event) => Object.keys(event)[0])).toEqual(['head', 'end']);
      expect(events[1]?.end).toMatchObject({ cut: { class: 'DISCONNECTED' } });
    });
  });

  test('a choice that begins after another has finished is waited for', async () => {
    const time = createFakeClock();
    dispatcher = createOn(time);
    let goOn: () => void = () => undefined;
    const told = new Promise<void>((resolve) => (goOn = resolve));
    const of = (index: number, delta: object, reason: string | null): string => chunk([{ index, delta, finish_reason: reason }]);
    provider.enqueue({
      chunks: [of(0, { content: 'one' }, null), of(0, {}, 'stop'), of(1, { content: 'two' }, null), () => told, of(1, { content: ' and more' }, null), of(1, {}, 'stop'), chunk([], { usage: USAGE }), sse('[DONE]')],
    });
    const events = await run(requestOf(), (event) => {
      if (event.chunk?.choices?.toString().includes('two') !== true) return;
      // Its own end is 2 s after the finish of all that there was.
      setImmediate(() => {
        time.advance(3_000);
        goOn();
      });
    });
    expect(events.map((event) => event.chunk?.choices?.toString() ?? '').join('')).toContain('and more');
    expect(events.at(-1)?.end).toMatchObject({ source: 'PROVIDER', costNanoUsd: '20000' });
  });

  const finishesOf = (events: readonly DispatchEvent[]): unknown[] =>
    events.flatMap((event) => (event.chunk === undefined ? [] : (JSON.parse(String(event.chunk?.choices)) as { index: number; finish_reason: string | null }[]).flatMap(({ index, finish_reason: reason }) => (reason === null ? [] : [[index, reason]]))));
  const saidIn = (events: readonly DispatchEvent[]): string =>
    events.flatMap((event) => (event.chunk === undefined ? [] : (JSON.parse(String(event.chunk?.choices)) as { delta: { content?: string } }[]).map(({ delta }) => delta.content ?? ''))).join('');
  /** Lets `ms` pass on the clock between two chunks. */
  const pause = (time: FakeClock, ms: number) => async (): Promise<void> => {
    // What was written before has to be read first.
    await new Promise((resolve) => setTimeout(resolve, 50));
    time.advance(ms);
  };

  test.each([
    ['a choice that begins long after another has finished', 2, [[0, 'one', 'stop'], [1, 'two', 'stop']], 'onetwo', [[0, 'stop'], [1, 'stop']]],
    ['text long after a finish in each chunk', 1, [[0, 'one', 'stop'], [0, 'two', 'stop'], [0, 'three', 'stop']], 'onetwothree', [[0, 'stop']]],
  ])('%s is waited for', async (_name, n, said, expected, finishes) => {
    const time = createFakeClock();
    dispatcher = createOn(time);
    const chunks = said.map(([index, content, reason]) => chunk([{ index, delta: { content }, finish_reason: reason }]));
    provider.enqueue({ chunks: [...chunks.slice(0, -1), pause(time, 3_000), ...chunks.slice(-1), chunk([], { usage: USAGE }), sse('[DONE]')] });
    const events = await run(requestOf({ fields: [{ name: 'n', value: Buffer.from(String(n)) }] }));
    expect([saidIn(events), finishesOf(events)]).toEqual([expected, finishes]);
    expect(events.at(-1)?.end).toMatchObject({ source: 'PROVIDER', costNanoUsd: '20000' });
  });

  const CALL = chunk([{ index: 0, delta: { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '' } }] }, finish_reason: null }]);

  test.each([['says nothing more', { hang: true }], ['breaks', { cut: true }]])('a provider that %s after the finish has given a whole answer', async (_name, ending) => {
    const time = createFakeClock();
    dispatcher = createOn(time);
    provider.enqueue({ chunks: [CALL, chunk([{ index: 0, delta: {}, finish_reason: 'tool_calls' }]), pause(time, 'hang' in ending ? 2_000 : 0)], ...ending });
    const events = await run(requestOf());
    expect(finishesOf(events)).toEqual([[0, 'tool_calls']]);
    expect(events.map((event) => event.chunk?.choices?.toString() ?? '').join('')).toContain('{"arguments":"{}"}');
    expect(events.at(-1)?.end).toMatchObject({ finishReason: 'tool_calls', source: 'ESTIMATED', flags: ['estimated'] });
    expect(events.at(-1)?.end?.cut).toBeUndefined();
  });

  test('one that fails without an error that is known ends with an error, not with a stop', async () => {
    provider.enqueue({ chunks: [text('Half'), sse({ detail: 'Internal Server Error' }), sse('[DONE]')] });
    expect((await run(requestOf())).at(-1)?.end).toMatchObject({ finishReason: 'error', cut: { class: 'DISCONNECTED' } });
  });

  describe('after the last event of a stream', () => {
    const whole = [text('Hello'), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: USAGE }), sse('[DONE]')];
    const until = async (condition: () => boolean | undefined): Promise<void> => {
      while (condition() !== true) await new Promise<void>((resolve) => setImmediate(resolve));
    };

    test('the connection serves the next request', async () => {
      const answer = { body: whole.join(''), headers: { 'content-type': 'text/event-stream' } };
      provider.enqueue(answer, answer, answer);
      for (let n = 0; n < 3; n += 1) {
        expect((await run(requestOf())).at(-1)?.end).toMatchObject({ source: 'PROVIDER', flags: [] });
        // The pool hears of a free connection in the next turn.
        await new Promise<void>((resolve) => setImmediate(resolve));
      }
      expect(new Set(provider.requests.map(({ clientPort }) => clientPort)).size).toBe(1);
    });

    test('a provider that does not end it has a second', async () => {
      const time = createFakeClock();
      dispatcher = createOn(time);
      provider.enqueue({ chunks: whole, hang: true });
      expect((await run(requestOf())).at(-1)?.end).toMatchObject({ source: 'PROVIDER' });
      time.advance(999);
      expect(provider.requests[0]?.wasAborted()).toBe(false);
      time.advance(1);
      await until(() => provider.requests[0]?.wasAborted());
    });

    test('a provider that goes on is cut', async () => {
      let goOn = (): void => undefined;
      const gate = new Promise<void>((resolve) => {
        goOn = resolve;
      });
      provider.enqueue({ chunks: [...whole, () => gate, text('x'.repeat(8_192))], hang: true });
      expect((await run(requestOf())).at(-1)?.end).toMatchObject({ source: 'PROVIDER' });
      goOn();
      await until(() => provider.requests[0]?.wasAborted());
    });
  });

  test('fails on the first byte timer when the provider says nothing', async () => {
    provider.enqueue({ hang: true });
    expect((await run(requestOf({ firstByteTimeoutMs: 50 }))).at(-1)?.failed).toMatchObject({ class: 'TIMEOUT_FIRST_BYTE' });
  });
});
