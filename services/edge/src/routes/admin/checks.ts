/** Checks that the accounts and models which an admin request names exist, before anything is done. */
import type { Account__Output, AccountAnswer__Output } from '@signalbox/contracts/accounts';
import type { RpcClient } from '@signalbox/rpc/call';
import type { Response } from 'express';
import { createNameCheck, type NameCheck } from '../known-names.js';
import { ANSWER_OPTIONS, refuse } from './answers.js';

export interface AdminChecks {
  readonly unknownName: NameCheck;
  /** True when the model exists, or none is named; else the refusal has been sent. */
  isModel(name: string | null | undefined, response: Response): Promise<boolean>;
  /** True when the account exists; else the refusal has been sent. */
  isAccount(id: string, response: Response): Promise<boolean>;
  /** The account; undefined when it does not exist, and the refusal has been sent. */
  accountOf(id: string, response: Response): Promise<Account__Output | undefined>;
}

export function createAdminChecks({ accounts, routing, plugins }: { readonly accounts: RpcClient; readonly routing: RpcClient; readonly plugins: RpcClient | undefined }): AdminChecks {
  const unknownName = createNameCheck(routing, plugins);
  const lookUp = async (accountId: string, response: Response): Promise<AccountAnswer__Output> => {
    const answer = await accounts.unary<object, AccountAnswer__Output>('GetAccount', { id: accountId }, ANSWER_OPTIONS);
    if (!answer.found) refuse(response, 404, accountId === '' ? 'account is required.' : 'account names no account.');
    return answer;
  };
  return {
    unknownName,
    isModel: async (name, response) => {
      const unknown = await unknownName({ models: { field: 'baseline_model', names: name === null || name === undefined ? [] : [name] } });
      if (unknown !== undefined) refuse(response, 400, unknown.message);
      return unknown === undefined;
    },
    isAccount: async (accountId, response) => (await lookUp(accountId, response)).found,
    accountOf: async (accountId, response) => (await lookUp(accountId, response)).account ?? undefined,
  };
}
