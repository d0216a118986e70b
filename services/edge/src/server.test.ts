import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { DispatchEvent__Output } from '@signalbox/contracts/worker';
import { makeApiKey } from '@signalbox/kernel/api-key';
import { until } from '@signalbox/testkit/until';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { Agent, request as httpRequest } from 'node:http';
import type { Admission } from './domain/ports.js';
import { accountWith, keyWith, plannedAt, planWith } from './testing/callers.js';
import { chatText, hello, readRaw, startDoor, type Door } from './testing/door.js';
import { admissionOf, events, type Script } from './testing/neighbours.js';
import { answersWith, breaks, fails, streamsWith } from './testing/scripts.js';

const answers = answersWith('ok');
const streams = streamsWith('ok');
const breaksHalfway: Script = (call) => {
  call.listener.onEvent(events.text('half'));
  breaks('link_lost')(call);
};

/** An endpoint that may be silent beyond a heartbeat. */
const SLOW = { firstByteTimeoutMs: 60_000 };

let door: Door;
beforeEach(async () => {
  door = await startDoor();
  door.neighbours.scripts.set('a', answers);
});
afterEach(() => door.stop());

test('the name of a conversation, which routing stores, is the same for each turn and does not reveal its text or id', async () => {
  const sessions = async (body: object, headers: Record<string, string> = {}): Promise<string> => {
    await (await door.chat({ ...hello, ...body }, headers)).text();
    return door.neighbours.decided.at(-1)?.session ?? '';
  };
  const opening = { role: 'user', content: 'Is the merger on?' };
  const turns = [opening, { role: 'assistant', content: 'Yes.' }, { role: 'user', content: 'Sure?' }];
  const unnamed = await sessions({ messages: [opening] });
  expect(await sessions({ messages: turns })).toBe(unnamed);
  const named = await sessions({ session_id: 'ada@example.org' });
  expect(await sessions({ messages: turns }, { 'x-session-id': 'ada@example.org' })).toBe(named);
  expect(await sessions({ session_id: 'ada@example.org' }, { 'x-session-id': 'another' })).toBe(named);
  const guesses = ['ada@example.org', 'Is the merger on?', 'user\nIs the merger on?\n'].map((text) => createHash('sha256').update(text).digest('hex').slice(0, 32));
  for (const session of [unnamed, named]) {
    expect(session).toMatch(/^[0-9a-f]{32}$/);
    expect(guesses).not.toContain(session);
  }
});

