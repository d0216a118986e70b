import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import { Fault } from '@signalbox/kernel/fault';
import { systemClock } from '@signalbox/runtime/clock';
import { sse } from '@signalbox/testkit/fake-provider';
import { oneTurn, until } from '@signalbox/testkit/until';
import { chunk, requestOf, startDispatchRig, text, type DispatchRig, USAGE } from './testing/dispatch-rig.js';

let rig: DispatchRig;
beforeEach(async () => {
  rig = await startDispatchRig();
});
afterEach(() => rig.stop());

test('calls a provider that cuts its streams no more than its breaker allows: five in a row, then one in 30 s until one is complete', async () => {
  rig.use(rig.clock);
  const half = { chunks: [text('half')], cut: true };
  const whole = { chunks: [text('Hello'), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: USAGE }), sse('[DONE]')] };
  rig.provider.enqueue(half, half, half, half, half, half, whole, whole);
  const nth = (n: number): DispatchRequest__Output => requestOf({ requestId: `chatcmpl-${String(n)}` });
  for (let n = 0; n < 9; n += 1) await rig.run(nth(n));
  expect(rig.provider.requests.length).toBe(5);
  const started = rig.log.filter((line) => line.startsWith('start')).length;
  expect(await rig.run(nth(10))).toMatchObject([{ failed: { class: 'RATE_LIMITED', status: 0, retryable: true, retryAfterMs: 30_000 } }]);
  expect(rig.log.filter((line) => line.startsWith('start')).length).toBe(started);
  rig.clock.advance(30_000);
  await Promise.all([rig.run(nth(11)), rig.run(nth(12)), rig.run(nth(13))]);
  expect(rig.provider.requests.length).toBe(6);
  rig.clock.advance(30_000);
  await rig.run(nth(14));
  await rig.run(nth(15));
  expect(rig.provider.requests.length).toBe(8);
});

test('an endpoint that refuses streams to its organization answers other calls, and no stream is sent to it for half a minute', async () => {
  rig.use(rig.clock);
  const refused = { status: 400, body: { error: { message: 'Your organization must be verified to stream this model.', type: 'invalid_request_error', param: 'stream', code: 'unsupported_value' } } };
  const whole = { body: { choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }], usage: USAGE } };
  const nth = (n: number, stream = true): DispatchRequest__Output => requestOf({ requestId: `chatcmpl-${String(n)}`, stream });
  rig.provider.enqueue(refused);
  expect(await rig.run(nth(1))).toMatchObject([{ failed: { class: 'NOT_FOUND', retryable: true, publicMessage: '' } }]);
  for (let n = 2; n < 8; n += 1) expect(await rig.run(nth(n))).toMatchObject([{ failed: { class: 'RATE_LIMITED', status: 0, retryable: true, retryAfterMs: 30_000 } }]);
  expect(rig.provider.requests.length).toBe(1);
  rig.provider.enqueue(whole);
  expect((await rig.run(nth(8, false))).at(-1)).toMatchObject({ end: { finishReason: 'stop' } });
  for (let n = 9; n < 15; n += 1) {
    rig.clock.advance(30_000);
    rig.provider.enqueue(refused);
    expect(await rig.run(nth(n))).toMatchObject([{ failed: { class: 'NOT_FOUND' } }]);
  }
  rig.provider.enqueue(whole);
  expect((await rig.run(nth(15, false))).at(-1)).toMatchObject({ end: { finishReason: 'stop' } });
  // Routing counts them as refused requests, too.
  expect(rig.observed.filter(({ ok }) => ok === false).map(({ failure }) => failure)).toEqual(Array.from({ length: 7 }, () => 'BAD_REQUEST'));
});

