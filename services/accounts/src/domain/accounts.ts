/** Creates, changes and suspends accounts. */
import { assert } from '@signalbox/kernel/assert';
import type { Clock } from '@signalbox/kernel/clock';
import type { IdSource } from '@signalbox/kernel/ids';
import { isTier, tierTerms, type TierTerms, type Variant } from '@signalbox/kernel/tiers';
import type { SecretMaker } from './secrets.js';
import type { AccountStore, Announcer, Change } from './ports.js';
import { OPERATOR_DEFAULT_SCOPES, type AccountRecord, type KeyRecord } from './records.js';
import { accountProblem, nameProblem, scopesProblem } from './rules.js';
import { newKeyRecord, NO_LIMITS } from './keys.js';

export interface AccountsOptions {
  readonly store: AccountStore;
  readonly announcer: Announcer;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly secrets: SecretMaker;
  /** The deployment's contract variant. */
  readonly variant: Variant;
}

export type Refused = { readonly problem: string };

export interface Accounts {
  /** Creates an account, and its first key if `keyName` is not empty. The secret is returned only here. */
  create(wanted: AccountRecord, keyName: string, keyScopes: readonly string[]): Promise<{ readonly account: AccountRecord; readonly first?: { readonly key: KeyRecord; readonly secret: string } } | Refused>;
  /**
   * Undefined = no such account. Id, time of creation and the largest trial credit are kept. A change from a tier with a trial
   * credit to one without removes the account's own trial credit as a limit, unless `named` (the settings in the change) contains it.
   */
  set(id: string, change: (account: AccountRecord) => AccountRecord, named?: readonly (keyof AccountRecord)[]): Promise<AccountRecord | Refused | undefined>;
  find(id: string): Promise<AccountRecord | undefined>;
  /** Newest first. */
  list(limit: number, after: string): Promise<{ readonly accounts: readonly AccountRecord[]; readonly hasMore: boolean }>;
}

const PAGE_MAX = 1_000;

export function createAccounts({ store, announcer, clock, ids, secrets, variant }: AccountsOptions): Accounts {
  function termsOf({ tier, variant: own }: AccountRecord): TierTerms {
    assert(isTier(tier), 'A stored account has a known tier.');
    return tierTerms(own === 'A' || own === 'B' ? own : variant, tier);
  }
  /** A promised credit is never taken back: returns the larger of the credit under these terms and under earlier ones. */
  function keptCredit(account: AccountRecord): bigint | null {
    const { trialCreditNanoUsd, keptCreditNanoUsd } = account;
    const credit = trialCreditNanoUsd ?? termsOf(account).trialCreditNanoUsd;
    return credit === null || (keptCreditNanoUsd !== null && keptCreditNanoUsd > credit) ? keptCreditNanoUsd : credit;
  }

  return {
    create: async (wanted, keyName, keyScopes) => {
      const nowSeconds = Math.floor(clock.nowMs() / 1_000);
      const account: AccountRecord = { ...wanted, id: ids('account'), createdAt: nowSeconds, keptCreditNanoUsd: null };
      const scopes = keyScopes.length === 0 ? OPERATOR_DEFAULT_SCOPES : [...new Set(keyScopes)];
      const problem = accountProblem(account) ?? (keyName === '' ? undefined : (nameProblem(keyName) ?? scopesProblem(scopes)));
      if (problem !== undefined) return { problem };
      if (keyName === '') {
        await store.insertAccount(account);
        return { account };
      }
      const made = secrets.make();
      const key = newKeyRecord({ id: ids('key'), accountId: account.id, name: keyName, prefix: made.prefix, scopes, createdAt: nowSeconds, expiresAt: null, limits: NO_LIMITS });
      await store.insertAccount(account, { key, secret: { digest: made.digest, pepperId: secrets.pepperId, keyId: key.id, validUntil: null } });
      return { account, first: { key, secret: made.secret } };
    },
    set: async (id, change, named = []) => {
      let problem: string | undefined;
      let wasSuspended = false;
      const told = ({ suspended }: AccountRecord): Change => ({ keyId: '', accountId: id, reason: suspended && !wasSuspended ? 'suspended' : 'account_updated' });
      const account = await store.updateAccount(
        id,
        (current) => {
          const wanted = change(current);
          const leavesTrial = termsOf(current).trialCreditNanoUsd !== null && isTier(wanted.tier) && termsOf(wanted).trialCreditNanoUsd === null;
          // A customer who begins to pay has left the trial: the rest of the credit still pays, but no longer limits requests.
          const trialCreditNanoUsd = leavesTrial && !named.includes('trialCreditNanoUsd') ? null : wanted.trialCreditNanoUsd;
          const next = { ...wanted, trialCreditNanoUsd, id: current.id, createdAt: current.createdAt, keptCreditNanoUsd: keptCredit(current) };
          problem = accountProblem(next);
          wasSuspended = current.suspended;
          return problem === undefined ? next : current;
        },
        (changed) => (problem === undefined ? told(changed) : undefined),
      );
      if (account === undefined) return undefined;
      if (problem !== undefined) return { problem };
      announcer.invalidated(told(account));
      return account;
    },
    find: (id) => store.findAccount(id),
    list: async (limit, after) => {
      const wanted = Math.min(Math.max(limit, 1), PAGE_MAX);
      const found = await store.listAccounts({ limit: wanted + 1, afterId: after === '' ? undefined : after });
      return { accounts: found.slice(0, wanted), hasMore: found.length > wanted };
    },
  };
}
