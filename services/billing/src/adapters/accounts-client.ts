/** Fetches the terms of accounts from the service that owns them. */
import type { Account__Output, AccountAnswer__Output, GetAccountRequest, ListAccountsRequest, ListAccountsResponse__Output } from '@signalbox/contracts/accounts';
import { assert } from '@signalbox/kernel/assert';
import { Fault } from '@signalbox/kernel/fault';
import { isTier, tierTerms, type Variant } from '@signalbox/kernel/tiers';
import { overshootOf, type BillingTerms } from '@signalbox/ledger-core/statement';
import type { RpcClient } from '@signalbox/rpc/call';
import type { AccountsPort, AccountTerms } from '../domain/bookkeeper.js';

const DEADLINE_MS = 5_000;
/** Accounts makes a page in one go, while keys that are looked up there wait: a thousand took it 60 to 200 ms of a busy machine. */
const PAGE_ACCOUNTS = 100;

/** Either setting makes it a hard cap, as in quota. */
function wallOf({ hardCap, policyHardCap, billingAnchorDay }: Account__Output, includedTokens: bigint | null): Pick<BillingTerms, 'hardCap' | 'overshootTokens'> {
  return hardCap || policyHardCap ? { hardCap: true, overshootTokens: overshootOf(includedTokens, billingAnchorDay) } : { hardCap: false };
}

function termsOf(account: Account__Output, deployment: Variant): AccountTerms {
  const variant = account.variant === 'A' || account.variant === 'B' ? account.variant : deployment;
  assert(isTier(account.tier), 'A stored account has a known tier.');
  const tier = tierTerms(variant, account.tier);
  const own = (value: string | undefined, otherwise: bigint | null): bigint | null => (value === undefined ? otherwise : BigInt(value));
  const credit = own(account.trialCreditNanoUsd, tier.trialCreditNanoUsd);
  const kept = own(account.keptCreditNanoUsd, null);
  const includedTokens = own(account.includedTokens, tier.includedTokens);
  return {
    createdAtMs: Number(account.createdAt) * 1_000,
    terms: {
      tier: account.tier, variant, subscriptionNanoUsd: tier.subscriptionNanoUsd, includedTokens,
      overageNanoUsdPerMillion: own(account.overageNanoUsdPerMillion, tier.overageNanoUsdPerMillion), ...wallOf(account, includedTokens), trialCreditNanoUsd: credit === null || (kept !== null && kept > credit) ? kept : credit,
    },
  };
}

export function createAccountsClient(connect: () => Promise<RpcClient>, deployment: Variant): AccountsPort {
  const ask = async <Message extends object, Answer>(method: string, message: Message): Promise<Answer> => {
    try {
      return await (await connect()).unary<Message, Answer>(method, message, { deadlineMs: DEADLINE_MS });
    } catch (error) {
      throw new Fault('accounts_unavailable', 'accounts did not answer', { cause: error });
    }
  };
  return {
    termsOf: async (accountId) => {
      const { found, account } = await ask<GetAccountRequest, AccountAnswer__Output>('GetAccount', { id: accountId });
      return found && account !== null ? termsOf(account, deployment) : undefined;
    },
    all: async () => {
      const accounts = new Map<string, AccountTerms>();
      for (let after = ''; ; ) {
        const page = await ask<ListAccountsRequest, ListAccountsResponse__Output>('ListAccounts', { limit: PAGE_ACCOUNTS, after });
        for (const account of page.accounts) accounts.set(account.id, termsOf(account, deployment));
        const last = page.accounts.at(-1);
        if (!page.hasMore || last === undefined) return accounts;
        after = last.id;
      }
    },
  };
}
