/** Admin routes for accounts' own credentials with providers. */
import type { ListProviderKeysResponse__Output, ProviderKeyAnswer__Output } from '@signalbox/contracts/accounts';
import type { RpcClient } from '@signalbox/rpc/call';
import { Router } from 'express';
import { providerKeyBody } from '../api-providers/handler.js';
import { ANSWER_OPTIONS, bodyOf, refuse, send, text } from './answers.js';
import type { AdminChecks } from './checks.js';
import { providerKeySchema } from './schema.js';

/** `isServed`: a worker of that provider runs, or is started for an account's own credential. */
export function createAdminProviderKeysRouter(accounts: RpcClient, isServed: (provider: string) => boolean, { isAccount }: AdminChecks): Router {
  const router = Router();
  router.put('/byok', async (request, response) => {
    const given = bodyOf(request, providerKeySchema);
    if (!isServed(given.provider)) {
      refuse(response, 400, 'provider names no provider that this gateway serves.');
      return;
    }
    const answer = await accounts.unary<object, ProviderKeyAnswer__Output>('SetProviderKey', { accountId: given.account_id, provider: given.provider, secret: given.secret, zdr: given.zdr ?? false, baseUrl: given.base_url ?? '' }, ANSWER_OPTIONS);
    if (answer.providerKey !== null) send(response, { account_id: answer.providerKey.accountId, ...providerKeyBody(answer.providerKey) });
    else refuse(response, answer.found ? 400 : 404, answer.found ? answer.problem : 'account_id names no account.');
  });
  router.get('/byok', async (request, response) => {
    const accountId = text(request, 'account');
    if (accountId !== '' && !(await isAccount(accountId, response))) return;
    const page = await accounts.unary<object, ListProviderKeysResponse__Output>('ListProviderKeys', { accountId, limit: 1_000, after: text(request, 'after') }, ANSWER_OPTIONS);
    send(response, { provider_keys: page.providerKeys.map((key) => ({ account_id: key.accountId, ...providerKeyBody(key) })), next: page.hasMore ? (page.providerKeys.at(-1)?.handle ?? null) : null });
  });
  router.delete('/byok', async (request, response) => {
    const provider = text(request, 'provider');
    const { found } = await accounts.unary<object, ProviderKeyAnswer__Output>('RemoveProviderKey', { accountId: text(request, 'account'), provider }, ANSWER_OPTIONS);
    if (found) send(response, { account_id: text(request, 'account'), provider, deleted: true });
    else refuse(response, 404, 'The account has no credential of its own there.');
  });
  return router;
}