test('what a model wrote wrongly does not shut its endpoint off for others', async () => {
  rig.use(rig.clock);
  const miswritten = { chunks: [chunk([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: 'error', native_finish_reason: 'MALFORMED_FUNCTION_CALL' }]), sse('[DONE]')] };
  rig.provider.enqueue(...Array.from({ length: 12 }, () => miswritten));
  for (let n = 0; n < 12; n += 1) expect(await rig.run(requestOf({ requestId: `chatcmpl-${String(n)}` }))).toMatchObject([{ failed: { class: 'PROVIDER_ERROR', status: 200, retryable: true } }]);
  expect(rig.observed.map(({ ok, failure }) => [ok, failure])).toEqual(Array.from({ length: 12 }, () => [false, 'BAD_REQUEST']));
  expect(rig.ends.map(({ failure }) => failure)).toEqual(Array.from({ length: 12 }, () => 'PROVIDER_ERROR'));
});

test.each([
  [
    { status: 429, headers: { 'retry-after': '2' }, body: { error: { message: 'slow down' } } },
    { class: 'RATE_LIMITED', retryAfterMs: 2_000, retryable: true },
  ],
  [
    { status: 500, body: '<html>oops</html>' },
    { class: 'PROVIDER_ERROR', retryable: true, publicMessage: '' },
  ],
  [{ status: 302, headers: { location: 'http://127.0.0.1:1/' }, body: '' }, { class: 'PROVIDER_ERROR' }],
  [
    { status: 400, body: { error: { message: 'bad key sk-abcdef123456 in temperature', param: 'temperature' } } },
    { class: 'BAD_REQUEST', publicMessage: 'bad key [redacted] in temperature', publicParam: 'temperature', retryable: false },
  ],
  [
    { status: 400, body: { error: { message: 'house.key-7 may not ask for that' } } },
    { class: 'BAD_REQUEST', publicMessage: '[redacted] may not ask for that' },
  ],
  [{ chunks: [sse({ error: { message: 'overloaded', type: 'overloaded_error' } })] }, { class: 'PROVIDER_ERROR', retryable: true }],
  [{ chunks: ['data: {"choi\n\n'] }, { class: 'GARBAGE' }],
  [{ chunks: [sse('[DONE]')] }, { class: 'EMPTY' }],
  [{ chunks: [], cut: true }, { class: 'DISCONNECTED' }],
  // A stream was requested, and one JSON object is the answer.
  [{ body: { error: { message: 'slow down', code: 429 } } }, { class: 'RATE_LIMITED', status: 429, retryable: true }],
  [
    { body: { error: { message: 'temperature is too high', type: 'invalid_request_error' } } },
    { class: 'BAD_REQUEST', status: 200, publicMessage: 'temperature is too high', retryable: false },
  ],
])('classifies a failure before content and books it at 0: %#', async (answer, expected) => {
  rig.provider.enqueue(answer);
  rig.use(systemClock, { secrets: ['house.key-7'] });
  const events = await rig.run(requestOf());
  expect(events.at(-1)?.failed).toMatchObject(expected);
  expect(rig.ends[0]?.costNanoUsd).toBe(0n);
});

const asked = (): readonly unknown[] => rig.provider.requests.map(({ headers }) => headers.authorization);
test('a 429 on one of two credentials says that the other is free, and does not close the endpoint', async () => {
  rig.use(rig.clock, { secrets: ['sk-one', 'sk-two'] });
  rig.provider.enqueue({ status: 429, headers: { 'retry-after': '600' }, body: {} }, { status: 429, headers: { 'retry-after': '7' }, body: {} });
  expect(await rig.run(requestOf({ requestId: 'chatcmpl-1' }))).toMatchObject([
    { failed: { class: 'RATE_LIMITED', status: 429, retryAfterMs: 0, otherCredential: true } },
  ]);
  expect((await rig.run(requestOf({ requestId: 'chatcmpl-1', attempt: 2, retryOf: [1] }))).at(-1)?.failed).toMatchObject({
    class: 'RATE_LIMITED',
    status: 429,
    retryAfterMs: 7_000,
    otherCredential: false,
  });
  expect(asked()).toEqual(['Bearer sk-one', 'Bearer sk-two']);
  expect(await rig.run(requestOf({ requestId: 'chatcmpl-2' }))).toMatchObject([{ failed: { class: 'RATE_LIMITED', status: 0, retryAfterMs: 7_000 } }]);
  expect(rig.observed.map(({ failure: kind, retryAfterMs }) => [kind, retryAfterMs])).toEqual([
    ['RATE_LIMITED', 0],
    ['RATE_LIMITED', 7_000],
    ['RATE_LIMITED', 7_000],
  ]);
});

