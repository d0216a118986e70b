/** How the body of a call becomes a message to accounts. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Fault } from '@signalbox/kernel/fault';
import { request as httpRequest } from 'node:http';
import { startDoor, type Door } from '../../testing/door.js';

let door: Door;
let asked: [method: string, message: object][];
beforeEach(async () => {
  door = await startDoor();
  asked = [];
  const { unary } = door.accounts;
  door.accounts.unary = (method, message, options) => {
    if (method === 'UpdateKey' || method === 'RotateKey') asked.push([method, message]);
    return unary(method, message, options);
  };
});
afterEach(() => door.stop());

/** With node:http, since fetch sends `content-length: 0` by itself. */
function send(method: string, path: string, headers: Readonly<Record<string, string>>, body?: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(`${door.url}${path}`, { method, headers: { authorization: `Bearer ${door.key}`, ...headers } }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

const JSON_TYPE = { 'content-type': 'application/json' };
const REF = { accountId: 'acct_1', keyId: 'key_2' };
const BY = { ref: REF, actorKeyId: 'key_1' };
/** The answer after all checks have passed: the accounts service of these tests stores nothing. */
const TAKEN = 503;

describe('a key created under an Idempotency-Key', () => {
  const KEY = { id: 'key_9', accountId: 'acct_1', name: 'ci', prefix: 'sbx_live_abcd', status: 'active', scopes: [], createdAt: '1', limits: null };
  const make = (idempotencyKey?: string) => door.get('/api/auth', { method: 'POST', headers: { ...JSON_TYPE, ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }) }, body: '{"name":"ci"}' });

  test('is created once even if an attempt was cut off: a repeat gets it without the secret', async () => {
    const digests: (string | undefined)[] = [];
    const answers: (object | undefined)[] = [undefined, { key: KEY, secret: '', problem: '' }, { key: KEY, secret: 'sbx_live_new', problem: '' }, { key: KEY, secret: 'sbx_live_new', problem: '' }];
    const { unary } = door.accounts;
    door.accounts.unary = <Message extends object, Answer>(method: string, message: Message, options: never): Promise<Answer> => {
      if (method !== 'CreateKey') return unary<Message, Answer>(method, message, options);
      digests.push((message as { readonly repeatDigest?: Buffer }).repeatDigest?.toString('hex'));
      const answer = answers[digests.length - 1];
      return answer === undefined ? Promise.reject(new Fault('deadline_exceeded', 'too late')) : Promise.resolve(answer as Answer);
    };
    expect((await make('one')).status).toBe(503);
    const again = await make('one');
    const record = (await again.json()) as object;
    expect([again.status, again.headers.get('idempotent-replayed'), record, 'key' in record]).toMatchObject([201, 'true', { id: 'key_9' }, false]);
    const other = await make('two');
    expect([other.status, other.headers.get('idempotent-replayed'), await other.json()]).toMatchObject([201, null, { id: 'key_9', key: 'sbx_live_new' }]);
    await make();
    expect([digests[0] === digests[1], digests[0] === digests[2], digests[0]?.length, digests[3]]).toEqual([true, false, 64, undefined]);
  });
});

