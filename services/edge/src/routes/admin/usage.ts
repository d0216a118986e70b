/** GET /admin/usage: usage and cost over all accounts. */
import type { AccountAnswer__Output } from '@signalbox/contracts/accounts';
import type { UsageRequest, UsageResponse__Output, UsageRow__Output } from '@signalbox/contracts/billing';
import type { RpcClient } from '@signalbox/rpc/call';
import { Router } from 'express';
import { usd } from '../api-auth/exact-json.js';
import { createModelQuestions } from '../books/model-questions.js';
import { textOf, usageBody, usageQueryOf, wordOf } from '../books/schema.js';
import { isUnknownKey, UNKNOWN_KEY, unknownProvider } from '../known-names.js';
import { QueryError, takesQuery } from '../query-fields.js';
import { ANSWER_OPTIONS, send } from './answers.js';
import type { AdminChecks } from './checks.js';

/** Deadline of a query that adds up all daily rows of the ledger. */
const SUM_OPTIONS = { deadlineMs: 60_000 } as const;
const ROWS = 100;
const ROWS_MAX = 1_000;
/** Accounts whose names are asked for at once. */
const NAMED_AT_ONCE = 16;

/** The sum of the rows shown. */
function totalOf(rows: readonly UsageRow__Output[]): object {
  const sum = (of: (row: UsageRow__Output) => string): string => rows.reduce((total, row) => total + BigInt(of(row)), 0n).toString();
  return {
    requests: Number(sum(({ requests }) => requests)), prompt_tokens: Number(sum(({ promptTokens }) => promptTokens)), completion_tokens: Number(sum(({ completionTokens }) => completionTokens)),
    cost_usd: usd(sum(({ costNanoUsd }) => costNanoUsd)), charge_usd: usd(sum(({ chargeNanoUsd }) => chargeNanoUsd)), savings_usd: usd(sum(({ savingsNanoUsd }) => savingsNanoUsd)),
  };
}

export function createAdminUsageRouter({ accounts, billing, routing }: { readonly accounts: RpcClient; readonly billing: RpcClient; readonly routing: RpcClient }, { isAccount, unknownName }: AdminChecks): Router {
  const router = Router();
  const askOfModel = createModelQuestions(routing);
  const usageOf = (message: UsageRequest): Promise<UsageResponse__Output> => billing.unary<UsageRequest, UsageResponse__Output>('Usage', message, SUM_OPTIONS);

  /** Names of accounts in their order; null for an account that no longer exists. */
  async function namesOf(ids: readonly string[]): Promise<readonly (string | null)[]> {
    const names: (string | null)[] = [];
    for (let first = 0; first < ids.length; first += NAMED_AT_ONCE) {
      const asked = ids.slice(first, first + NAMED_AT_ONCE).map((id) => accounts.unary<object, AccountAnswer__Output>('GetAccount', { id }, ANSWER_OPTIONS));
      for (const { account } of await Promise.all(asked)) names.push(account?.name ?? null);
    }
    return names;
  }

  router.get('/usage', takesQuery('account', 'from', 'to', 'model', 'provider', 'key', 'group_by', 'order', 'limit', 'after'), async (request, response) => {
    const { query } = request;
    const limit = textOf(query, 'limit');
    if (limit !== '' && (!/^\d{1,4}$/.test(limit) || Number(limit) < 1 || Number(limit) > ROWS_MAX)) throw new QueryError('limit', `limit must be from 1 to ${ROWS_MAX}.`);
    const groupBy = wordOf(query, 'group_by', ['account', 'day', 'model', 'provider', 'key']);
    const message = { accountId: textOf(query, 'account'), ...usageQueryOf(query, groupBy), groupBy, limit: limit === '' ? ROWS : Number(limit) };
    const { accountId } = message;
    if (accountId !== '' && !(await isAccount(accountId, response))) return;
    const { rows, hasMore } = await askOfModel({
      model: message.model, ask: (model) => usageOf({ ...message, model }), hasFound: ({ rows: found }) => found.length > 0,
      isBooked: async () => (await usageOf({ accountId, model: message.model, groupBy: 'model', limit: 1 })).rows.length > 0,
    });
    const unknown = rows.length > 0 ? undefined : await unknownProvider(unknownName, textOf(query, 'provider'));
    if (unknown !== undefined) throw new QueryError('provider', unknown.message);
    if (rows.length === 0 && (await isUnknownKey(accounts, { accountId, keyId: message.keyId }))) throw new QueryError('key', UNKNOWN_KEY);
    const names = groupBy === 'account' ? await namesOf(rows.map(({ group }) => group)) : [];
    send(response, { rows: rows.map((row, index) => ({ ...usageBody(groupBy, row), ...(groupBy === 'account' ? { name: names[index] } : {}) })), total: totalOf(rows), has_more: hasMore });
  });
  return router;
}
