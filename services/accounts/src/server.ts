/** RPC handlers of accounts: translate messages to domain calls and back. */
import type {
  AccountAnswer, AuthenticateRequest__Output, ClaimRef__Output, ClaimRequestRequest__Output, ClaimRequestResponse, ClaimStanding, EndClaimRequest__Output, AuthenticateResponse, AuthenticateSessionResponse, CreateAccountRequest__Output, CreateAccountResponse, CreateKeyRequest__Output, CreateKeyResponse, CreateSessionRequest__Output, CreateSessionResponse, GetAccountRequest__Output, KeyAnswer, KeyRef__Output,
  ListAccountsRequest__Output, ListAccountsResponse, ListChangesRequest__Output, ListChangesResponse, ListKeysRequest__Output, ListKeysResponse, ListProviderKeysRequest__Output, ListProviderKeysResponse, ProviderKeyAnswer, ProviderKeyRef__Output,
  ResolveProviderKeyRequest__Output, ResolveProviderKeyResponse, RevokeKeyRequest__Output, RotateKeyRequest__Output, SessionRef__Output, SetAccountRequest__Output, SetProviderKeyRequest__Output, TouchKeysRequest__Output,
  UpdateKeyRequest__Output,
} from '@signalbox/contracts/accounts';
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { Handlers } from '@signalbox/rpc/call';
import { Secret } from '@signalbox/runtime/secret';
import type { Accounts } from './domain/accounts.js';
import type { ClaimEnd, Claims, Standing } from './domain/claims.js';
import type { KeyOutcome, Keys, SecretOutcome } from './domain/keys.js';
import type { ChangeLog } from './domain/ports.js';
import type { ProviderKeys } from './domain/provider-keys.js';
import type { AccountRecord, KeyLimitsRecord } from './domain/records.js';
import type { Sessions } from './domain/sessions.js';
import { accountMessage, accountRecord, keyMessage, limitsRecord, providerKeyMessage } from './messages.js';
import type { AccountsMetrics } from './metrics.js';

/** Fields that SetAccount may replace. */
const SETTABLE: readonly (keyof AccountRecord)[] = [
  'name', 'tier', 'variant', 'suspended', 'requestsPerMinute', 'burstPerSecond', 'includedTokens', 'overageNanoUsdPerMillion', 'trialCreditNanoUsd', 'byokTokens', 'hardCap', 'costCaps', 'baselineModel',
  'allowModels', 'denyModels', 'allowProviders', 'denyProviders', 'routingMode', 'billingAnchorDay', 'policyCostCaps', 'policyHardCap', 'costWeight', 'policyBaselineModel', 'storeAnswers', 'policyStoreAnswers',
];

const LIMIT_NAMES: readonly (keyof KeyLimitsRecord)[] = ['requestsPerMinute', 'costCaps', 'allowedModels'];
function unknownLimit(name: string): never {
  throw new Fault('bad_message', `${name} names no limit of a key.`);
}

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

function claimEnd({ end, costNanoUsd, answer }: EndClaimRequest__Output): ClaimEnd {
  switch (end) {
    case 'FREED':
      return { kind: 'freed' };
    case 'ABANDONED':
      return { kind: 'abandoned' };
    case 'ENDED':
      return { kind: 'ended', costNanoUsd: costNanoUsd === undefined ? null : BigInt(costNanoUsd), answer: answer.length === 0 ? undefined : answer };
    case 'CLAIM_END_UNSPECIFIED':
      throw new Fault('bad_message', 'A claim ends in one of three ways.');
  }
}

function standingMessage(standing: Standing): ClaimStanding {
  return standing.isLost ? { lost: true } : { leaseLeftMs: String(standing.leaseLeftMs) };
}