test('two credentials that are limited one after the other: each reports its own wait, even if the first is free again when the second answers', async () => {
  rig.use(rig.clock, { secrets: ['sk-one', 'sk-two'] });
  rig.provider.enqueue(...Array.from({ length: 2 }, () => ({ status: 429, headers: { 'retry-after': '2' }, body: {} })));
  expect((await rig.run(requestOf())).at(-1)?.failed).toMatchObject({ retryAfterMs: 0, otherCredential: true, hintMs: 2_000 });
  rig.clock.advance(2_000);
  expect((await rig.run(requestOf({ attempt: 2, retryOf: [1] }))).at(-1)?.failed).toMatchObject({ retryAfterMs: 0, otherCredential: true, hintMs: 2_000 });
  expect(asked()).toEqual(['Bearer sk-one', 'Bearer sk-two']);
});

test('a 429 without a hint rests the credential if there is another one to use, and not otherwise', async () => {
  rig.use(rig.clock, { secrets: ['sk-one', 'sk-two', 'sk-three'] });
  rig.provider.enqueue(...Array.from({ length: 6 }, () => ({ status: 429, body: {} })));
  for (const otherCredential of [true, true, false, false])
    expect(await rig.run(requestOf())).toMatchObject([{ failed: { retryAfterMs: 0, otherCredential } }]);
  expect(asked()).toEqual(['Bearer sk-one', 'Bearer sk-two', 'Bearer sk-three', 'Bearer sk-three']);
  rig.clock.advance(1_000);
  await rig.run(requestOf());
  expect(asked().at(-1)).toBe('Bearer sk-one');
});

test('a refused credential leaves the endpoint to the other; when that is refused too, the endpoint waits for the bench', async () => {
  rig.use(rig.clock, { secrets: ['sk-one', 'sk-two'] });
  rig.provider.enqueue({ status: 401, body: {} }, { status: 403, body: {} });
  expect(await rig.run(requestOf())).toMatchObject([{ failed: { class: 'CREDENTIAL', retryAfterMs: 0, otherCredential: true } }]);
  rig.clock.advance(10_000);
  expect(await rig.run(requestOf())).toMatchObject([{ failed: { class: 'CREDENTIAL', retryAfterMs: 20_000, otherCredential: false } }]);
  expect(rig.observed.map(({ retryAfterMs }) => retryAfterMs)).toEqual([0, 20_000]);
});

test.each<[string, Readonly<Record<string, string>>, number]>([
  ['seconds', { 'retry-after': '7' }, 7_000],
  ['milliseconds', { 'retry-after-ms': '7000', 'retry-after': '9' }, 7_000],
  ['a date, by the provider’s own clock', { date: 'Tue, 01 Jan 2030 00:00:00 GMT', 'retry-after': 'Tue, 01 Jan 2030 00:00:07 GMT' }, 7_000],
  ['a date too far away', { 'retry-after': 'Fri, 31 Dec 2077 23:59:59 GMT' }, 600_000],
])('a 429 with a hint in %s: until then nothing is sent for that model, and the remaining wait is reported', async (_name, headers, waitMs) => {
  rig.use(rig.clock);
  rig.provider.enqueue({ status: 429, headers, body: {} });
  expect(await rig.run(requestOf({ requestId: 'chatcmpl-1' }))).toMatchObject([{ failed: { class: 'RATE_LIMITED', status: 429, retryAfterMs: waitMs } }]);
  rig.clock.advance(waitMs - 1);
  expect(await rig.run(requestOf({ requestId: 'chatcmpl-2' }))).toMatchObject([
    { failed: { class: 'RATE_LIMITED', status: 0, retryable: true, retryAfterMs: 1 } },
  ]);
  expect(rig.provider.requests).toHaveLength(1);
  await rig.run(requestOf({ requestId: 'chatcmpl-3', providerModelId: 'fake-2' }));
  expect(rig.provider.requests).toHaveLength(2);
  rig.clock.advance(1);
  await rig.run(requestOf({ requestId: 'chatcmpl-4' }));
  expect(rig.provider.requests).toHaveLength(3);
});

