/** Doors of accounts: message in, domain call, message out. */
import type {
  AccountAnswer, AuthenticateRequest__Output, AuthenticateResponse, CreateAccountRequest__Output, CreateAccountResponse, CreateKeyRequest__Output, CreateKeyResponse, GetAccountRequest__Output, KeyAnswer, KeyRef__Output,
  ListAccountsRequest__Output, ListAccountsResponse, ListKeysRequest__Output, ListKeysResponse, RevokeKeyRequest__Output, RotateKeyRequest__Output, SetAccountRequest__Output, TouchKeysRequest__Output, UpdateKeyRequest__Output,
} from '@signalbox/contracts/accounts';
import { Fault } from '@signalbox/kernel/fault';
import type { Handlers } from '@signalbox/rpc/call';
import type { Accounts } from './domain/accounts.js';
import type { KeyOutcome, Keys, SecretOutcome } from './domain/keys.js';
import type { AccountRecord } from './domain/records.js';
import { accountMessage, accountRecord, keyMessage, limitsRecord } from './messages.js';
import type { AccountsMetrics } from './metrics.js';

/** Fields that SetAccount may replace. */
const SETTABLE: readonly (keyof AccountRecord)[] = [
  'name', 'tier', 'variant', 'suspended', 'requestsPerMinute', 'burstPerSecond', 'includedTokens', 'overageNanoUsdPerMillion', 'trialCreditNanoUsd', 'hardCap', 'costCaps', 'baselineModel',
  'allowModels', 'denyModels', 'allowProviders', 'denyProviders', 'routingMode', 'billingAnchorDay',
];

function required<Value>(value: Value | null): Value {
  if (value === null) throw new Fault('bad_message', 'A message within the request is missing.');
  return value;
}

/** `requests_per_minute` and `requestsPerMinute` name the same field. */
function fieldName(name: string): string {
  return name.replace(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase());
}

function keyAnswer(outcome: KeyOutcome): KeyAnswer {
  if (outcome === undefined) return { found: false };
  return 'problem' in outcome ? { found: true, problem: outcome.problem } : { found: true, key: keyMessage(outcome) };
}

function secretAnswer(outcome: SecretOutcome, absent: string): CreateKeyResponse {
  if (outcome === undefined) return { problem: absent };
  return 'problem' in outcome ? outcome : { key: keyMessage(outcome.seen), secret: outcome.secret };
}

/** Handlers of both doors. */
export function createHandlers({ accounts, keys, metrics }: { readonly accounts: Accounts; readonly keys: Keys; readonly metrics: AccountsMetrics }): Handlers {
  return {
    unary: {
      Authenticate: async ({ digest, pepperId }: AuthenticateRequest__Output): Promise<AuthenticateResponse> => {
        const found = await keys.authenticate(digest, pepperId);
        metrics.authenticated(found === undefined ? 'unknown' : 'found');
        return found === undefined ? { found: false } : { found: true, key: keyMessage(found), account: accountMessage(found.account) };
      },
      CreateAccount: async ({ account, keyName, keyScopes }: CreateAccountRequest__Output): Promise<CreateAccountResponse> => {
        const made = await accounts.create(accountRecord(required(account)), keyName, keyScopes);
        if ('problem' in made) return made;
        const { first } = made;
        return { account: accountMessage(made.account), ...(first === undefined ? {} : { key: keyMessage({ key: first.key, status: 'active' }), secret: first.secret }) };
      },
      SetAccount: async ({ account, fields }: SetAccountRequest__Output): Promise<AccountAnswer> => {
        const wanted = accountRecord(required(account));
        const names = fields.map(fieldName);
        const chosen = SETTABLE.filter((name) => names.includes(name));
        const unknown = names.find((name) => !chosen.some((known) => known === name));
        if (unknown !== undefined) return { found: true, problem: 'fields must name settings of an account.' };
        const outcome = await accounts.set(wanted.id, (current) => ({ ...current, ...Object.fromEntries(chosen.map((name) => [name, wanted[name]])) }));
        if (outcome === undefined) return { found: false };
        return 'problem' in outcome ? { found: true, problem: outcome.problem } : { found: true, account: accountMessage(outcome) };
      },
      GetAccount: async ({ id }: GetAccountRequest__Output): Promise<AccountAnswer> => {
        const account = await accounts.find(id);
        return account === undefined ? { found: false } : { found: true, account: accountMessage(account) };
      },
      ListAccounts: async ({ limit, after }: ListAccountsRequest__Output): Promise<ListAccountsResponse> => {
        const page = await accounts.list(limit === 0 ? 100 : limit, after);
        return { accounts: page.accounts.map(accountMessage), hasMore: page.hasMore };
      },
      CreateKey: async (request: CreateKeyRequest__Output): Promise<CreateKeyResponse> => {
        const { expiresInSeconds, limits, ...rest } = request;
        const outcome = await keys.create({ ...rest, expiresInSeconds: expiresInSeconds === undefined ? null : BigInt(expiresInSeconds), limits: limitsRecord(limits) });
        if (outcome !== undefined && 'seen' in outcome) metrics.keyChanged('created');
        return secretAnswer(outcome, 'account_id names no account.');
      },
      GetKey: async ({ accountId, keyId }: KeyRef__Output): Promise<KeyAnswer> => keyAnswer(await keys.get(accountId, keyId)),
      ListKeys: async ({ accountId, limit, after, status }: ListKeysRequest__Output): Promise<ListKeysResponse> => {
        const page = await keys.list(accountId, limit === 0 ? 20 : limit, after, status);
        return 'problem' in page ? page : { keys: page.keys.map(keyMessage), hasMore: page.hasMore };
      },
      UpdateKey: async (request: UpdateKeyRequest__Output): Promise<KeyAnswer> => {
        const { accountId, keyId } = required(request.ref);
        const outcome = await keys.update(accountId, keyId, { name: request.name, isDisabled: request.disabled, limits: request.replaceLimits ? limitsRecord(request.limits) : undefined });
        if (outcome !== undefined && 'key' in outcome) metrics.keyChanged('updated');
        return keyAnswer(outcome);
      },
      RevokeKey: async ({ ref }: RevokeKeyRequest__Output): Promise<KeyAnswer> => {
        const { accountId, keyId } = required(ref);
        const outcome = await keys.revoke(accountId, keyId);
        if (outcome !== undefined) metrics.keyChanged('revoked');
        return keyAnswer(outcome);
      },
      RotateKey: async ({ ref, graceSeconds }: RotateKeyRequest__Output): Promise<CreateKeyResponse> => {
        const { accountId, keyId } = required(ref);
        const outcome = await keys.rotate(accountId, keyId, graceSeconds);
        if (outcome !== undefined && 'seen' in outcome) metrics.keyChanged('rotated');
        return secretAnswer(outcome, '');
      },
      TouchKeys: async ({ touches }: TouchKeysRequest__Output): Promise<object> => {
        await keys.touch(touches.map(({ keyId, usedAt }) => ({ keyId, usedAt: Number(usedAt) })));
        return {};
      },
    },
  };
}
