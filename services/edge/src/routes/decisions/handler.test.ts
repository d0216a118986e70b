import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { makeApiKey } from '@signalbox/kernel/api-key';
import { Fault } from '@signalbox/kernel/fault';
import { randomBytes } from 'node:crypto';
import { accountWith, keyWith } from '../../testing/callers.js';
import { startDoor, type Door } from '../../testing/door.js';

const ID = 'dec_01JD0000000000000000000000';
const ACCOUNT = accountWith().id;
const RECORD = {
  snapshotId: 'cat_1', artefactId: 'qua_1', request: { model: 'auto', models: [], promptTokens: 12, mode: '' }, prediction: { cluster: 'chat', difficulty: 0.5, familiarity: 1 }, rejected: { zdr: 2 },
  considered: [{ model: 'maker/m', endpoint: 'a:maker/m', quality: 0.9, effectiveCost: 1_500, latencyMsP75: null, successShare: 0.99, tier: 0, utility: null, propensity: 1 }],
  floor: 0.87, reason: 'best', attempts: ['a:maker/m'], reference: 'maker/m', sentence: 'The cheapest of the good ones.',
};
const STORED = { id: ID, requestId: 'chatcmpl-1', accountId: ACCOUNT, atMs: '1795200000999', viaAuto: true, recordJson: Buffer.from(JSON.stringify(RECORD)) };

let door: Door;
let key: string;
let asked: (readonly [method: string, message: Readonly<Record<string, unknown>>])[];
beforeEach(async () => {
  door = await startDoor();
  key = makeApiKey(randomBytes);
  asked = [];
  door.accounts.add(key, { key: keyWith({ scopes: ['usage:read', 'inference'] }), account: accountWith() });
});
afterEach(() => door.stop());

const billing = (method: string, ...answers: readonly object[]): void => {
  let turn = 0;
  door.books.set(method, (message) => {
    asked.push([method, message]);
    turn += 1;
    return answers[Math.min(turn, answers.length) - 1] ?? {};
  });
};
const recently = (answer: object): void => void door.routes.set('RecentDecision', (message) => (asked.push(['RecentDecision', message]), answer));
const keyWithout = (scope: string): string => {
  const other = makeApiKey(randomBytes);
  door.accounts.add(other, { key: keyWith({ scopes: ['usage:read', 'inference', 'keys', 'models:read'].filter((one) => one !== scope) }), account: accountWith() });
  return other;
};
interface Answered {
  readonly status: number;
  readonly code: unknown;
  readonly param: unknown;
  readonly body: Readonly<Record<string, unknown>>;
}
async function call(method: string, path: string, { body, headers = {}, as = key }: { readonly body?: string; readonly headers?: Readonly<Record<string, string>>; readonly as?: string } = {}): Promise<Answered> {
  const response = await fetch(`${door.url}${path}`, { method, headers: { ...(as === '' ? {} : { authorization: `Bearer ${as}` }), ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers }, ...(body === undefined ? {} : { body }) });
  const text = await response.text();
  const json = (text === '' ? {} : JSON.parse(text)) as Readonly<Record<string, unknown>>;
  const error = (json['error'] ?? {}) as Readonly<Record<string, unknown>>;
  return { status: response.status, code: error['code'], param: error['param'], body: json };
}
const internal = (): never => {
  throw new Fault('internal_error', 'a bug');
};

describe('GET /v1/decisions/{id}', () => {
  const get = (id = ID, options: Parameters<typeof call>[2] = {}): Promise<Answered> => call('GET', `/v1/decisions/${id}`, options);

  test('200: the record in the API’s form, of the caller’s account only', async () => {
    billing('GetDecision', { decision: { ...STORED, score: 0.5 } });
    const { status, body } = await get();
    expect(status).toBe(200);
    expect(body).toEqual({
      id: ID, object: 'decision', request_id: 'chatcmpl-1', created_at: 1_795_200_000, why: RECORD.sentence, asked: { model: 'auto', models: [], prompt_tokens: 12, mode: null, lambda: null },
      snapshot_id: 'cat_1', artefact_id: 'qua_1', cluster: 'chat', difficulty: 0.5, familiarity: 1, excluded: { zdr: 2 }, quality_floor: 0.87,
      candidates: [{ model: 'maker/m', endpoint: 'a:maker/m', quality: 0.9, expected_cost_usd: 0.0000015, latency_ms_p75: null, p_ok: 0.99, tier: 0, utility: null, propensity: 1 }],
      reason: 'best', attempts: ['a:maker/m'], reference_model: 'maker/m', score: 0.5,
    });
    expect(asked).toEqual([['GetDecision', { accountId: ACCOUNT, id: ID }]]);
  });

  test('200: a decision that routing has not sent to billing yet', async () => {
    billing('GetDecision', { decision: null });
    recently({ found: true, ...STORED });
    expect(await get()).toMatchObject({ status: 200, body: { id: ID, score: null } });
    expect(asked.map(([method, { accountId }]) => [method, accountId])).toEqual([['GetDecision', ACCOUNT], ['RecentDecision', ACCOUNT]]);
  });

  test('401: without a key, and with an invalid one', async () => {
    expect(await get(ID, { as: '' })).toMatchObject({ status: 401, code: null });
    expect(await get(ID, { as: makeApiKey(randomBytes) })).toMatchObject({ status: 401, code: 'invalid_api_key' });
    expect(asked).toEqual([]);
  });

  test('403: without the scope usage:read', async () => {
    expect(await get(ID, { as: keyWithout('usage:read') })).toMatchObject({ status: 403, code: 'insufficient_scope' });
  });

  test('404: neither stored nor recent', async () => {
    billing('GetDecision', { decision: null });
    recently({ found: false });
    expect(await get()).toMatchObject({ status: 404, code: 'decision_not_found', param: 'id' });
  });

  test.each(['x', 'chatcmpl-1', 'key_01JD0000000000000000000000', `${ID}0`, '%00', "'%20or%201=1"])('404: %s is no decision id, and no other service is asked', async (id) => {
    expect(await get(id)).toMatchObject({ status: 404, code: 'decision_not_found' });
    expect(asked).toEqual([]);
  });

  test('405: any other method', async () => {
    for (const method of ['POST', 'PUT', 'DELETE']) expect(await call(method, `/v1/decisions/${ID}`)).toMatchObject({ status: 405, code: 'method_not_allowed' });
  });

  test('500: a bug of ours, and routing away when billing does not know the decision', async () => {
    door.books.set('GetDecision', internal);
    expect(await get()).toMatchObject({ status: 500, code: 'internal_error' });
    billing('GetDecision', { decision: null });
    door.routes.set('RecentDecision', () => {
      throw new Fault('peer_unavailable', 'routing is away');
    });
    expect(await get()).toMatchObject({ status: 500, code: 'routing_unavailable' });
  });

  test('503: billing away', async () => {
    expect(await get()).toMatchObject({ status: 503, code: 'billing_unavailable' });
  });
});

