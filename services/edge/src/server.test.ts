import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { makeApiKey } from '@signalbox/kernel/api-key';
import { Fault } from '@signalbox/kernel/fault';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { Agent, request as httpRequest } from 'node:http';
import type { Socket } from 'node:net';
import { accountWith, keyWith, plannedAt, planWith } from './testing/callers.js';
import { BODY_BYTES_MAX, readRaw, startDoor, type Door } from './testing/door.js';
import { admissionOf, events, type PlayedCall, type Script } from './testing/neighbours.js';

const hello = { model: 'auto', messages: [{ role: 'user', content: 'Hi' }] };
const answers: Script = (call) => call.play(events.head(), events.body('ok'), events.end());
const streams: Script = (call) => call.play(events.head(), events.role(), events.text('ok'), events.finish(), events.end());

let door: Door;
beforeEach(async () => {
  door = await startDoor();
  door.neighbours.scripts.set('a', answers);
});
afterEach(() => door.stop());

const errorOf = async (response: Response): Promise<readonly [number, unknown, unknown]> => {
  const { error } = (await response.json()) as { error: { type: string; code: string | null } };
  return [response.status, error.type, error.code];
};
const get = (path: string, init: RequestInit = {}): Promise<Response> => fetch(door.url + path, { ...init, headers: { authorization: `Bearer ${door.key}`, ...init.headers } });
/** Waits until a condition of the event loop holds: bounded by the test's own timeout. */
const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise<void>((resolve) => setImmediate(resolve));
};

/** Waits until the server has noticed that every client left; each turn lets sockets be read. */
const noConnections = async (): Promise<void> => {
  let count = 1;
  while (count > 0) {
    await new Promise<void>((resolve) => setImmediate(resolve));
    count = await new Promise<number>((resolve) => door.server.getConnections((_error, open) => resolve(open)));
  }
};

