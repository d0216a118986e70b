import { expect, test } from '@jest/globals';
import type { Request, Response } from 'express';
import { startDoor } from '../testing/door.js';
import { createSchema } from './api-auth/schema.js';
import { createControl, type RouteError } from './control-route.js';

test.each([
  ['limits must be tight.', 400, 'invalid_value', 'limits'],
  ['insufficient_scope: scopes must not exceed those of the calling key.', 403, 'insufficient_scope', 'scopes'],
  ['api_key_revoked: The API key that asks is revoked.', 401, 'api_key_revoked', null],
  ['api_key_expired: The API key that asks is expired.', 401, 'api_key_expired', null],
  ['invalid_api_key: The API key that asks is disabled.', 401, 'invalid_api_key', null],
])('%s is answered %i %s', (problem, status, code, param) => {
  const told: RouteError[] = [];
  const unused = (): never => {
    throw new Error('not asked');
  };
  const control = createControl({ accounts: { unary: unused } as never, callerOf: unused, readJson: unused, fail: (_response, error) => void told.push(error) });
  control.refuse({} as Response, problem);
  expect(told).toMatchObject([{ status, code, param }]);
});

test.each<[string, object, string, string | null, RegExp]>([
  ['a field that is not known', { name: 'a', mode: 'fast' }, 'invalid_value', 'mode', /^mode: there is no such field\. It takes name, expires_in, scopes, limits\.$/],
  ['a limit that stands beside the limits', { name: 'a', cost_cap_usd: 5 }, 'invalid_value', 'cost_cap_usd', /^cost_cap_usd: there is no such field\. Did you mean 'limits\.cost_cap_usd'\? It takes name, expires_in, scopes, limits\.$/],
  ['one that other gateways call otherwise', { name: 'a', models: [] }, 'invalid_value', 'models', /^models: there is no such field\. Did you mean 'limits\.allowed_models'\? It takes name, /],
  ['a misspelt one beside the limits', { name: 'a', allowed_model: [] }, 'invalid_value', 'allowed_model', /^allowed_model: there is no such field\. Did you mean 'limits\.allowed_models'\? It takes name, expires_in, scopes, limits\.$/],
  ['the first of several', { name: 'a', x: 1, y: 2 }, 'invalid_value', 'x', /^x: there is no such field\. It takes name, expires_in, scopes, limits\.$/],
  ['one within limits', { name: 'a', limits: { cost_cap: 5 } }, 'invalid_value', 'limits.cost_cap', /^limits\.cost_cap: there is no such field\. Did you mean 'cost_cap_usd'\? It takes requests_per_minute, cost_cap_usd, cost_cap_period, cost_caps, allowed_models\.$/],
  ['one of a cap in a list', { name: 'a', limits: { cost_caps: [{ cap_usd: 5, period: 'day', x: 1 }] } }, 'invalid_value', 'limits.cost_caps.[0].x', /^limits\.cost_caps\.\[0\]\.x: /],
  ['a very long one', { name: 'a', ['x'.repeat(9_000)]: 1 }, 'invalid_value', 'x'.repeat(64), /^x{64}: there is no such field\. It takes name, expires_in, scopes, limits\.$/],
  ['a missing one', {}, 'missing_required_parameter', 'name', /^name is required\.$/],
  ['null for one that must be there, which is as if it were missing', { name: null }, 'missing_required_parameter', 'name', /^name is required\.$/],
  ['and so in a list', { name: 'a', limits: { cost_caps: [{ cap_usd: 5, period: null }] } }, 'missing_required_parameter', 'limits.cost_caps.[0].period', /^limits\.cost_caps\.\[0\]\.period is required\.$/],
  ['a misspelt one of a cap in a list, rather than the one that is then missing', { name: 'a', limits: { cost_caps: [{ cap_usd: 5, perod: 'day' }] } }, 'invalid_value', 'limits.cost_caps.[0].perod', /^limits\.cost_caps\.\[0\]\.perod: there is no such field\. Did you mean 'period'\? It takes cap_usd, period\.$/],
  ['a misspelt one, rather than the one that is then missing', { nane: 'a' }, 'invalid_value', 'nane', /^nane: there is no such field\. Did you mean 'name'\? It takes name, expires_in, scopes, limits\.$/],
  ['a missing one of a cap in a list', { name: 'a', limits: { cost_caps: [{ cap_usd: 5 }] } }, 'missing_required_parameter', 'limits.cost_caps.[0].period', /^limits\.cost_caps\.\[0\]\.period is required\.$/],
  ['one that another one requires', { name: 'a', limits: { cost_cap_usd: 5 } }, 'invalid_value', 'limits.cost_cap_period', /is required with cost_cap_usd/],
  ['a fraction', { name: 'a', expires_in: 1.5 }, 'invalid_value', 'expires_in', /^expires_in: expected an integer\.$/],
  ['a value that is too small', { name: 'a', expires_in: 0 }, 'invalid_value', 'expires_in', /^expires_in: expected at least 1\.$/],
  ['a wrong type', { name: 5 }, 'invalid_type', 'name', /^name: /],
  ['a body that is not an object', [], 'invalid_type', null, /^body: /],
])('the wrong parameter is named: %s', async (_what, body, code, param, message) => {
  const told: RouteError[] = [];
  const unused = (): never => {
    throw new Error('not asked');
  };
  const control = createControl({ accounts: { unary: unused } as never, callerOf: unused, readJson: () => Promise.resolve(body), fail: (_response, error) => void told.push(error) });
  expect(await control.parse({} as Request, {} as Response, createSchema)).toBeUndefined();
  expect(told).toMatchObject([{ status: 400, code, param, message: expect.stringMatching(message) }]);
});

test.each([
  ['GET', /^Keys and settings cannot be read right now\./],
  ['POST', /may have been made: look before you send it again\.$/],
  ['PATCH', /may have been made: look before you send it again\.$/],
])('a %s that accounts does not answer says what is unknown, and nothing of the key', async (method, message) => {
  const door = await startDoor();
  try {
    const response = await door.get(method === 'POST' ? '/api/auth' : '/api/auth/key_2', { method, ...(method === 'GET' ? {} : { headers: { 'content-type': 'application/json' }, body: '{"name":"ci"}' }) });
    const { error } = (await response.json()) as { error: { message: string; code: string; metadata: object } };
    expect([response.status, error.code, error.metadata, response.headers.get('retry-after')]).toEqual([503, 'accounts_unavailable', { retryable: true }, '1']);
    expect(error.message).toMatch(message);
  } finally {
    await door.stop();
  }
});
