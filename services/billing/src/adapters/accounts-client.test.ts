import { expect, test } from '@jest/globals';
import type { Account, Account__Output } from '@signalbox/contracts/accounts';
import { messageCodec } from '@signalbox/contracts/load';
import { OVERSHOOT_TOKENS, type BillingTerms } from '@signalbox/ledger-core/statement';
import type { RpcClient } from '@signalbox/rpc/call';
import { createAccountsClient } from './accounts-client.js';

const codec = messageCodec<Account, Account__Output>('signalbox.accounts.v1.Account');

/** The terms of an account of variant A. */
async function termsOf(account: Account): Promise<BillingTerms | undefined> {
  const unary = () => Promise.resolve({ found: true, account: codec.decode(codec.encode({ id: 'a', createdAt: '1', ...account })) });
  const client = { unary, isConnected: () => true, close: () => Promise.resolve() } as unknown as RpcClient;
  return (await createAccountsClient(() => Promise.resolve(client), 'A').termsOf('a'))?.terms;
}

test.each<[string, Account, bigint | null]>([
  ['of the tier', { tier: 'free' }, 5_000_000_000n],
  ['of a tier without one', { tier: 'team' }, null],
  ['of the account', { tier: 'free', trialCreditNanoUsd: '7' }, 7n],
  ['kept from earlier terms', { tier: 'team', keptCreditNanoUsd: '5000000000' }, 5_000_000_000n],
  ['the larger of both', { tier: 'free', keptCreditNanoUsd: '7' }, 5_000_000_000n],
  ['the larger of both', { tier: 'free', trialCreditNanoUsd: '0', keptCreditNanoUsd: '7' }, 7n],
])('the credit %s: %j', async (_name, account, credit) => {
  expect((await termsOf(account))?.trialCreditNanoUsd).toBe(credit);
});

test.each<[string, Account, object]>([
  ['that is not set', {}, { hardCap: false }],
  ['of the operator', { hardCap: true }, { hardCap: true, overshootTokens: OVERSHOOT_TOKENS }],
  ['of the customer', { policyHardCap: true }, { hardCap: true, overshootTokens: OVERSHOOT_TOKENS }],
  ['of both', { hardCap: true, policyHardCap: true, billingAnchorDay: 1 }, { hardCap: true, overshootTokens: OVERSHOOT_TOKENS }],
  ['whose months begin on another day', { policyHardCap: true, billingAnchorDay: 2 }, { hardCap: true, overshootTokens: OVERSHOOT_TOKENS + 10_000_000n }],
  ['around an allotment of the account’s own', { hardCap: true, billingAnchorDay: 28, includedTokens: '5' }, { hardCap: true, overshootTokens: OVERSHOOT_TOKENS + 5n }],
])('a hard cap %s: %j', async (_name, account, wall) => {
  const { hardCap, overshootTokens } = (await termsOf({ tier: 'team', ...account })) ?? {};
  expect({ hardCap, overshootTokens }).toEqual({ overshootTokens: undefined, ...wall });
});

test('all accounts are read in pages of at most a hundred', async () => {
  const ids = Array.from({ length: 250 }, (_, index) => `acct_${index}`);
  const limits: number[] = [];
  const unary = (_method: string, { limit, after }: { readonly limit: number; readonly after: string }) => {
    limits.push(limit);
    const first = ids.indexOf(after) + 1;
    const accounts = ids.slice(first, first + limit).map((id) => codec.decode(codec.encode({ id, tier: 'team', createdAt: '1' })));
    return Promise.resolve({ accounts, hasMore: first + limit < ids.length });
  };
  const client = { unary, isConnected: () => true, close: () => Promise.resolve() } as unknown as RpcClient;
  expect([...(await createAccountsClient(() => Promise.resolve(client), 'A').all()).keys()]).toEqual(ids);
  expect(limits).toEqual([100, 100, 100]);
});