/** Handlers for the Link and plain RPCs. */
export function createHandlers({ clock, accounts, keys, providerKeys, claims, sessions, changes, metrics }: { readonly clock: Pick<Clock, 'nowMs'>; readonly accounts: Accounts; readonly keys: Keys; readonly providerKeys: ProviderKeys; readonly claims: Claims; readonly sessions: Sessions; readonly changes: ChangeLog; readonly metrics: AccountsMetrics }): Handlers {
  const authenticate = async (digest: Uint8Array, pepperId: string): Promise<AuthenticateResponse> => {
    const found = await keys.authenticate(digest, pepperId);
    metrics.authenticated(found === undefined ? 'unknown' : 'found');
    return found === undefined ? { found: false } : { found: true, key: keyMessage(found), account: { ...accountMessage(found.account), providerKeys: found.providerKeys.map(providerKeyMessage) }, atMs: String(clock.nowMs()) };
  };
  return {
    unary: {
      Authenticate: ({ digest, pepperId }: AuthenticateRequest__Output): Promise<AuthenticateResponse> => authenticate(digest, pepperId),
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
        const outcome = await accounts.set(wanted.id, (current) => ({ ...current, ...Object.fromEntries(chosen.map((name) => [name, wanted[name]])) }), chosen);
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
        if (outcome !== undefined && 'seen' in outcome && outcome.secret !== '') metrics.keyChanged('created');
        return secretAnswer(outcome, 'account_id names no account.');
      },
      GetKey: async ({ accountId, keyId }: KeyRef__Output): Promise<KeyAnswer> => keyAnswer(await keys.get(accountId, keyId)),
      ListKeys: async ({ accountId, limit, after, status }: ListKeysRequest__Output): Promise<ListKeysResponse> => {
        const page = await keys.list(accountId, limit === 0 ? 20 : limit, after, status);
        return 'problem' in page ? page : { keys: page.keys.map(keyMessage), hasMore: page.hasMore };
      },
      UpdateKey: async (request: UpdateKeyRequest__Output): Promise<KeyAnswer> => {
        const { accountId, keyId } = required(request.ref);
        const limitNames = request.limitNames.map((name) => LIMIT_NAMES.find((known) => known === name) ?? unknownLimit(name));
        const limits = request.replaceLimits ? limitsRecord(request.limits) : undefined;
        const outcome = await keys.update(accountId, keyId, { name: request.name, isDisabled: request.disabled, limits, limitNames }, request.actorKeyId);
        if (outcome !== undefined && 'key' in outcome) metrics.keyChanged('updated');
        return keyAnswer(outcome);
      },
      RevokeKey: async ({ ref, compromised }: RevokeKeyRequest__Output): Promise<KeyAnswer> => {
        const { accountId, keyId } = required(ref);
        const outcome = await keys.revoke(accountId, keyId, compromised);
        if (outcome !== undefined) metrics.keyChanged('revoked');
        return keyAnswer(outcome);
      },
      RotateKey: async ({ ref, graceSeconds, actorKeyId }: RotateKeyRequest__Output): Promise<CreateKeyResponse> => {
        const { accountId, keyId } = required(ref);
        const outcome = await keys.rotate(accountId, keyId, graceSeconds, actorKeyId);
        if (outcome !== undefined && 'seen' in outcome) metrics.keyChanged('rotated');
        return secretAnswer(outcome, '');
      },
      TouchKeys: async ({ touches }: TouchKeysRequest__Output): Promise<object> => {
        await keys.touch(touches.map(({ keyId, usedAt }) => ({ keyId, usedAt: Number(usedAt) })));
        return {};
      },
      ClaimRequest: async (request: ClaimRequestRequest__Output): Promise<ClaimRequestResponse> => {
        const claimed = await claims.claim(request);
        metrics.requestClaimed(claimed.outcome);
        switch (claimed.outcome) {
          case 'RUNNING':
            return { outcome: 'RUNNING', requestId: claimed.requestId, leaseLeftMs: String(claimed.leaseLeftMs) };
          case 'LEFT':
            return { outcome: 'LEFT', requestId: claimed.requestId, leftMs: String(claimed.leftMs) };
          case 'DONE':
            return { outcome: 'DONE', requestId: claimed.requestId, ...(claimed.costNanoUsd === null ? {} : { costNanoUsd: String(claimed.costNanoUsd) }), ...(claimed.answer === undefined ? {} : { answer: Buffer.from(claimed.answer) }) };
          case 'CLAIMED':
            return { outcome: 'CLAIMED', requestId: claimed.requestId, leaseLeftMs: String(claimed.leaseLeftMs), toBegin: claimed.isToBegin };
          case 'OTHER_BODY':
            return claimed;
        }
      },
      RenewClaim: async (ref: ClaimRef__Output): Promise<ClaimStanding> => standingMessage(await claims.renew(ref)),
      BeginClaim: async (ref: ClaimRef__Output): Promise<ClaimStanding> => standingMessage(await claims.begin(ref)),
      EndClaim: async (request: EndClaimRequest__Output): Promise<object> => {
        await claims.end(required(request.claim), claimEnd(request));
        return {};
      },
      SetProviderKey: async ({ secret, ...rest }: SetProviderKeyRequest__Output): Promise<ProviderKeyAnswer> => {
        const outcome = await providerKeys.set({ ...rest, secret: new Secret(secret) });
        if (outcome === undefined) return { found: false };
        if ('problem' in outcome) return { found: true, problem: outcome.problem };
        metrics.providerKeyChanged('set');
        return { found: true, providerKey: providerKeyMessage(outcome) };
      },
      ListProviderKeys: async ({ accountId, limit, after }: ListProviderKeysRequest__Output): Promise<ListProviderKeysResponse> => {
        const page = await providerKeys.list(accountId, limit === 0 ? 100 : limit, after);
        return { providerKeys: page.providerKeys.map(providerKeyMessage), hasMore: page.hasMore };
      },
      RemoveProviderKey: async ({ accountId, provider }: ProviderKeyRef__Output): Promise<ProviderKeyAnswer> => {
        const removed = await providerKeys.remove(accountId, provider);
        if (removed === undefined) return { found: false };
        metrics.providerKeyChanged('removed');
        return { found: true, providerKey: providerKeyMessage(removed) };
      },
      ResolveProviderKey: async ({ accountId, provider, handle }: ResolveProviderKeyRequest__Output): Promise<ResolveProviderKeyResponse> => {
        const found = await providerKeys.resolve(accountId, provider, handle);
        metrics.providerKeyResolved(found === undefined ? 'unknown' : 'found');
        return found === undefined ? { found: false } : { found: true, ...found };
      },
      CreateSession: async ({ sessionDigest, keyDigest, pepperId }: CreateSessionRequest__Output): Promise<CreateSessionResponse> => {
        const made = await sessions.create(sessionDigest, keyDigest, pepperId);
        return made === undefined ? { found: false } : { found: true, expiresAt: String(made.expiresAt), atMs: String(clock.nowMs()) };
      },
      AuthenticateSession: async ({ sessionDigest, pepperId }: SessionRef__Output): Promise<AuthenticateSessionResponse> => {
        const session = await sessions.use(sessionDigest);
        return session === undefined ? { caller: { found: false } } : { caller: await authenticate(session.keyDigest, pepperId), expiresAt: String(session.expiresAt) };
      },
      EndSession: async ({ sessionDigest, pepperId }: SessionRef__Output): Promise<object> => {
        await sessions.end(sessionDigest, pepperId);
        return {};
      },
      ListChanges: async ({ after }: ListChangesRequest__Output): Promise<ListChangesResponse> => {
        const { cursor, changes: told, isUnbroken, hasMore } = await changes.list(after);
        return { cursor, changes: [...told], unbroken: isUnbroken, more: hasMore };
      },
    },
  };
}