describe('answers', () => {
  test('a completion with its exact cost', async () => {
    const response = await door.chat(hello);
    expect(response.status).toBe(200);
    expect(response.headers.get('x-router-cost')).toBe('0.000020000');
    expect(await response.json()).toMatchObject({ object: 'chat.completion', id: response.headers.get('x-request-id'), x_router: { provider: 'a' } });
  });

  test('a stream that ends in figures and [DONE]', async () => {
    door.neighbours.scripts.set('a', streams);
    const response = await door.chat({ ...hello, stream: true });
    const text = await response.text();
    expect([response.status, response.headers.get('trailer'), response.headers.get('content-type')]).toEqual([200, 'X-Router-Cost, X-Router-Savings', 'text/event-stream; charset=utf-8']);
    expect(text.trimEnd().split('\n\n').length).toBe(4);
    expect(text).toContain('"x_router":');
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
  });

  test.each([false, true])('an answer after a failover lists its attempts for a client that asks, and for nobody else (stream: %s)', async (stream) => {
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

  test.each([false, true])('an answer of a model whose end is known says so, and no other does (stream: %s)', async (stream) => {
    door.neighbours.plan = planWith([{ ...plannedAt('a'), sunsetDate: '2027-01-31' }]);
    door.neighbours.scripts.set('a', stream ? streams : answers);
    const { headers } = await door.chat({ ...hello, stream });
    expect(['deprecation', 'sunset'].map((name) => headers.get(name))).toEqual(['@1798761600', 'Sun, 31 Jan 2027 00:00:00 GMT']);
    expect(headers.get('link')).toMatch(/^<\/v1\/models\/\S+\?detail=full>; rel="deprecation"$/);
    door.neighbours.plan = planWith([plannedAt('a')]);
    const plain = await door.chat({ ...hello, stream });
    expect(['deprecation', 'sunset', 'link'].map((name) => plain.headers.get(name))).toEqual([null, null, null]);
  });

  test.each([false, true])('what of a body had no effect is named: unknown fields, and those that the endpoint does not take (stream: %s)', async (stream) => {
    door.neighbours.plan = planWith([{ ...plannedAt('a'), dropParams: ['seed', 'temperature'] }]);
    door.neighbours.scripts.set('a', stream ? streams : answers);
    const { headers } = await door.chat({ ...hello, stream, frobnicate: 1, seed: 7, temperature: 1 });
    expect(headers.get('x-router-ignored-params')).toBe('frobnicate,seed,temperature');
    door.neighbours.plan = planWith([plannedAt('a')]);
    expect((await door.chat({ ...hello, stream, temperature: 1 })).headers.get('x-router-ignored-params')).toBeNull();
  });

  test('a stream that broke tells of its attempt that it was cut, and why', async () => {
    const cut = { class: 'DISCONNECTED' as const, status: 200, retryAfterMs: 0, publicMessage: '', publicParam: '', retryable: true };
    door.neighbours.scripts.set('a', (call) => call.play(events.head(), events.role(), events.text('half'), events.end({ cut })));
    const text = await (await door.chat({ ...hello, stream: true }, { 'x-router-metadata': 'enabled' })).text();
    expect(JSON.parse((text.split('\n\n').at(-3) ?? '').slice('data: '.length))).toMatchObject({
      error: { code: 'provider_disconnected' }, router_metadata: { attempts: [{ provider: 'a', status: 'cut', class: 'disconnected', provider_status: 200 }] },
    });
  });

  test('a plan that is empty because all endpoints wait says for how long', async () => {
    door.neighbours.plan = planWith([], { refusal: 'ALL_UNHEALTHY', retryAfterMs: 61_000 });
    const response = await door.chat(hello);
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '61']);
  });

  test('a stream whose headers left before its first word tells its attempts in the trailers', async () => {
    door.neighbours.plan = planWith([plannedAt('a'), plannedAt('b')]);
    door.neighbours.scripts.set('a', (call) => {
      void door.neighbours.clock.advanceAsync(10_000).then(() => call.play(events.failed('PROVIDER_ERROR')));
    });
    door.neighbours.scripts.set('b', streams);
    const [headers, trailers] = await new Promise<readonly [NodeJS.Dict<string | string[]>, NodeJS.Dict<string>]>((resolve, reject) => {
      const request = httpRequest(`${door.url}/v1/chat/completions`, { method: 'POST', headers: { authorization: `Bearer ${door.key}`, 'content-type': 'application/json' } }, (response) => {
        response.resume().on('end', () => resolve([response.headers, response.trailers]));
      });
      request.on('error', reject);
      request.end(JSON.stringify({ ...hello, stream: true }));
    });
    expect(headers).toMatchObject({ 'x-router-provider': 'a', 'x-router-decision-id': 'dec_1', trailer: 'X-Router-Cost, X-Router-Savings, X-Router-Provider, X-Router-Attempts' });
    expect(headers['x-router-attempts']).toBeUndefined();
    expect(trailers).toMatchObject({ 'x-router-attempts': '2', 'x-router-cost': '0.000020000' });
  });

  test.each([['', 'card_1'], ['card_2', 'card_2']])('the price version is the card that was charged: the planned one, or what the worker says instead (%p)', async (cardId, version) => {
    door.neighbours.scripts.set('a', (call) => call.play(events.body('Hello'), events.end({ cardId })));
    const response = await door.chat(hello, { 'x-router-metadata': 'enabled' });
    expect(await response.json()).toMatchObject({ router_metadata: { price_version: version } });
  });

  test('streams with exact trailers, one after another on one connection', async () => {
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

  test('a stream over HTTP/1.0, which has no trailers', async () => {
    door.neighbours.scripts.set('a', streams);
    const body = JSON.stringify({ ...hello, stream: true });
    const text = await readRaw(door.raw(`POST /v1/chat/completions HTTP/1.0\r\nauthorization: Bearer ${door.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`));
    expect(text).toMatch(/^HTTP\/1\.1 200/);
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
  });

  test.each(['/v1/chat/completions/', '/v1/chat/completions?a=1', '/v1/chat/completions/?a=1'])('at %s too', async (path) => {
    expect((await get(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(hello) })).status).toBe(200);
  });

  test('to a request target that is a whole URL', async () => {
    const body = JSON.stringify(hello);
    expect(await readRaw(door.raw(`POST http://gateway/v1/chat/completions?a HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\nauthorization: Bearer ${door.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`))).toMatch(/^HTTP\/1\.1 200/);
  });

  test('after Expect: 100-continue', async () => {
    const body = JSON.stringify(hello);
    const socket = door.raw(`POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\nexpect: 100-continue\r\nauthorization: Bearer ${door.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`);
    const [first] = (await once(socket, 'data')) as [Buffer];
    expect(String(first)).toMatch(/^HTTP\/1\.1 100/);
    socket.write(body);
    expect(await readRaw(socket)).toMatch(/HTTP\/1\.1 200/);
  });

  test('naming the model and the provider that answered, when another was tried as a comment went out', async () => {
    door.neighbours.plan = planWith([plannedAt('a'), plannedAt('b', { model: 'maker/other' })]);
    door.neighbours.scripts.set('a', () => undefined);
    door.neighbours.scripts.set('b', (call) => call.play(events.head({ systemFingerprint: 'fp_b', serviceTier: 'flex' }), events.text('hi'), events.finish(), events.end()));
    const body = JSON.stringify({ ...hello, stream: true });
    const pending = readRaw(door.raw(`POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer ${door.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`));
    await until(() => door.neighbours.calls.length === 1);
    door.neighbours.clock.advance(10_000);
    door.neighbours.calls[0]?.play(events.failed('PROVIDER_ERROR'));
    const text = await pending;
    // Headers say who was being tried.
    expect(text).toMatch(/^X-Router-Provider: a\r$/im);
    expect(text.slice(text.indexOf('[DONE]'))).toMatch(/^X-Router-Provider: b\r$/im);
    const chunks = [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, json = '']) => JSON.parse(json) as { x_router?: { provider: string } });
    expect(chunks.map((chunk) => ({ ...chunk, x_router: undefined }))).toEqual(chunks.map(() => expect.objectContaining({ model: 'maker/other', system_fingerprint: 'fp_b', service_tier: 'flex' })));
    expect(chunks.at(-1)?.x_router?.provider).toBe('b');
  });

  test('with the error chunk when a provider fails after a comment was sent', async () => {
    door.neighbours.scripts.set('a', () => undefined);
    const pending = door.chat({ ...hello, stream: true });
    await until(() => door.neighbours.calls.length === 1);
    door.neighbours.clock.advance(10_000);
    const response = await pending;
    door.neighbours.calls[0]?.play(events.failed('PROVIDER_ERROR'));
    const text = await response.text();
    expect(text.startsWith(': keep-alive\n\n')).toBe(true);
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
    // Nothing was given and nothing is charged, whatever the headers estimated.
    expect(JSON.parse((text.split('\n\n').at(-3) ?? '').slice('data: '.length))).toMatchObject({
      error: { code: 'all_models_unavailable' },
      choices: [{ finish_reason: 'error' }],
      usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
      x_router: { provider: 'a', cost_usd: 0, savings_usd: 0, routed_from: 'auto' },
    });
  });
});

