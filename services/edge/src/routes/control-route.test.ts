import { expect, test } from '@jest/globals';
import type { Response } from 'express';
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
