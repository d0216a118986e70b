import { expect, test } from '@jest/globals';
import type { Account, Account__Output } from '@signalbox/contracts/accounts';
import { messageCodec } from '@signalbox/contracts/load';
import type { RpcClient } from '@signalbox/rpc/call';
import { createAccountsClient } from './accounts-client.js';

const codec = messageCodec<Account, Account__Output>('signalbox.accounts.v1.Account');

/** Trial credit among the terms of an account of variant A. */
async function creditOf(account: Account): Promise<bigint | null | undefined> {
  const unary = () => Promise.resolve({ found: true, account: codec.decode(codec.encode({ id: 'a', createdAt: '1', ...account })) });
  const client = { unary, isConnected: () => true, close: () => Promise.resolve() } as unknown as RpcClient;
  return (await createAccountsClient(() => Promise.resolve(client), 'A').termsOf('a'))?.terms.trialCreditNanoUsd;
}

test.each<[string, Account, bigint | null]>([
  ['of the tier', { tier: 'free' }, 5_000_000_000n],
  ['of a tier without one', { tier: 'team' }, null],
  ['of the account', { tier: 'free', trialCreditNanoUsd: '7' }, 7n],
  ['kept from earlier terms', { tier: 'team', keptCreditNanoUsd: '5000000000' }, 5_000_000_000n],
  ['the larger of both', { tier: 'free', keptCreditNanoUsd: '7' }, 5_000_000_000n],
  ['the larger of both', { tier: 'free', trialCreditNanoUsd: '0', keptCreditNanoUsd: '7' }, 7n],
])('the credit %s: %j', async (_name, account, credit) => {
  expect(await creditOf(account)).toBe(credit);
});