test('a refusal whose body is cut off is still classified by its status', async () => {
  rig.provider.enqueue({ status: 401, chunks: ['{"err'], cut: true });
  expect(await rig.run(requestOf())).toMatchObject([{ failed: { class: 'CREDENTIAL', status: 401 } }]);
});

test('benches a refused credential: the next attempt reaches no provider', async () => {
  rig.provider.enqueue({ status: 401, body: { error: { message: 'no' } } });
  expect((await rig.run(requestOf())).at(-1)?.failed).toMatchObject({ class: 'CREDENTIAL' });
  expect((await rig.run(requestOf({ attempt: 2 }))).at(-1)?.failed).toMatchObject({ class: 'NO_CREDENTIAL' });
  expect(rig.provider.requests).toHaveLength(1);
});

test('reports when no credential is left for any model, and lets one call of any model try a credential after its bench', async () => {
  const REFUSED = { status: 401, body: { error: { message: 'no' } } };
  const whole = { chunks: [text('Hello'), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: USAGE }), sse('[DONE]')] };
  rig.use(rig.clock, { secrets: ['sk-one', 'sk-two'] });
  rig.provider.enqueue(REFUSED, REFUSED);
  await rig.run(requestOf({ endpointId: 'e1', providerModelId: 'm1' }));
  await rig.run(requestOf({ endpointId: 'e1', providerModelId: 'm1', attempt: 2 }));
  expect(await rig.run(requestOf({ endpointId: 'e2', providerModelId: 'm2' }))).toMatchObject([{ failed: { class: 'NO_CREDENTIAL', retryAfterMs: 30_000 } }]);
  expect(rig.observed.map(({ endpointId, benchedMs }) => [endpointId, benchedMs])).toEqual([
    ['e1', 0],
    ['e1', 30_000],
    ['e2', 30_000],
  ]);
  rig.clock.advance(30_000);
  let goOn: () => void = () => undefined;
  rig.provider.enqueue(REFUSED, { ...whole, chunks: [() => new Promise<void>((resolve) => (goOn = resolve)), ...whole.chunks] });
  const models = ['m1', 'm2', 'm3', 'm4'];
  const all = Promise.all(models.map((model) => rig.run(requestOf({ endpointId: model, providerModelId: model }))));
  await until(() => rig.provider.requests.length >= 4);
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
  // One call for each of the two, as long as neither has told anything.
  expect(rig.provider.requests.length).toBe(4);
  goOn();
  expect((await all).map((events) => events.at(-1)?.failed?.class ?? 'well').sort()).toEqual(['CREDENTIAL', 'RATE_LIMITED', 'RATE_LIMITED', 'well']);
  rig.provider.enqueue(whole, whole);
  await Promise.all(models.slice(2).map((model) => rig.run(requestOf({ endpointId: model, providerModelId: model }))));
  expect(rig.provider.requests.length).toBe(6);
});