describe('an answer is', () => {
  test('a completion with its exact cost', async () => {
    const response = await door.chat(hello);
    expect(response.status).toBe(200);
    expect(response.headers.get('x-router-cost')).toBe('0.000020000');
    expect(await response.json()).toMatchObject({ object: 'chat.completion', id: response.headers.get('x-request-id'), x_router: { provider: 'a' } });
  });

  test('a byte order mark before the JSON is ignored, whether the body comes at once or late, and in a repeat', async () => {
    const marked = `\ufeff${JSON.stringify(hello)}`;
    expect((await door.chat(marked, { 'idempotency-key': 'k' })).status).toBe(200);
    await until(() => [...door.claims.kept.values()][0]?.done !== undefined);
    expect((await (await door.chat(hello, { 'idempotency-key': 'k' })).json()) as object).toMatchObject({ error: { code: 'idempotency_completed' } });
    const length = Buffer.byteLength(marked);
    const socket = door.raw(chatText(door.key, '', { lines: 'connection: close\r\n', length }));
    await until(() => door.metrics.inFlight() === 1);
    socket.write(marked);
    expect(await readRaw(socket)).toMatch(/^HTTP\/1\.1 200/);
    const [field] = door.neighbours.calls.at(-1)?.request.fields ?? [];
    expect([field?.name, JSON.parse(String(field?.value))]).toEqual(['messages', hello.messages]);
    const made = await door.get('/api/auth', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '\ufeff{"nam":1}' });
    expect(await made.json()).toMatchObject({ error: { param: 'nam' } });
    expect(await (await door.chat(`\ufeff${marked}`)).json()).toMatchObject({ error: { code: null, message: 'The body is not valid JSON. See byte 0 (the first is 0).' } });
  });

  test('a stream that ends with its figures and [DONE]', async () => {
    door.neighbours.scripts.set('a', streams);
    const response = await door.chat({ ...hello, stream: true });
    const text = await response.text();
    expect([response.status, response.headers.get('trailer'), response.headers.get('content-type')]).toEqual([200, 'X-Router-Cost, X-Router-Savings', 'text/event-stream; charset=utf-8']);
    expect(text.trimEnd().split('\n\n').length).toBe(4);
    expect(text).toContain('"x_router":');
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
  });

  test.each([false, true])('one that lists its attempts after a failover for a client that asks, and else does not (stream: %s)', async (stream) => {
    door.neighbours.plan = planWith([plannedAt('a'), plannedAt('b')]);
    door.neighbours.scripts.set('a', (call) => call.play(events.failed('RATE_LIMITED', { status: 429, retryAfterMs: 7_000 })));
    door.neighbours.scripts.set('b', stream ? streams : answers);
    const ask = async (headers: Record<string, string> = {}): Promise<string> => (await door.chat({ ...hello, stream }, headers)).text();
    const text = await ask({ 'x-router-metadata': 'enabled' });
    const last = stream ? (text.split('\n\n').at(-3) ?? '').slice('data: '.length) : text;
    expect((JSON.parse(last) as { router_metadata: unknown }).router_metadata).toMatchObject({
      attempts: [{ provider: 'a', status: 'failed', class: 'rate_limited', provider_status: 429 }, { provider: 'b', status: 'answered' }],
    });
    expect(text.split('"router_metadata"')).toHaveLength(2);
    expect(await ask()).not.toContain('router_metadata');
    const { headers } = await door.chat({ ...hello, stream });
    expect([headers.get('x-router-attempts'), headers.get('x-router-decision-id')]).toEqual(['2', 'dec_1']);
  });

  test.each([false, true])('one that announces the end of a model if it is known, and else does not (stream: %s)', async (stream) => {
    door.neighbours.plan = planWith([{ ...plannedAt('a'), sunsetDate: '2027-01-31' }]);
    door.neighbours.scripts.set('a', stream ? streams : answers);
    const { headers } = await door.chat({ ...hello, stream });
    expect(['deprecation', 'sunset'].map((name) => headers.get(name))).toEqual(['@1798761600', 'Sun, 31 Jan 2027 00:00:00 GMT']);
    expect(headers.get('link')).toMatch(/^<\/v1\/models\/\S+\?detail=full>; rel="deprecation"$/);
    door.neighbours.plan = planWith([plannedAt('a')]);
    const plain = await door.chat({ ...hello, stream });
    expect(['deprecation', 'sunset', 'link'].map((name) => plain.headers.get(name))).toEqual([null, null, null]);
  });

  test.each([false, true])('one that names fields without effect: unknown ones, and those that the endpoint does not take (stream: %s)', async (stream) => {
    door.neighbours.plan = planWith([{ ...plannedAt('a'), dropParams: ['seed', 'temperature'] }]);
    door.neighbours.scripts.set('a', stream ? streams : answers);
    const { headers } = await door.chat({ ...hello, stream, frobnicate: 1, seed: 7, temperature: 1 });
    expect(headers.get('x-router-ignored-params')).toBe('frobnicate,seed,temperature');
    door.neighbours.plan = planWith([plannedAt('a')]);
    expect((await door.chat({ ...hello, stream, temperature: 1 })).headers.get('x-router-ignored-params')).toBeNull();
  });

  test('one with the figures of the limits of its key, and never those of another key', async () => {
    const own = makeApiKey(randomBytes);
    door.accounts.add(own, { key: keyWith({ id: 'key_2', limits: { requestsPerMinute: 1, costCapPeriod: '', costCaps: [], allowedModels: [] } }), account: accountWith() });
    const toldTo = async (key: string, body: object): Promise<string | null> => {
      const response = await door.chat(body, { authorization: `Bearer ${key}` });
      await response.text();
      return response.headers.get('x-ratelimit-remaining-requests');
    };
    const rate = (limitRequests: number, remainingRequests: number): Admission => admissionOf('ADMITTED', { heldNanoUsd: '1000000000', limitRequests, remainingRequests });
    door.neighbours.admissions = [rate(600, 599), rate(1, 0), rate(600, 598)];
    const bad = { ...hello, temperature: 3 };
    const told: (string | null)[] = [];
    for (const [key, body] of [[door.key, hello], [own, hello], [door.key, bad], [own, bad], [door.key, hello], [own, bad]] as const) told.push(await toldTo(key, body));
    expect(told).toEqual(['599', '0', '599', '0', '598', '0']);
  });

  test('one that names `stop` once if the endpoint cannot be sent a blank stop sequence', async () => {
    door.neighbours.scripts.set('a', answers);
    for (const dropParams of [['stop.blank'], ['stop', 'stop.blank']]) {
      door.neighbours.plan = planWith([{ ...plannedAt('a'), dropParams }]);
      expect((await door.chat({ ...hello, stop: ['\n', 'END'] })).headers.get('x-router-ignored-params')).toBe('stop');
    }
  });

  test.each([true, false])('one that names an unknown name within the request, streamed: %s', async (stream) => {
    door.neighbours.scripts.set('a', answers);
    door.neighbours.plan = planWith([{ ...plannedAt('a'), dropParams: ['seed'] }], { ignoredParams: ['provider.ignore.[0]'] });
    expect((await door.chat({ ...hello, stream, seed: 1, provider: { ignore: ['nobody'] } })).headers.get('x-router-ignored-params')).toBe('provider.ignore.[0],seed');
    expect(door.neighbours.calls[0]?.request.fields?.map(({ name }) => name)).toEqual(['messages']);
  });

  test('one that names a field of which the endpoint is sent only a part', async () => {
    door.neighbours.scripts.set('a', answers);
    door.neighbours.plan = planWith([{ ...plannedAt('a'), temperatureMax: 1, dropParams: ['temperature.of.1.7', 'presence_penalty.wide'] }]);
    const { headers } = await door.chat({ ...hello, temperature: 1.7, presence_penalty: -0.5 });
    expect(headers.get('x-router-ignored-params')).toBe('temperature,presence_penalty');
    expect(door.neighbours.calls[0]?.request.fields?.map(({ name }) => name)).toEqual(['messages', 'temperature', 'presence_penalty']);
  });

  test('one that names a reasoning effort for which the endpoint was sent the nearest that it has', async () => {
    door.neighbours.scripts.set('a', answers);
    door.neighbours.plan = planWith([{ ...plannedAt('a'), reasoningEffort: 'low', dropParams: ['reasoning_effort.of.minimal'] }]);
    const { headers } = await door.chat({ ...hello, reasoning_effort: 'minimal' });
    expect(headers.get('x-router-ignored-params')).toBe('reasoning_effort');
    expect(door.neighbours.calls[0]?.request.fields?.map(({ name, value }) => [name, name === 'messages' || Buffer.from(value ?? '').toString()])).toEqual([['messages', true], ['reasoning_effort', '"low"']]);
  });

  test('one that names temperature or top_p if the endpoint cannot be sent both', async () => {
    door.neighbours.scripts.set('a', answers);
    door.neighbours.plan = planWith([{ ...plannedAt('a'), dropParams: ['top_p.second'] }]);
    expect((await door.chat({ ...hello, temperature: 1, top_p: 1 })).headers.get('x-router-ignored-params')).toBe('top_p');
    expect(door.neighbours.calls[0]?.request.fields?.map(({ name }) => name)).toEqual(['messages', 'temperature', 'top_p']);
  });

  test('a broken stream whose metadata says that its attempt was cut, and why', async () => {
    const cut = { class: 'DISCONNECTED' as const, status: 200, retryAfterMs: 0, publicMessage: '', publicParam: '', retryable: true };
    door.neighbours.scripts.set('a', (call) => call.play(events.head(), events.role(), events.text('half'), events.end({ cut })));
    const text = await (await door.chat({ ...hello, stream: true }, { 'x-router-metadata': 'enabled' })).text();
    expect(JSON.parse((text.split('\n\n').at(-3) ?? '').slice('data: '.length))).toMatchObject({
      error: { code: 'provider_disconnected' }, router_metadata: { attempts: [{ provider: 'a', status: 'cut', class: 'disconnected', provider_status: 200 }] },
    });
  });

  test('a broken stream that ends only the choices that had not ended', async () => {
    const cut = { class: 'DISCONNECTED' as const, status: 200, retryAfterMs: 0, publicMessage: '', publicParam: '', retryable: true };
    const endsOf = async (...played: DispatchEvent__Output[]): Promise<unknown[]> => {
      door.neighbours.scripts.set('a', (call) => call.play(events.head(), events.role(), events.text('half'), ...played, events.end({ cut })));
      const chunks = (await (await door.chat({ ...hello, stream: true, n: 3 })).text()).split('\n\n').slice(0, -2).map((event) => JSON.parse(event.slice('data: '.length)) as { choices: { index: number; finish_reason: string | null }[] });
      return chunks.flatMap(({ choices }) => choices).filter(({ finish_reason: reason }) => reason !== null).map(({ index, finish_reason: reason }) => [index, reason]);
    };
    expect(await endsOf(events.finish(0), events.text('more', 2))).toEqual([[0, 'stop'], [1, 'error'], [2, 'error']]);
    expect(await endsOf(events.finish(1))).toEqual([[1, 'stop'], [0, 'error'], [2, 'error']]);
    expect(await endsOf()).toEqual([[0, 'error'], [1, 'error'], [2, 'error']]);
  });

  test.each([false, true])('a stream whose worker was lost, with its attempts but without usage and cost, which are unknown until its log is found (include_usage: %s)', async (isAsked) => {
    door.neighbours.plan = planWith([plannedAt('b'), plannedAt('a')]);
    door.neighbours.scripts.set('b', fails('PROVIDER_ERROR'));
    door.neighbours.scripts.set('a', breaksHalfway);
    const body = { ...hello, stream: true, ...(isAsked ? { stream_options: { include_usage: true } } : {}) };
    const lastOf = async (headers: Record<string, string>): Promise<unknown> => JSON.parse(((await (await door.chat(body, headers)).text()).split('\n\n').at(-3) ?? '').slice('data: '.length));
    const told = await lastOf({ 'x-router-metadata': 'enabled' });
    expect(told).toMatchObject({
      error: { code: 'provider_disconnected' }, choices: [{ finish_reason: 'error' }],
      router_metadata: { decision_id: 'dec_1', attempts: [{ provider: 'b', status: 'failed', class: 'provider_error' }, { provider: 'a', status: 'cut', class: 'disconnected', provider_status: 0 }] },
    });
    expect(Object.keys(told as object).filter((name) => name === 'usage' || name === 'x_router')).toEqual(isAsked ? ['usage'] : []);
    if (isAsked) expect(told).toMatchObject({ usage: null });
    expect(Object.keys((await lastOf({})) as object)).not.toContain('router_metadata');
  });

  test('an error with the time to wait if all endpoints of the plan must wait', async () => {
    door.neighbours.plan = planWith([], { refusal: 'ALL_UNHEALTHY', retryAfterMs: 61_000 });
    const response = await door.chat(hello);
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '61']);
  });

  test.each<[string, Script, Record<string, string>]>([
    ['gives its attempts in the trailers', streams, { 'x-router-provider': 'b', 'x-router-attempts': '2', 'x-router-cost': '0.000020000', 'x-router-savings': '0.000000100' }],
    ['gives them there without a cost if its worker was lost', breaksHalfway, { 'x-router-provider': 'b', 'x-router-attempts': '2' }],
  ])('a stream whose headers were sent before its content and which %s', async (_name, script, told) => {
    door.neighbours.plan = planWith([plannedAt('a', SLOW), plannedAt('b')]);
    door.neighbours.scripts.set('a', (call) => {
      void door.neighbours.clock.advanceAsync(10_000).then(() => call.play(events.failed('PROVIDER_ERROR')));
    });
    door.neighbours.scripts.set('b', script);
    const [headers, trailers] = await new Promise<readonly [NodeJS.Dict<string | string[]>, NodeJS.Dict<string>]>((resolve, reject) => {
      const request = httpRequest(`${door.url}/v1/chat/completions`, { method: 'POST', headers: { authorization: `Bearer ${door.key}`, 'content-type': 'application/json' } }, (response) => {
        response.resume().on('end', () => resolve([response.headers, response.trailers]));
      });
      request.on('error', reject);
      request.end(JSON.stringify({ ...hello, stream: true }));
    });
    expect(headers).toMatchObject({ 'x-router-provider': 'a', 'x-router-decision-id': 'dec_1', trailer: 'X-Router-Cost, X-Router-Savings, X-Router-Provider, X-Router-Attempts' });
    expect(headers['x-router-attempts']).toBeUndefined();
    expect(trailers).toEqual(told);
  });

  test.each([['', 'card_1'], ['card_2', 'card_2']])('one with the price card that was charged: the planned one, or the worker’s (%p)', async (cardId, version) => {
    door.neighbours.scripts.set('a', (call) => call.play(events.body('Hello'), events.end({ cardId })));
    const response = await door.chat(hello, { 'x-router-metadata': 'enabled' });
    expect(await response.json()).toMatchObject({ router_metadata: { price_version: version } });
  });

  test('one of several streams with exact trailers on one connection', async () => {
    door.neighbours.scripts.set('a', (call) => {
      call.listener.onEvent(events.text('first'));
      setImmediate(() => call.play(events.text('é'.repeat(70_000)), events.text('last'), events.finish(), events.end()));
    });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const sockets = new Set<unknown>();
    const ask = (): Promise<readonly [string, NodeJS.Dict<string>]> =>
      new Promise((resolve, reject) => {
        const request = httpRequest(`${door.url}/v1/chat/completions`, { method: 'POST', agent, headers: { authorization: `Bearer ${door.key}`, 'content-type': 'application/json' } }, (response) => {
          const parts: Buffer[] = [];
          response.on('data', (part: Buffer) => parts.push(part));
          response.on('end', () => resolve([Buffer.concat(parts).toString(), response.trailers]));
        });
        request.on('socket', (socket) => sockets.add(socket));
        request.on('error', reject);
        request.end(JSON.stringify({ ...hello, stream: true }));
      });
    for (let round = 0; round < 2; round += 1) {
      const [text, trailers] = await ask();
      const said = text.split('\n\n').slice(0, -2).map((event) => (JSON.parse(event.slice(6)) as { choices: { delta: { content?: string } }[] }).choices[0]?.delta.content);
      expect(said).toEqual(['first', 'é'.repeat(70_000), 'last', undefined]);
      expect(trailers).toEqual({ 'x-router-cost': '0.000020000', 'x-router-savings': '0.000000100' });
    }
    agent.destroy();
    expect(sockets.size).toBe(1);
  });

  test('a stream over HTTP/1.0, without trailers', async () => {
    door.neighbours.scripts.set('a', streams);
    const body = JSON.stringify({ ...hello, stream: true });
    const text = await readRaw(door.raw(`POST /v1/chat/completions HTTP/1.0\r\nauthorization: Bearer ${door.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`));
    expect(text).toMatch(/^HTTP\/1\.1 200/);
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
  });

  test.each(['/v1/chat/completions/', '/v1/chat/completions?a=1', '/v1/chat/completions/?a=1'])('the same at %s', async (path) => {
    expect((await door.get(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(hello) })).status).toBe(200);
  });

  test.each(['/v1/models/auto', '/v1/models/auto/', '/v1/models/'])('a list of models at %s', async (path) => {
    expect((await door.get(path)).status).toBe(200);
  });

  test('the same for a request target that is a whole URL', async () => {
    const body = JSON.stringify(hello);
    expect(await readRaw(door.raw(`POST http://gateway/v1/chat/completions?a HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\nauthorization: Bearer ${door.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`))).toMatch(/^HTTP\/1\.1 200/);
  });

  test('the same after Expect: 100-continue', async () => {
    const body = JSON.stringify(hello);
    const socket = door.raw(chatText(door.key, '', { lines: 'connection: close\r\nexpect: 100-continue\r\n', length: body.length }));
    const [first] = (await once(socket, 'data')) as [Buffer];
    expect(String(first)).toMatch(/^HTTP\/1\.1 100/);
    socket.write(body);
    expect(await readRaw(socket)).toMatch(/HTTP\/1\.1 200/);
  });

  test('a stream that names the model and provider that answered, if another was tried when a comment was sent', async () => {
    door.neighbours.plan = planWith([plannedAt('a', SLOW), plannedAt('b', { model: 'maker/other' })]);
    door.neighbours.scripts.set('a', () => undefined);
    door.neighbours.scripts.set('b', (call) => call.play(events.head({ systemFingerprint: 'fp_b', serviceTier: 'flex' }), events.text('hi'), events.finish(), events.end()));
    const body = JSON.stringify({ ...hello, stream: true });
    const pending = readRaw(door.raw(chatText(door.key, body, { lines: 'connection: close\r\n' })));
    await until(() => door.neighbours.calls.length === 1);
    door.neighbours.clock.advance(10_000);
    door.neighbours.calls[0]?.play(events.failed('PROVIDER_ERROR'));
    const text = await pending;
    // The headers name the endpoint that was tried at that time.
    expect(text).toMatch(/^X-Router-Provider: a\r$/im);
    expect(text.slice(text.indexOf('[DONE]'))).toMatch(/^X-Router-Provider: b\r$/im);
    const chunks = [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, json = '']) => JSON.parse(json) as { x_router?: { provider: string } });
    expect(chunks.map((chunk) => ({ ...chunk, x_router: undefined }))).toEqual(chunks.map(() => expect.objectContaining({ model: 'maker/other', system_fingerprint: 'fp_b', service_tier: 'flex' })));
    expect(chunks.at(-1)?.x_router?.provider).toBe('b');
  });

  test('an error chunk if a provider fails after a comment was sent', async () => {
    door.neighbours.plan = planWith([plannedAt('a', SLOW)]);
    door.neighbours.scripts.set('a', () => undefined);
    const pending = door.chat({ ...hello, stream: true });
    await until(() => door.neighbours.calls.length === 1);
    door.neighbours.clock.advance(10_000);
    const response = await pending;
    door.neighbours.calls[0]?.play(events.failed('PROVIDER_ERROR'));
    const text = await response.text();
    expect(text.startsWith(': keep-alive\n\n')).toBe(true);
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
    // Nothing was delivered and nothing is charged, whatever the headers estimated.
    expect(JSON.parse((text.split('\n\n').at(-3) ?? '').slice('data: '.length))).toMatchObject({
      error: { code: 'all_models_unavailable' },
      choices: [{ finish_reason: 'error' }],
      usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
      x_router: { provider: 'a', cost_usd: 0, savings_usd: 0, routed_from: 'auto' },
    });
  });
});
