/** Refusals of the public port by status, type and code, and its behaviour in floods. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { makeApiKey } from '@signalbox/kernel/api-key';
import { Fault } from '@signalbox/kernel/fault';
import { until } from '@signalbox/testkit/until';
import { randomBytes } from 'node:crypto';
import { accountWith, keyWith, plannedAt, planWith } from './testing/callers.js';
import { BODY_BYTES_MAX, chatText, errorOf, hello, readRaw, startDoor, type Door } from './testing/door.js';
import { admissionOf, events } from './testing/neighbours.js';
import { answersWith, fails } from './testing/scripts.js';

let door: Door;
beforeEach(async () => {
  door = await startDoor();
  door.neighbours.scripts.set('a', answersWith('ok'));
});
afterEach(() => door.stop());

test('a request that ends because of the retry budget may be retried, whatever its last attempt was told', async () => {
  const { neighbours } = door;
  neighbours.plan = planWith([plannedAt('a'), plannedAt('b')]);
  neighbours.scripts.set('a', fails('BAD_REQUEST', { status: 400 }));
  neighbours.scripts.set('b', answersWith('never'));
  neighbours.retries = { noteRequest: () => undefined, hasRoom: () => false, take: () => false };
  const response = await door.chat(hello);
  expect([await errorOf(response), response.headers.get('x-should-retry'), neighbours.calls.length]).toEqual([[503, 'server_error', 'all_models_unavailable'], 'true', 1]);
});

describe('refuses', () => {
  const chat = (over: object = {}) => () => door.chat({ ...hello, ...over });
  const make = (body: object): Promise<Response> => door.get('/api/auth', { method: 'POST', headers: { authorization: `Bearer ${door.key}`, 'content-type': 'application/json' }, body: JSON.stringify(body) });
  test.each<[number, string, string | null, () => Promise<Response>]>([
    [400, 'invalid_request_error', null, () => door.chat('{"model":')],
    [400, 'invalid_request_error', 'invalid_value', chat({ temperature: 3 })],
    [400, 'invalid_request_error', 'plugin_unavailable', chat({ plugins: ['web-search'] })],
    [400, 'invalid_request_error', 'invalid_value', () => door.get('/v1/models/%ff')],
    [400, 'invalid_request_error', 'invalid_value', () => door.get('/api/requests?after=%00')],
    [404, 'invalid_request_error', 'key_not_found', () => door.get('/api/auth/key_%00')],
    [404, 'invalid_request_error', 'key_not_found', () => door.get('/api/providers/openai%00', { method: 'DELETE' })],
    ...['GET', 'PUT', 'DELETE'].map((method) => [400, 'invalid_request_error', 'invalid_value', () => door.get('/api/providers/Google', { method })] as [number, string, string, () => Promise<Response>]),
    [400, 'invalid_request_error', 'invalid_value', () => make({ name: 'a\0b' })],
    [400, 'invalid_request_error', 'invalid_value', () => make({ name: 'ci', scopes: [] })],
    [400, 'invalid_request_error', 'invalid_value', () => make({ name: 'ci', limits: { allowed_models: [] } })],
    [400, 'invalid_request_error', 'invalid_value', () => make({ name: 'ci', scope: ['models:read'] })],
    [400, 'invalid_request_error', 'invalid_value', () => make({ name: 'ci', max_budget: 5 })],
    [400, 'invalid_request_error', 'invalid_value', () => door.get('/api/auth/key_1', { method: 'PATCH', headers: { authorization: `Bearer ${door.key}`, 'content-type': 'application/json' }, body: '{"disable":true}' })],
    [401, 'invalid_request_error', 'invalid_api_key', () => door.chat(hello, { authorization: 'Bearer nonsense' })],
    [401, 'invalid_request_error', 'invalid_api_key', () => door.chat(hello, { authorization: 'Basic abc' })],
    [404, 'invalid_request_error', 'unknown_url', () => door.get('/v1/nothing')],
    [404, 'invalid_request_error', 'unknown_url', () => door.get('/v1/Chat/Completions', { method: 'POST' })],
    [404, 'invalid_request_error', 'model_not_found', () => door.get('/v1/models/maker/none')],
    [405, 'invalid_request_error', 'method_not_allowed', () => door.get('/v1/chat/completions')],
    [405, 'invalid_request_error', 'method_not_allowed', () => door.get('/v1/chat/completions', { method: 'OPTIONS' })],
    [405, 'invalid_request_error', 'method_not_allowed', () => door.get('/v1/models', { method: 'DELETE' })],
    [405, 'invalid_request_error', 'method_not_allowed', () => door.get('/api/auth', { method: 'DELETE' })],
    [405, 'invalid_request_error', 'method_not_allowed', () => door.get('/api/auth/key_1', { method: 'PUT' })],
    [405, 'invalid_request_error', 'method_not_allowed', () => door.get('/api/auth/key_1/rotate')],
    ...['/v1/models', '/v1/decisions/dec_1', '/v1/feedback', '/api/auth', '/api/auth/key_1', '/api/auth/key_1/rotate', '/api/providers', '/api/providers/a', '/api/policy', '/api/session', '/api/plugins', '/api/memory', '/api/limits', '/openapi.json'].map(
      (path): [number, string, string, () => Promise<Response>] => [405, 'invalid_request_error', 'method_not_allowed', () => door.get(path, { method: 'OPTIONS' })],
    ),
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

  test.each([['/v1/chat/completions', 'POST'], ['/api/auth/key_1', 'GET, PATCH, or DELETE']])('a method that %s does not have, naming those that it has', async (path, instead) => {
    const response = await door.get(path, { method: 'PUT' });
    expect([response.status, await response.json()]).toMatchObject([405, { error: { message: `The method PUT is not allowed here: use ${instead}.` } }]);
  });

  test.each(['revoked', 'expired'])('a key that is %s, with its state', async (status) => {
    door.accounts.add(door.key, { key: keyWith({ status }), account: accountWith() });
    const response = await door.chat(hello);
    expect(response.headers.get('www-authenticate')).toBe('Bearer');
    expect(await errorOf(response)).toEqual([401, 'invalid_request_error', `api_key_${status}`]);
  });

  test('a disabled key with the right secret by another message than an unknown key', async () => {
    door.accounts.add(door.key, { key: keyWith({ status: 'disabled' }), account: accountWith() });
    const response = await door.chat(hello);
    expect([response.status, await response.json()]).toMatchObject([401, { error: { code: 'invalid_api_key', message: 'The API key is disabled.' } }]);
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

  test.each([
    [402, () => void (door.neighbours.admissions = [admissionOf('COST_CAPPED')])],
    [429, () => void (door.neighbours.admissions = [admissionOf('RATE_LIMITED')])],
    [503, () => void (door.neighbours.admissions = [new Fault('quota_unavailable', 'x')])],
  ])('with %i after a decision, naming that to a client that asks for metadata, and else not', async (status, arrange) => {
    const ask = async (headers: Record<string, string>): Promise<unknown> => {
      arrange();
      const response = await door.chat(hello, headers);
      expect(response.status).toBe(status);
      return response.json();
    };
    expect(await ask({ 'x-router-metadata': 'enabled' })).toMatchObject({ router_metadata: { decision_id: 'dec_1' } });
    expect(Object.keys((await ask({})) as object)).toEqual(['error']);
  });

  test('a request without a key, and one with two', async () => {
    expect(await errorOf(await fetch(`${door.url}/v1/models`))).toEqual([401, 'invalid_request_error', null]);
    const line = `authorization: Bearer ${door.key}\r\n`;
    expect(await readRaw(door.raw(`GET /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${line}${line}\r\n`))).toMatch(/^HTTP\/1\.1 401/);
  });

  test.each([
    ['Idempotency-Key', '/v1/chat/completions', JSON.stringify(hello)],
    ['Idempotency-Key', '/api/auth', '{"name":"ci"}'],
    ['x-session-id', '/v1/chat/completions', JSON.stringify(hello)],
  ])('two headers %s of one request to %s, which would be read as a third', async (name, path, body) => {
    const lines = `connection: close\r\n${name}: a\r\n${name.toLowerCase()}: b\r\n`;
    const [head = '', told = ''] = (await readRaw(door.raw(chatText(door.key, body, { lines }).replace('/v1/chat/completions', path)))).split('\r\n\r\n');
    expect([head.slice(0, 12), JSON.parse(told)]).toMatchObject(['HTTP/1.1 400', { error: { code: 'invalid_value', param: name, message: expect.stringContaining('sent once') as unknown } }]);
    expect([door.neighbours.calls, door.claims.kept.size]).toEqual([[], 0]);
  });

  test.each(['sk-1', 'Basic a2V5Og==', 'Bearer'])('a header without a bearer key (%s), and says what it should contain', async (authorization) => {
    const response = await door.chat(hello, { authorization });
    expect([response.status, await response.json()]).toMatchObject([401, { error: { code: 'invalid_api_key', message: expect.stringContaining('"Authorization: Bearer <key>"') as unknown } }]);
  });

  test('a key of another service, and says how keys of this one begin', async () => {
    const response = await door.chat(hello, { authorization: 'Bearer sk-or-v1-0123456789' });
    expect([response.status, await response.json()]).toMatchObject([401, { error: { code: 'invalid_api_key', message: 'The API key is not valid. Keys of this service begin with sbx_live_.' } }]);
  });

  test('a body that curl sends as a form, and names the missing header', async () => {
    const response = await door.chat(hello, { 'content-type': 'application/x-www-form-urlencoded' });
    expect([response.status, await response.json()]).toMatchObject([415, { error: { code: 'unsupported_media_type', message: expect.stringContaining('Content-Type: application/json') as unknown } }]);
  });

  test.each([
    ['text/plain', 415],
    ['application/json; charset=utf-8', 200],
  ])('two Content-Types unless both are JSON, since what stands before the gateway may go by either: %s gets %i', async (type, status) => {
    door.neighbours.scripts.set('a', answersWith('ok'));
    for (const lines of [`content-type: ${type}\r\n`, `Content-Type: application/json\r\nconTent-type: ${type}\r\n`]) {
      const text = chatText(door.key, JSON.stringify(hello), { lines: `connection: close\r\n${lines}` });
      expect((await readRaw(door.raw(text))).slice(0, 12)).toBe(`HTTP/1.1 ${status}`);
    }
    expect(door.neighbours.calls).toHaveLength(status === 200 ? 2 : 0);
  });

  test('a header whose key is empty, and says so', async () => {
    const response = await door.chat(hello, { authorization: 'Bearer ' });
    expect([response.status, await response.json()]).toMatchObject([401, { error: { code: 'invalid_api_key', message: expect.stringContaining('holds no API key') as unknown } }]);
  });

  test('HEAD with a status and without a body', async () => {
    const response = await door.get('/v1/chat/completions', { method: 'HEAD' });
    expect([response.status, await response.text()]).toEqual([405, '']);
  });

  test('key management for a key without its scope', async () => {
    door.accounts.add(door.key, { key: keyWith({ scopes: ['inference'] }), account: accountWith() });
    expect(await errorOf(await door.get('/api/auth'))).toEqual([403, 'permission_error', 'insufficient_scope']);
  });

  test('a body, or headers, that do not arrive in time, with 408', async () => {
    door.server.requestTimeout = 100;
    door.server.headersTimeout = 100;
    const late = [chatText(door.key, '{"mod', { length: 100 }), 'GET /v1/models HTTP/1.1\r\nhost: x\r\n'];
    for (const text of await Promise.all(late.map((sent) => readRaw(door.raw(sent))))) {
      expect(text).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
      expect(text).toContain('"code":"request_timeout"');
    }
    await until(() => door.metrics.inFlight() === 0);
  });

  describe('errors that node:http would answer itself have the API’s form', () => {
    const ask = (headers: string, body = JSON.stringify(hello)): string => `POST /v1/chat/completions HTTP/1.1\r\nauthorization: Bearer ${door.key}\r\ncontent-type: application/json\r\n${headers}\r\n${body}`;
    const chunked = (size: string, rest = '0\r\n\r\n'): string => `${size}\r\n${JSON.stringify(hello)}\r\n${rest}`;
    const length = (bytes = JSON.stringify(hello).length): string => `content-length: ${bytes}\r\n`;
    const size = JSON.stringify(hello).length.toString(16);

    test.each<[string, number, string | null, () => string]>([
      ['an invalid request line', 400, null, () => 'NONSENSE\r\n\r\n'],
      ['an unknown HTTP version', 400, null, () => 'GET / HTTP/3.7\r\nhost: x\r\n\r\n'],
      ['a bad header', 400, null, () => ask('host: x\r\nbad header: y\r\n')],
      ['no Host', 400, null, () => ask(length())],
      ['two Hosts', 400, null, () => ask(`host: x\r\nHost: y\r\n${length()}`)],
      ['an unknown expectation', 417, 'expectation_failed', () => ask(`host: x\r\nexpect: banana\r\n${length()}`)],
      ['CONNECT', 405, 'method_not_allowed', () => 'CONNECT x:443 HTTP/1.1\r\nhost: x:443\r\n\r\n'],
      ['two Content-Length headers', 400, null, () => ask(`host: x\r\n${length()}${length(5)}`)],
      ['Content-Length beside a chunked body', 400, null, () => ask(`host: x\r\ntransfer-encoding: chunked\r\n${length(5)}`, chunked(size))],
      ['a transfer coding without chunks', 400, null, () => ask('host: x\r\ntransfer-encoding: gzip\r\n')],
      ['a transfer coding within chunks', 415, 'unsupported_media_type', () => ask('host: x\r\nconnection: close\r\ntransfer-encoding: gzip, chunked\r\n', chunked(size))],
      ['a chunk without a size', 400, null, () => ask('host: x\r\ntransfer-encoding: chunked\r\n', chunked('zz'))],
      ['a chunk with a wrong size', 400, null, () => ask('host: x\r\ntransfer-encoding: chunked\r\n', chunked('3'))],
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
  test('more than two hundred bad requests of a key in a second get 429, until the second is over', async () => {
    const statuses: number[] = [];
    let told = '';
    for (let i = 0; i < 202; i += 1) {
      const response = await door.chat('{}');
      statuses.push(response.status);
      told = await response.text();
    }
    expect([statuses[199], statuses[200], statuses[201]]).toEqual([400, 429, 429]);
    expect(told).toContain('Rate limit reached: more than 200 requests of this key were refused within a second.');
    door.neighbours.clock.advance(1_000);
    expect((await door.chat(hello)).status).toBe(200);
  });

  test.each<[string, number, () => Promise<Response>]>([
    ['creating a key without a field', 400, () => door.get('/api/auth', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })],
    ['a body that is not JSON', 400, () => door.get('/api/providers/a', { method: 'PUT', headers: { 'content-type': 'application/json' }, body: '{' })],
    ['a credential for an unknown provider', 400, () => door.get('/api/providers/nobody', { method: 'PUT', headers: { 'content-type': 'application/json' }, body: '{"secret":"x"}' })],
    ['an unknown model', 404, () => door.get('/v1/models/nobody')],
    ['a missing scope', 403, () => door.get('/api/limits')],
    ['an unknown path below an existing one', 404, () => door.get('/api/auth/key_1/nothing')],
  ])('bad requests on other routes count, too: %s', async (_what, status, ask) => {
    const statuses: number[] = [];
    for (let i = 0; i < 202; i += 1) {
      const response = await ask();
      statuses.push(response.status);
      await response.arrayBuffer();
    }
    expect([statuses[0], statuses[199], statuses[200], statuses[201]]).toEqual([status, status, 429, 429]);
    door.neighbours.clock.advance(1_000);
    expect((await ask()).status).toBe(status);
  });

  test('faults of ours do not count', async () => {
    for (let i = 0; i < 202; i += 1) await (await door.get('/api/auth')).arrayBuffer();
    expect((await door.get('/api/auth')).status).toBe(503);
  });

  test('failed authentications block an address for unknown keys, but not for a cached one', async () => {
    expect((await door.chat(hello)).status).toBe(200);
    const statuses: number[] = [];
    let told = '';
    for (let i = 0; i < 102; i += 1) {
      const response = await fetch(`${door.url}/v1/models`);
      statuses.push(response.status);
      told = await response.text();
    }
    expect([statuses[99], statuses[101]]).toEqual([401, 429]);
    expect(told).toContain('Rate limit reached: more than 100 requests from this address failed to authenticate within a minute.');
    expect((await door.chat(hello)).status).toBe(200);
    door.neighbours.clock.advance(60_000);
    expect((await fetch(`${door.url}/v1/models`)).status).toBe(401);
  });

  test('nor for a valid key that is not cached yet, while invalid and unknown keys are refused and few are looked up', async () => {
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
    // Cached by now.
    expect(await statusOf(door.key)).toBe(200);
  });
});
