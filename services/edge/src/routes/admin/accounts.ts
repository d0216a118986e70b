/** Admin routes for accounts. */
import type { AccountAnswer__Output, CreateAccountResponse__Output, ListAccountsResponse__Output } from '@signalbox/contracts/accounts';
import type { RpcClient } from '@signalbox/rpc/call';
import { Router, type Response } from 'express';
import { keyBody } from '../api-auth/schema.js';
import { ANSWER_OPTIONS, bodyOf, id, refuse, send, text } from './answers.js';
import type { AdminChecks } from './checks.js';
import { accountBody, accountSettings, createAccountSchema, lacksPeriod, setAccountSchema } from './schema.js';

export function createAdminAccountsRouter(accounts: RpcClient, { isModel }: AdminChecks): Router {
  const router = Router();
  router.post('/accounts', async (request, response) => {
    const given = bodyOf(request, createAccountSchema);
    if (!(await isModel(given.baseline_model, response))) return;
    const made = await accounts.unary<object, CreateAccountResponse__Output>('CreateAccount', { account: accountSettings(given).account, keyName: 'default', keyScopes: [] }, ANSWER_OPTIONS);
    if (made.account === null || made.key === null) refuse(response, 400, made.problem);
    else send(response, { account: accountBody(made.account), key: { ...keyBody(made.key), key: made.secret } }, 201);
  });
  router.get('/accounts', async (request, response) => {
    const page = await accounts.unary<object, ListAccountsResponse__Output>('ListAccounts', { limit: 1_000, after: text(request, 'after') }, ANSWER_OPTIONS);
    send(response, { accounts: page.accounts.map(accountBody), has_more: page.hasMore });
  });
  const account = (response: Response, found: AccountAnswer__Output): void => {
    if (!found.found) refuse(response, 404, 'No such account.');
    else if (found.account === null) refuse(response, 400, found.problem);
    else send(response, { account: accountBody(found.account) });
  };
  router.get('/accounts/:id', async (request, response) => account(response, await accounts.unary('GetAccount', { id: id(request) }, ANSWER_OPTIONS)));
  router.patch('/accounts/:id', async (request, response) => {
    const body = bodyOf(request, setAccountSchema);
    if (!(await isModel(body.baseline_model, response))) return;
    const before = lacksPeriod(body) ? await accounts.unary<object, AccountAnswer__Output>('GetAccount', { id: id(request) }, ANSWER_OPTIONS) : undefined;
    const given = accountSettings(body, before?.account?.costCaps);
    account(response, await accounts.unary('SetAccount', { account: { ...given.account, id: id(request) }, fields: given.fields }, ANSWER_OPTIONS));
  });
  for (const [verb, suspended] of [['suspend', true], ['resume', false]] as const) {
    router.post(`/accounts/:id/${verb}`, async (request, response) => account(response, await accounts.unary('SetAccount', { account: { id: id(request), suspended }, fields: ['suspended'] }, ANSWER_OPTIONS)));
  }
  return router;
}