test('a request too large for a minute of its account rests no credential and counts against no endpoint; another credential is tried once', async () => {
  const TOO_LARGE = { status: 429, headers: { 'retry-after': '30' }, body: { error: { message: 'Request too large for gpt-4.1 in organization org-abcdefgh on tokens per min (TPM): Limit 30000, Requested 37313.', type: 'tokens', code: 'rate_limit_exceeded' } } };
  const whole = { chunks: [text('Hello'), chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: USAGE }), sse('[DONE]')] };
  rig.use(rig.clock, { secrets: ['sk-one', 'sk-two'] });
  rig.provider.enqueue(...Array.from({ length: 6 }, () => TOO_LARGE), whole);
  for (let n = 0; n < 3; n += 1) {
    const requestId = `chatcmpl-${String(n)}`;
    expect((await rig.run(requestOf({ requestId }))).at(-1)?.failed).toMatchObject({ class: 'CONTEXT_LENGTH', otherCredential: true, retryAfterMs: 0 });
    const again = (await rig.run(requestOf({ requestId, attempt: 2, retryOf: [1] }))).at(-1)?.failed;
    expect(again).toMatchObject({ class: 'CONTEXT_LENGTH', retryAfterMs: 0, retryable: true });
    expect(again).not.toHaveProperty('otherCredential');
  }
  expect((await rig.run(requestOf({ requestId: 'chatcmpl-short' }))).at(-1)).toMatchObject({ end: { finishReason: 'stop' } });
  expect(new Set(rig.provider.requests.map(({ headers }) => headers['authorization'])).size).toBe(2);
});

test('if the host of a client’s file cannot be looked up, the worker is at fault: nothing is journaled, sent or observed, and another may be asked', async () => {
  rig.use(systemClock, { adapter: { provider: 'openai', origin: rig.provider.origin, compose: () => Promise.reject(new Fault('overloaded', 'a name could not be looked up')) } as never });
  const told: unknown[] = [];
  await expect(rig.run(requestOf(), (event) => void told.push(event))).rejects.toMatchObject({ code: 'overloaded' });
  expect([told, rig.log, rig.provider.requests, rig.observed]).toEqual([[], [], [], []]);
});

describe('a connection that was kept from an earlier request and is closed before the next is answered', () => {
  /** Answers that leave the connection open. */
  const KEPT = { status: 400, body: { error: { message: 'no' } } };
  const failedAt = async (n: number): Promise<unknown> => {
    const events = await rig.run(requestOf({ requestId: `chatcmpl-${String(n)}` }));
    // undici frees the connection a turn after the answer.
    await oneTurn();
    await oneTurn();
    return events.at(-1)?.failed;
  };

  test('is told as such, costs nothing, and the next call gets another connection', async () => {
    rig.provider.enqueue(KEPT, { drop: true }, KEPT);
    expect(await failedAt(1)).toMatchObject({ class: 'BAD_REQUEST' });
    expect(await failedAt(2)).toEqual({ class: 'DISCONNECTED', status: 0, retryAfterMs: 0, publicMessage: '', publicParam: '', retryable: true, staleConnection: true });
    expect(rig.ends[1]?.costNanoUsd).toBe(0n);
    expect(await failedAt(3)).toMatchObject({ class: 'BAD_REQUEST' });
    const [first, stale, fresh] = rig.provider.requests.map(({ clientPort }) => clientPort);
    expect([stale === first, fresh === first]).toEqual([true, false]);
  });

  test('is an ordinary failure on a new connection, and more than a second after the request', async () => {
    rig.use(rig.clock);
    rig.provider.enqueue({ drop: true }, KEPT, { drop: () => rig.clock.advance(1_001) });
    expect(await failedAt(1)).not.toHaveProperty('staleConnection');
    expect(await failedAt(2)).toMatchObject({ class: 'BAD_REQUEST' });
    expect(await failedAt(3)).not.toHaveProperty('staleConnection');
    expect(new Set(rig.provider.requests.map(({ clientPort }) => clientPort)).size).toBe(2);
  });

  test('counts once for the breaker, however many one event closes', async () => {
    rig.use(rig.clock);
    const six = Array.from({ length: 6 }, (_, n) => n);
    rig.provider.enqueue(...six.map(() => KEPT), { drop: () => rig.clock.advance(20) }, ...six.slice(1).map(() => ({ drop: true as const })), KEPT);
    await Promise.all(six.map(failedAt));
    expect(await Promise.all(six.map(failedAt))).toEqual(six.map((): unknown => expect.objectContaining({ class: 'DISCONNECTED', staleConnection: true })));
    expect(await failedAt(6)).toMatchObject({ class: 'BAD_REQUEST' });
  });
});