describe('POST /v1/feedback', () => {
  const GIVEN = { request_id: 'chatcmpl-1', score: 0.25 };
  const post = (body: unknown = GIVEN, options: Parameters<typeof call>[2] = {}): Promise<Answered> => call('POST', '/v1/feedback', { body: typeof body === 'string' ? body : JSON.stringify(body), ...options });

  test('204: stored beside the decision', async () => {
    billing('Feedback', { known: true, kept: true });
    expect(await post()).toMatchObject({ status: 204, body: {} });
    expect(asked).toEqual([['Feedback', { accountId: ACCOUNT, requestId: 'chatcmpl-1', score: 0.25 }]]);
  });

  test('204: a decision that is still with routing is sent along, for the caller’s account', async () => {
    billing('Feedback', { known: false, kept: false }, { known: true, kept: true });
    recently({ found: true, ...STORED, accountId: 'acct_other' });
    expect((await post()).status).toBe(204);
    expect(asked.at(-1)).toEqual(['Feedback', { accountId: ACCOUNT, requestId: 'chatcmpl-1', score: 0.25, decision: { ...STORED, accountId: ACCOUNT } }]);
  });

  test('204: for a booked request without a record nothing is stored, without an error', async () => {
    billing('Feedback', { known: true, kept: false });
    recently({ found: false });
    expect((await post()).status).toBe(204);
  });

  test.each<[string, unknown, string | null, string | null]>([
    ['no JSON', '{"request_id":', null, null],
    ['not an object', '[]', null, null],
    ['no request', { score: 1 }, 'missing_required_parameter', 'request_id'],
    ['no score', { request_id: 'chatcmpl-1' }, 'missing_required_parameter', 'score'],
    ['a score below 0', { ...GIVEN, score: -0.01 }, 'invalid_value', 'score'],
    ['a score above 1', { ...GIVEN, score: 1.01 }, 'invalid_value', 'score'],
    ['a score as text', { ...GIVEN, score: '1' }, 'invalid_type', 'score'],
    ['an infinite score', '{"request_id":"chatcmpl-1","score":1e999}', 'invalid_type', 'score'],
    ['an empty request', { ...GIVEN, request_id: '' }, 'invalid_value', 'request_id'],
    ['a request that is too long', { ...GIVEN, request_id: 'x'.repeat(201) }, 'invalid_value', 'request_id'],
    ['another account', { ...GIVEN, account_id: 'acct_other' }, 'invalid_value', 'account_id'],
  ])('400: %s, and billing is not told', async (_what, body, code, param) => {
    billing('Feedback', { known: true, kept: true });
    expect(await post(body)).toMatchObject({ status: 400, code, param });
    expect(asked).toEqual([]);
  });

  test('401: without a key', async () => {
    expect(await post(GIVEN, { as: '' })).toMatchObject({ status: 401, code: null });
  });

  test('403: without the scope inference', async () => {
    expect(await post(GIVEN, { as: keyWithout('inference') })).toMatchObject({ status: 403, code: 'insufficient_scope' });
  });

  test('404: a request that this account never made', async () => {
    billing('Feedback', { known: false, kept: false });
    recently({ found: false });
    expect(await post()).toMatchObject({ status: 404, code: 'request_not_found', param: 'request_id' });
  });

  test('405: any other method', async () => {
    for (const method of ['GET', 'PUT', 'DELETE']) expect(await call(method, '/v1/feedback')).toMatchObject({ status: 405, code: 'method_not_allowed' });
  });

  test('413: a body of more than 64 KB', async () => {
    expect(await post({ ...GIVEN, request_id: 'x'.repeat(70_000) })).toMatchObject({ status: 413, code: 'payload_too_large' });
  });

  test('415: a body that is not JSON by its type', async () => {
    expect(await post(GIVEN, { headers: { 'content-type': 'text/plain' } })).toMatchObject({ status: 415, code: 'unsupported_media_type' });
  });

  test('500: a bug of ours, and routing away when billing does not know the request', async () => {
    door.books.set('Feedback', internal);
    expect(await post()).toMatchObject({ status: 500, code: 'internal_error' });
    billing('Feedback', { known: false, kept: false });
    door.routes.set('RecentDecision', () => {
      throw new Fault('peer_unavailable', 'routing is away');
    });
    expect(await post()).toMatchObject({ status: 500, code: 'routing_unavailable' });
  });

  test('503: billing away', async () => {
    expect(await post()).toMatchObject({ status: 503, code: 'billing_unavailable' });
  });
});