describe('refuses', () => {
  const chat = (over: object = {}) => () => door.chat({ ...hello, ...over });
  const make = (body: object): Promise<Response> => get('/api/auth', { method: 'POST', headers: { authorization: `Bearer ${door.key}`, 'content-type': 'application/json' }, body: JSON.stringify(body) });
  test.each<[number, string, string | null, () => Promise<Response>]>([
    [400, 'invalid_request_error', null, () => door.chat('{"model":')],
    [400, 'invalid_request_error', 'invalid_value', chat({ temperature: 3 })],
    [400, 'invalid_request_error', 'plugin_unavailable', chat({ plugins: ['web-search'] })],
    [400, 'invalid_request_error', 'invalid_value', () => get('/v1/models/%ff')],
    [400, 'invalid_request_error', 'invalid_value', () => get('/api/requests?after=%00')],
    [404, 'invalid_request_error', 'key_not_found', () => get('/api/auth/key_%00')],
    [404, 'invalid_request_error', 'key_not_found', () => get('/api/providers/openai%00', { method: 'DELETE' })],
    [400, 'invalid_request_error', 'invalid_value', () => make({ name: 'a\0b' })],
    [400, 'invalid_request_error', 'invalid_value', () => make({ name: 'ci', scopes: [] })],
    [400, 'invalid_request_error', 'invalid_value', () => make({ name: 'ci', limits: { allowed_models: [] } })],
    [400, 'invalid_request_error', 'invalid_value', () => make({ name: 'ci', scope: ['models:read'] })],
    [400, 'invalid_request_error', 'invalid_value', () => make({ name: 'ci', max_budget: 5 })],
    [400, 'invalid_request_error', 'invalid_value', () => get('/api/auth/key_1', { method: 'PATCH', headers: { authorization: `Bearer ${door.key}`, 'content-type': 'application/json' }, body: '{"disable":true}' })],
    [401, 'invalid_request_error', 'invalid_api_key', () => door.chat(hello, { authorization: 'Bearer nonsense' })],
    [401, 'invalid_request_error', 'invalid_api_key', () => door.chat(hello, { authorization: 'Basic abc' })],
    [404, 'invalid_request_error', 'unknown_url', () => get('/v1/nothing')],
    [404, 'invalid_request_error', 'unknown_url', () => get('/v1/Chat/Completions', { method: 'POST' })],
    [404, 'invalid_request_error', 'model_not_found', () => get('/v1/models/maker/none')],
    [405, 'invalid_request_error', 'method_not_allowed', () => get('/v1/chat/completions')],
    [405, 'invalid_request_error', 'method_not_allowed', () => get('/v1/chat/completions', { method: 'OPTIONS' })],
    [405, 'invalid_request_error', 'method_not_allowed', () => get('/v1/models', { method: 'DELETE' })],
    [405, 'invalid_request_error', 'method_not_allowed', () => get('/api/auth', { method: 'DELETE' })],
    [405, 'invalid_request_error', 'method_not_allowed', () => get('/api/auth/key_1', { method: 'PUT' })],
    [405, 'invalid_request_error', 'method_not_allowed', () => get('/api/auth/key_1/rotate')],
    [400, 'invalid_request_error', 'invalid_value', () => door.chat(hello, { 'x-session-id': 'x'.repeat(257) })],
    [413, 'invalid_request_error', 'payload_too_large', () => door.chat('x'.repeat(BODY_BYTES_MAX + 1))],
    [415, 'invalid_request_error', 'unsupported_media_type', () => door.chat(hello, { 'content-type': 'text/plain' })],
    [415, 'invalid_request_error', 'unsupported_media_type', () => door.chat(hello, { 'content-encoding': 'gzip' })],
    [431, 'invalid_request_error', 'headers_too_large', () => door.chat(hello, { 'x-large': 'x'.repeat(20_000) })],
  ])('with %i %s %s: case %#', async (status, type, code, ask) => {
    const response = await ask();
    expect(response.headers.get('x-request-id')).not.toBe(null);
    expect(await errorOf(response)).toEqual([status, type, code]);
    expect(door.neighbours.calls).toEqual([]);
  });

  test.each(['revoked', 'expired'])('a key that is %s, by its state', async (status) => {
    door.accounts.add(door.key, { key: keyWith({ status }), account: accountWith() });
    const response = await door.chat(hello);
    expect(response.headers.get('www-authenticate')).toBe('Bearer');
    expect(await errorOf(response)).toEqual([401, 'invalid_request_error', `api_key_${status}`]);
  });

  test('a suspended account', async () => {
    door.accounts.add(door.key, { key: keyWith(), account: accountWith({ suspended: true }) });
    expect(await errorOf(await door.chat(hello))).toEqual([401, 'invalid_request_error', 'account_suspended']);
  });

  test.each<[number, string, string, Record<string, string>, () => void]>([
    [403, 'permission_error', 'insufficient_scope', {}, () => door.accounts.add(door.key, { key: keyWith({ scopes: ['keys'] }), account: accountWith() })],
    [404, 'invalid_request_error', 'no_eligible_provider', {}, () => void (door.neighbours.plan = planWith([], { refusal: 'NO_ELIGIBLE_PROVIDER', excludedBy: ['zdr'] }))],
    [500, 'server_error', 'routing_unavailable', { 'x-should-retry': 'true' }, () => void (door.neighbours.plan = new Fault('routing_unavailable', 'x'))],
    [429, 'requests', 'rate_limit_exceeded', { 'retry-after': '2', 'retry-after-ms': '1500' }, () => void (door.neighbours.admissions = [admissionOf('RATE_LIMITED', { retryAfterMs: 1_500 })])],
    [402, 'payment_required', 'cost_cap_exceeded', { 'x-should-retry': 'false' }, () => void (door.neighbours.admissions = [admissionOf('COST_CAPPED')])],
    [429, 'insufficient_quota', 'insufficient_quota', { 'x-should-retry': 'false' }, () => void (door.neighbours.admissions = [admissionOf('ALLOTMENT_EXHAUSTED')])],
    [503, 'server_error', 'quota_unavailable', { 'retry-after': '3' }, () => void (door.neighbours.admissions = [new Fault('quota_unavailable', 'x', { retryAfterMs: 3_000 })])],
    [503, 'server_error', 'all_models_unavailable', { 'retry-after': '7' }, () => void door.neighbours.scripts.set('a', (call) => call.play(events.failed('RATE_LIMITED', { status: 429, retryAfterMs: 7_000 })))],
    [503, 'server_error', 'accounts_unavailable', { 'retry-after': '1' }, () => void (door.accounts.isAway = true)],
    [503, 'server_error', 'overloaded', { 'retry-after': '1' }, () => void (door.isHealthy = false)],
  ])('with %i %s %s', async (status, type, code, headers, arrange) => {
    arrange();
    const response = await door.chat(hello);
    for (const [name, value] of Object.entries(headers)) expect([name, response.headers.get(name)]).toEqual([name, value]);
    expect(await errorOf(response)).toEqual([status, type, code]);
  });

  test('a request without a key, and one with two', async () => {
    expect(await errorOf(await fetch(`${door.url}/v1/models`))).toEqual([401, 'invalid_request_error', null]);
    const line = `authorization: Bearer ${door.key}\r\n`;
    expect(await readRaw(door.raw(`GET /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${line}${line}\r\n`))).toMatch(/^HTTP\/1\.1 401/);
  });

  test('HEAD with a status and no body', async () => {
    const response = await get('/v1/chat/completions', { method: 'HEAD' });
    expect([response.status, await response.text()]).toEqual([405, '']);
  });

  test('key management to a key without its scope', async () => {
    door.accounts.add(door.key, { key: keyWith({ scopes: ['inference'] }), account: accountWith() });
    expect(await errorOf(await get('/api/auth'))).toEqual([403, 'permission_error', 'insufficient_scope']);
  });

  test('a body, or headers, that do not arrive, with 408', async () => {
    door.server.requestTimeout = 100;
    door.server.headersTimeout = 100;
    const late = [`POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${door.key}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"mod`, 'GET /v1/models HTTP/1.1\r\nhost: x\r\n'];
    for (const text of await Promise.all(late.map((sent) => readRaw(door.raw(sent))))) {
      expect(text).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
      expect(text).toContain('"code":"request_timeout"');
    }
    await until(() => door.metrics.inFlight() === 0);
  });

  describe('what node:http would answer itself, in the shape of every error', () => {
    const ask = (headers: string, body = JSON.stringify(hello)): string => `POST /v1/chat/completions HTTP/1.1\r\nauthorization: Bearer ${door.key}\r\ncontent-type: application/json\r\n${headers}\r\n${body}`;
    const chunked = (size: string, rest = '0\r\n\r\n'): string => `${size}\r\n${JSON.stringify(hello)}\r\n${rest}`;
    const length = (bytes = JSON.stringify(hello).length): string => `content-length: ${bytes}\r\n`;
    const size = JSON.stringify(hello).length.toString(16);

    test.each<[string, number, string | null, () => string]>([
      ['a line that is no request', 400, null, () => 'NONSENSE\r\n\r\n'],
      ['another version', 400, null, () => 'GET / HTTP/3.7\r\nhost: x\r\n\r\n'],
      ['a bad header', 400, null, () => ask('host: x\r\nbad header: y\r\n')],
      ['no Host', 400, null, () => ask(length())],
      ['two Hosts', 400, null, () => ask(`host: x\r\nHost: y\r\n${length()}`)],
      ['an expectation that is not known', 417, 'expectation_failed', () => ask(`host: x\r\nexpect: banana\r\n${length()}`)],
      ['CONNECT', 405, 'method_not_allowed', () => 'CONNECT x:443 HTTP/1.1\r\nhost: x:443\r\n\r\n'],
      ['two lengths', 400, null, () => ask(`host: x\r\n${length()}${length(5)}`)],
      ['a length beside chunks', 400, null, () => ask(`host: x\r\ntransfer-encoding: chunked\r\n${length(5)}`, chunked(size))],
      ['a transfer coding without chunks', 400, null, () => ask('host: x\r\ntransfer-encoding: gzip\r\n')],
      ['a transfer coding within chunks', 415, 'unsupported_media_type', () => ask('host: x\r\nconnection: close\r\ntransfer-encoding: gzip, chunked\r\n', chunked(size))],
      ['a chunk without a size', 400, null, () => ask('host: x\r\ntransfer-encoding: chunked\r\n', chunked('zz'))],
      ['a chunk that does not end where it says', 400, null, () => ask('host: x\r\ntransfer-encoding: chunked\r\n', chunked('3'))],
      ['endless chunk extensions', 413, 'payload_too_large', () => ask('host: x\r\ntransfer-encoding: chunked\r\n', chunked(`${size};${'a'.repeat(20_000)}`))],
      ['trailers that are too large', 431, 'headers_too_large', () => ask('host: x\r\ntransfer-encoding: chunked\r\n', chunked(size, `0\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`))],
      ['a path that is too long', 431, 'headers_too_large', () => `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nhost: x\r\n\r\n`],
    ])('%s', async (_name, status, code, text) => {
      const [head = '', body = ''] = (await readRaw(door.raw(text()))).split('\r\n\r\n');
      expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [A-Z]`));
      for (const header of ['x-request-id: ', 'content-type: application/json; charset=utf-8', `content-length: ${body.length}`, 'connection: close']) expect(head.toLowerCase()).toContain(header);
      expect(head).toMatch(/^date: \w/im);
      expect(JSON.parse(body)).toMatchObject({ error: { type: 'invalid_request_error', code } });
      expect(door.neighbours.calls).toEqual([]);
    });
  });
});

describe('floods', () => {
  test('more than two hundred invalid requests of a key in a second are 429, and over with the second', async () => {
    const statuses: number[] = [];
    for (let i = 0; i < 202; i += 1) {
      const response = await door.chat('{}');
      statuses.push(response.status);
      await response.arrayBuffer();
    }
    expect([statuses[199], statuses[200], statuses[201]]).toEqual([400, 429, 429]);
    door.neighbours.clock.advance(1_000);
    expect((await door.chat(hello)).status).toBe(200);
  });

  test('failed authentications close an address to unknown keys, never to a warm one', async () => {
    expect((await door.chat(hello)).status).toBe(200);
    const statuses: number[] = [];
    for (let i = 0; i < 102; i += 1) {
      const response = await fetch(`${door.url}/v1/models`);
      statuses.push(response.status);
      await response.arrayBuffer();
    }
    expect([statuses[99], statuses[101]]).toEqual([401, 429]);
    expect((await door.chat(hello)).status).toBe(200);
    door.neighbours.clock.advance(60_000);
    expect((await fetch(`${door.url}/v1/models`)).status).toBe(401);
  });

  test('nor to a good key that is not known yet, while junk and unknown keys are refused and few are looked up', async () => {
    const statusOf = async (key: string): Promise<number> => {
      const response = await fetch(`${door.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
      await response.arrayBuffer();
      return response.status;
    };
    for (let i = 0; i < 102; i += 1) await statusOf('junk');
    expect([await statusOf('junk'), door.accounts.lookUps]).toEqual([429, 0]);
    expect(await statusOf(door.key)).toBe(200);
    const statuses: number[] = [];
    for (let i = 0; i < 30; i += 1) statuses.push(await statusOf(makeApiKey(randomBytes)));
    expect([statuses.filter((status) => status === 401).length, statuses.at(-1), door.accounts.lookUps]).toEqual([20, 429, 21]);
    // Known by now.
    expect(await statusOf(door.key)).toBe(200);
  });
});

describe('connections', () => {
  test('one serves on after every kind of error', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const sockets = new Set<unknown>();
    const ask = (body: string, type = 'application/json'): Promise<number> =>
      new Promise((resolve, reject) => {
        const request = httpRequest(`${door.url}/v1/chat/completions`, { method: 'POST', agent, headers: { authorization: `Bearer ${door.key}`, 'content-type': type } }, (response) => {
          response.resume();
          response.on('end', () => resolve(response.statusCode ?? 0));
        });
        request.on('socket', (socket) => sockets.add(socket));
        request.on('error', reject);
        request.end(body);
      });
    const statuses: number[] = [];
    for (const [body, type] of [['{'], ['{}'], ['x', 'text/plain'], ['x'.repeat(BODY_BYTES_MAX + 10)], [JSON.stringify(hello)]] as const) statuses.push(await ask(body, type));
    agent.destroy();
    expect([statuses, sockets.size]).toEqual([[400, 400, 415, 413, 200], 1]);
  });

  test('large bodies of one account in work leave room, for others and for small ones, and give it back with their answer', async () => {
    const held: PlayedCall[] = [];
    door.neighbours.scripts.set('a', (call) => void held.push(call));
    const large = { ...hello, messages: [{ role: 'user', content: 'x'.repeat(0.9 * BODY_BYTES_MAX) }] };
    const first = [door.chat(large), door.chat(large)];
    await until(() => held.length === 2);
    const refused = await door.chat(large);
    expect([await errorOf(refused), refused.headers.get('retry-after')]).toEqual([[503, 'server_error', 'overloaded'], '1']);
    first.push(door.chat(hello));
    await until(() => held.length === 3);
    for (const call of held) answers(call);
    expect((await Promise.all(first)).map(({ status }) => status)).toEqual([200, 200, 200]);
    await until(() => door.metrics.inFlight() === 0);
    door.neighbours.scripts.set('a', answers);
    expect((await door.chat(large)).status).toBe(200);
  });

  test('a client that leaves in the middle of its body leaves nothing behind', async () => {
    const socket = door.raw(`POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${door.key}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"mod`);
    await until(() => door.metrics.inFlight() === 1);
    socket.destroy();
    await until(() => door.metrics.inFlight() === 0);
    expect(door.neighbours.asked).toEqual([]);
  });

  test('a client that leaves while its key is looked up leaves nothing behind', async () => {
    let open = (): void => undefined;
    door.accounts.gate = new Promise((resolve) => {
      open = resolve;
    });
    const socket = door.raw(`POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${door.key}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"mod`);
    await until(() => door.accounts.lookUps === 1);
    socket.destroy();
    await once(socket, 'close');
    await noConnections();
    open();
    await until(() => door.metrics.inFlight() === 0);
  });

  test.each([
    ['closes its connection', (socket: Socket): unknown => socket.end(), 'client_left'],
    ['breaks its connection', (socket: Socket): unknown => socket.resetAndDestroy(), 'client_left'],
    ['is cut off at the end of a drain', (): unknown => door.server.closeAllConnections(), undefined],
    ['is cut off for its key', (): unknown => expect(door.cutKey(keyWith().id)).toBe(1), undefined],
  ] as const)('the worker hears the difference when a client %s', async (_case, part, why) => {
    let call: PlayedCall | undefined;
    door.neighbours.scripts.set('a', (played) => void (call = played));
    const body = JSON.stringify({ ...hello, stream: true });
    const socket = door.raw(`POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${door.key}\r\nContent-Type: application/json\r\nContent-Length: ${String(body.length)}\r\n\r\n${body}`);
    await until(() => call !== undefined);
    part(socket);
    await until(() => call?.isCancelled === true);
    expect(call?.cancelledFor).toBe(why);
    socket.destroy();
  });

  test('a client that leaves its stream cancels the attempt', async () => {
    door.neighbours.scripts.set('a', (call) => call.listener.onEvent(events.text('hi')));
    const controller = new AbortController();
    const response = await fetch(`${door.url}/v1/chat/completions`, { method: 'POST', signal: controller.signal, headers: { authorization: `Bearer ${door.key}`, 'content-type': 'application/json' }, body: JSON.stringify({ ...hello, stream: true }) });
    expect(response.status).toBe(200);
    controller.abort();
    await until(() => door.neighbours.calls[0]?.isCancelled === true && door.metrics.inFlight() === 0);
    expect(door.neighbours.outcomes).toEqual(['a#1 DELIVERED']);
  });

  test('a client that closes its side has left: on the wire nothing tells it from one that hung up', async () => {
    door.neighbours.scripts.set('a', () => undefined);
    const body = JSON.stringify({ ...hello, stream: true });
    const socket = door.raw(`POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${door.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    await until(() => door.neighbours.calls.length === 1);
    socket.end();
    await until(() => door.neighbours.calls[0]?.isCancelled === true && door.metrics.inFlight() === 0);
    expect(door.neighbours.outcomes).toEqual(['a#1 DELIVERED']);
  });

  test('garbage behind a running stream never falls into it', async () => {
    door.neighbours.scripts.set('a', (call) => call.listener.onEvent(events.text('hi')));
    const body = JSON.stringify({ ...hello, stream: true });
    const socket = door.raw(`POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${door.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    await once(socket, 'data');
    socket.write('NONSENSE\r\n\r\n');
    expect(await readRaw(socket)).not.toContain('HTTP/1.1 400');
  });

  test('garbage behind a request that has reached a provider is not answered as its refusal', async () => {
    door.neighbours.scripts.set('a', () => undefined);
    const body = JSON.stringify(hello);
    const socket = door.raw(`POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${door.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    await until(() => door.neighbours.calls.length === 1);
    const closed = once(socket, 'close');
    let answer = '';
    socket.on('data', (bytes: Buffer) => (answer += String(bytes)));
    socket.write('NONSENSE\r\n\r\n');
    await closed;
    expect(answer).toBe('');
  });
});