describe('a change', () => {
  const LIMITS_NOW = { requestsPerMinute: 9, costCapPeriod: '', costCaps: [{ capNanoUsd: '5000000000', period: 'day' }], allowedModels: ['openai/gpt-4o-mini'] };
  beforeEach(() => {
    const { unary } = door.accounts;
    door.accounts.unary = <Message extends object, Answer>(method: string, message: Message, options: never): Promise<Answer> =>
      method === 'GetKey' ? Promise.resolve({ found: true, key: { id: 'key_2', limits: LIMITS_NOW }, problem: '' } as Answer) : unary<Message, Answer>(method, message, options);
  });
  const NOW = { requestsPerMinute: 9, costCaps: LIMITS_NOW.costCaps, allowedModels: LIMITS_NOW.allowedModels };
  const { requestsPerMinute: _rate, ...UNRATED } = NOW;
  const WEEK = [{ capNanoUsd: '7000000000', period: 'week' }];

  test.each([
    [{ name: null, disabled: null }, { ...BY, replaceLimits: false }],
    [{ name: 'ci', disabled: null }, { ...BY, replaceLimits: false, name: 'ci' }],
    [{ name: null, disabled: true }, { ...BY, replaceLimits: false, disabled: true }],
  ])('leaves a name and a state that are null: %j', async (body, message) => {
    expect([await send('PATCH', '/api/auth/key_2', JSON_TYPE, JSON.stringify(body)), asked]).toEqual([TAKEN, [['UpdateKey', message]]]);
  });

  test.each([
    ['nothing', {}, { ...BY, replaceLimits: false }],
    ['the rate', { requests_per_minute: 3 }, { ...BY, replaceLimits: true, limits: { ...NOW, requestsPerMinute: 3 }, limitNames: ['requestsPerMinute'] }],
    ['no rate', { requests_per_minute: null }, { ...BY, replaceLimits: true, limits: UNRATED, limitNames: ['requestsPerMinute'] }],
    ['the caps', { cost_caps: [{ cap_usd: 7, period: 'week' }] }, { ...BY, replaceLimits: true, limits: { ...NOW, costCaps: WEEK }, limitNames: ['costCaps'] }],
    ['the only cap', { cost_cap_usd: 7, cost_cap_period: 'week' }, { ...BY, replaceLimits: true, limits: { ...NOW, costCaps: WEEK }, limitNames: ['costCaps'] }],
    ['no cap', { cost_cap_usd: null }, { ...BY, replaceLimits: true, limits: { ...NOW, costCaps: [] }, limitNames: ['costCaps'] }],
    ['no caps', { cost_caps: null }, { ...BY, replaceLimits: true, limits: { ...NOW, costCaps: [] }, limitNames: ['costCaps'] }],
    ['no caps and no list', { cost_caps: [], allowed_models: null }, { ...BY, replaceLimits: true, limits: { ...NOW, costCaps: [], allowedModels: [] }, limitNames: ['costCaps', 'allowedModels'] }],
    ['what a record says', { requests_per_minute: null, cost_cap_usd: null, cost_cap_period: null, allowed_models: null }, { ...BY, replaceLimits: true, limits: { costCaps: [], allowedModels: [] }, limitNames: ['requestsPerMinute', 'costCaps', 'allowedModels'] }],
  ])('of limits that names %s keeps the others', async (_what, limits, message) => {
    expect([await send('PATCH', '/api/auth/key_2', JSON_TYPE, JSON.stringify({ limits })), asked]).toEqual([TAKEN, [['UpdateKey', message]]]);
  });

  test('to limits of null takes them all off', async () => {
    expect([await send('PATCH', '/api/auth/key_2', JSON_TYPE, '{"limits":null}'), asked]).toEqual([TAKEN, [['UpdateKey', { ...BY, replaceLimits: true }]]]);
  });
});

test.each(['\\u200b', '\\u2800 ', '\\u0007'])('an invisible name is refused: "%s"', async (name) => {
  for (const [method, path] of [['POST', '/api/auth'], ['PATCH', '/api/auth/key_2']] as const) expect(await send(method, path, JSON_TYPE, `{"name":"${name}"}`)).toBe(400);
  expect(asked).toEqual([]);
});

describe('a rotation', () => {
  test.each<[string, Readonly<Record<string, string>>, string | undefined, number]>([
    ['its time', JSON_TYPE, '{"grace_seconds":60}', 60],
    ['null', JSON_TYPE, '{"grace_seconds":null}', 0],
    ['nothing in its body', JSON_TYPE, '{}', 0],
    ['no body', {}, undefined, 0],
    ['a body of no bytes', { 'content-length': '0', ...JSON_TYPE }, undefined, 0],
  ])('with %s keeps the old secret for the grace time that it gives', async (_what, headers, body, graceSeconds) => {
    expect([await send('POST', '/api/auth/key_2/rotate', headers, body), asked]).toEqual([TAKEN, [['RotateKey', { ...BY, graceSeconds }]]]);
  });
  test.each<[string, Readonly<Record<string, string>>, string | undefined, number]>([
    ['another type', { 'content-type': 'text/plain' }, '{"grace_seconds":60}', 415],
    ['a chunked body without a content type', { 'transfer-encoding': 'chunked' }, '{}', 415],
    ['a field of the wrong type', JSON_TYPE, '{"grace_seconds":"60"}', 400],
    ['null as the body', JSON_TYPE, 'null', 400],
  ])('with %s is refused', async (_what, headers, body, status) => {
    expect([await send('POST', '/api/auth/key_2/rotate', headers, body), asked]).toEqual([status, []]);
  });
  test('is the only change that may have an empty body', async () => {
    for (const [method, path] of [['POST', '/api/auth'], ['PATCH', '/api/auth/key_2'], ['PUT', '/api/policy']] as const) expect([method, path, await send(method, path, { 'content-length': '0' })]).toEqual([method, path, 415]);
  });
});
