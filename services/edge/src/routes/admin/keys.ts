/** The operator's door to keys. */
import type { CreateKeyResponse__Output, KeyAnswer__Output, ListKeysResponse__Output } from '@signalbox/contracts/accounts';
import type { RpcClient } from '@signalbox/rpc/call';
import { Router } from 'express';
import { keyBody } from '../api-auth/schema.js';
import { ANSWER_OPTIONS, bodyOf, id, refuse, send, text } from './answers.js';
import type { AdminChecks } from './checks.js';
import { createKeySchema } from './schema.js';

export function createAdminKeysRouter(accounts: RpcClient, { isAccount }: AdminChecks): Router {
  const router = Router();
  router.post('/keys', async (request, response) => {
    const given = bodyOf(request, createKeySchema);
    const made = await accounts.unary<object, CreateKeyResponse__Output>(
      'CreateKey',
      { accountId: given.account_id, name: given.name, scopes: given.scopes ?? [], actorKeyId: '', ...(given.expires_in === undefined ? {} : { expiresInSeconds: String(given.expires_in) }) },
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
  router.delete('/keys/:id', async (request, response) => {
    // Misspelt, it would leave running what is to end.
    const other = Object.entries(request.query).find(([name, value]) => name !== 'compromised' || (value !== 'true' && value !== 'false'));
    if (other !== undefined) return refuse(response, 400, 'Only compromised may be given, as true or false.');
    const found = await accounts.unary<object, KeyAnswer__Output>('RevokeKey', { ref: { accountId: '', keyId: id(request) }, compromised: text(request, 'compromised') === 'true' }, ANSWER_OPTIONS);
    if (found.key === null) refuse(response, 404, 'No such key.');
    else send(response, { key: keyBody(found.key) });
  });
  return router;
}
