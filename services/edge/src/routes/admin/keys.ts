/** Admin routes for keys. */
import type { CreateKeyResponse__Output, KeyAnswer__Output, ListKeysResponse__Output, UpdateKeyRequest } from '@signalbox/contracts/accounts';
import type { RpcClient } from '@signalbox/rpc/call';
import { Router, type Response } from 'express';
import { keyBody } from '../api-auth/schema.js';
import { ANSWER_OPTIONS, bodyOf, id, refuse, send, text } from './answers.js';
import type { AdminChecks } from './checks.js';
import { createKeySchema, keyLimitsOf, rotateKeySchema, setKeySchema } from './schema.js';

export function createAdminKeysRouter(accounts: RpcClient, { isAccount, unknownName }: AdminChecks): Router {
  const areModels = async (names: readonly string[] | null | undefined, kept: readonly string[] | undefined, response: Response): Promise<boolean> => {
    const unknown = await unknownName({ allowModels: { field: 'allowed_models', names, kept } });
    if (unknown !== undefined) refuse(response, 400, unknown.message);
    return unknown === undefined;
  };

  const router = Router();
  router.post('/keys', async (request, response) => {
    const given = bodyOf(request, createKeySchema);
    if (!(await areModels(given.allowed_models, undefined, response))) return;
    const limits = keyLimitsOf(given, null)?.limits;
    const made = await accounts.unary<object, CreateKeyResponse__Output>(
      'CreateKey',
      { accountId: given.account_id, name: given.name, scopes: given.scopes ?? [], actorKeyId: '', ...(given.expires_in === undefined ? {} : { expiresInSeconds: String(given.expires_in) }), ...(limits === undefined ? {} : { limits }) },
      ANSWER_OPTIONS,
    );
    if (made.key === null) refuse(response, 400, made.problem);
    else send(response, { key: keyBody(made.key, made.secret) }, 201);
  });
  router.get('/keys', async (request, response) => {
    if (!(await isAccount(text(request, 'account'), response))) return;
    const page = await accounts.unary<object, ListKeysResponse__Output>('ListKeys', { accountId: text(request, 'account'), limit: 100, after: text(request, 'after'), status: text(request, 'status') }, ANSWER_OPTIONS);
    if (page.problem === '') send(response, { keys: page.keys.map((key) => keyBody(key)), has_more: page.hasMore });
    else refuse(response, 400, page.problem);
  });
  router.patch('/keys/:id', async (request, response) => {
    const given = bodyOf(request, setKeySchema);
    const ref = { accountId: '', keyId: id(request) };
    // Accounts changes only the limits that are named. An older version replaces all, so the present ones are sent with them.
    const before = await accounts.unary<object, KeyAnswer__Output>('GetKey', ref, ANSWER_OPTIONS);
    if (before.key === null) return refuse(response, 404, 'No such key.');
    if (!(await areModels(given.allowed_models, before.key.limits?.allowedModels, response))) return;
    const changed = keyLimitsOf(given, before.key.limits);
    const change: UpdateKeyRequest = {
      ref,
      actorKeyId: '',
      replaceLimits: changed !== undefined,
      ...(given.name === undefined ? {} : { name: given.name }),
      ...(given.disabled === undefined ? {} : { disabled: given.disabled }),
      ...changed,
    };
    const { found, key, problem } = await accounts.unary<UpdateKeyRequest, KeyAnswer__Output>('UpdateKey', change, ANSWER_OPTIONS);
    if (key !== null) send(response, { key: keyBody(key) });
    else refuse(response, found ? 400 : 404, found ? problem : 'No such key.');
  });
  router.post('/keys/:id/rotate', async (request, response) => {
    const given = bodyOf(request, rotateKeySchema);
    const made = await accounts.unary<object, CreateKeyResponse__Output>('RotateKey', { ref: { accountId: '', keyId: id(request) }, graceSeconds: given.grace_seconds, actorKeyId: '' }, ANSWER_OPTIONS);
    if (made.key !== null) send(response, { key: keyBody(made.key, made.secret) });
    else refuse(response, made.problem === '' ? 404 : 400, made.problem || 'No such key.');
  });
  router.delete('/keys/:id', async (request, response) => {
    // A misspelt `compromised` would leave requests running that must end.
    const other = Object.entries(request.query).find(([name, value]) => name !== 'compromised' || (value !== 'true' && value !== 'false'));
    if (other !== undefined) return refuse(response, 400, 'Only compromised may be given, as true or false.');
    const found = await accounts.unary<object, KeyAnswer__Output>('RevokeKey', { ref: { accountId: '', keyId: id(request) }, compromised: text(request, 'compromised') === 'true' }, ANSWER_OPTIONS);
    if (found.key === null) refuse(response, 404, 'No such key.');
    else send(response, { key: keyBody(found.key) });
  });
  return router;
}
