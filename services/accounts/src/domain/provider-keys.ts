/** An account's own credentials at providers (BYOK): stored encrypted, given out to workers only. */
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { IdSource } from '@signalbox/kernel/ids';
import { Secret } from '@signalbox/runtime/secret';
import type { Envelope } from './envelope.js';
import type { AccountStore, Announcer, Change } from './ports.js';
import type { ProviderKeyRecord, SealedProviderKey } from './records.js';

const PAGE_MAX = 1_000;
/** Large enough for a service account's key file. */
const SECRET_LENGTH_MAX = 16_384;
/** The last characters of a shorter secret would reveal too much of it. */
const SHOWN_FROM_LENGTH = 12;
const PROVIDER_PATTERN = /^[a-z0-9][a-z0-9-]{0,63}$/;
const REWRAP_PAGE = 100;

export interface NewProviderKey {
  readonly accountId: string;
  /** Catalog id. */
  readonly provider: string;
  readonly secret: Secret;
  /** The account has a zero-retention agreement for this credential. */
  readonly zdr: boolean;
  /** Empty = the provider's own address. */
  readonly baseUrl: string;
}

export interface ProviderKeys {
  /** Replaces the account's credential there, if any. Undefined = no such account. */
  set(wanted: NewProviderKey): Promise<ProviderKeyRecord | { readonly problem: string } | undefined>;
  /** `accountId` empty = all accounts. Newest first. */
  list(accountId: string, limit: number, after: string): Promise<{ readonly providerKeys: readonly ProviderKeyRecord[]; readonly hasMore: boolean }>;
  /** Returns the removed credential; undefined = there was none. */
  remove(accountId: string, provider: string): Promise<ProviderKeyRecord | undefined>;
  /** Undefined = the handle names no credential of that account there. Throws a Fault `internal_error` if no known SECRETS_KEY opens it. */
  resolve(accountId: string, provider: string, handle: string): Promise<{ readonly secret: string; readonly baseUrl: string } | undefined>;
  /** Re-wraps data keys that are under older keys; returns how many, and how many no known key opens. */
  rewrap(): Promise<{ readonly rewrapped: number; readonly unreadable: number }>;
  /** False = there are credentials, and none is under the current key. After `rewrap` this means that none can be opened. */
  isSecretsKeyTheirs(): Promise<boolean>;
}

export interface ProviderKeysOptions {
  readonly store: AccountStore;
  readonly announcer: Announcer;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly envelope: Envelope;
  /** Problem of an address given by a client, as the end of a sentence; undefined = none. */
  readonly addressProblem: (baseUrl: string) => string | undefined;
}

/** Associated data of the encryption. */
function ownerOf({ accountId, provider }: { readonly accountId: string; readonly provider: string }): readonly string[] {
  return [accountId, provider];
}

function shownEnd(secret: string): string {
  // The last characters of a key file are not those of a key.
  return secret.length >= SHOWN_FROM_LENGTH && !secret.startsWith('{') ? secret.slice(-4) : '';
}

/** Normalises a key file to one line of ASCII, however an editor formatted it; undefined = not a key file. It must fit in a header: providers that do not accept key files are sent it as a key. */
function keyFileOf(secret: string): string | undefined {
  if (!secret.startsWith('{')) return undefined;
  try {
    return JSON.stringify(JSON.parse(secret)).replace(/[^\x20-\x7e]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
  } catch {
    return undefined;
  }
}

export function createProviderKeys({ store, announcer, clock, ids, envelope, addressProblem }: ProviderKeysOptions): ProviderKeys {
  const problemOf = ({ provider, baseUrl }: NewProviderKey, secret: string): string | undefined => {
    if (!PROVIDER_PATTERN.test(provider)) return 'provider must be the id of a provider.';
    if (secret === '' || secret.length > SECRET_LENGTH_MAX) return `secret must have 1 to ${SECRET_LENGTH_MAX} characters.`;
    // The secret is sent in a header: characters that a header cannot carry would change it or break the request.
    if (keyFileOf(secret) === undefined && !/^[\x21-\x7e]+$/.test(secret)) return 'secret must consist of printable ASCII characters without blanks.';
    const wrong = baseUrl === '' ? undefined : addressProblem(baseUrl);
    return wrong === undefined ? undefined : `base_url ${wrong}`;
  };
  const changed = (accountId: string): Change => ({ keyId: '', accountId, reason: 'provider_key' });

  return {
    set: async (wanted) => {
      const { accountId, provider, zdr, baseUrl } = wanted;
      const secret = wanted.secret.unwrap().trim();
      const problem = problemOf(wanted, secret);
      if (problem !== undefined) return { problem };
      if ((await store.findAccount(accountId)) === undefined) return undefined;
      const record: ProviderKeyRecord = { handle: ids('credential'), accountId, provider, last4: shownEnd(secret), zdr, baseUrl, createdAt: Math.floor(clock.nowMs() / 1_000) };
      await store.putProviderKey({ ...record, ...envelope.seal(new Secret(keyFileOf(secret) ?? secret), ownerOf(wanted)) }, changed(accountId));
      announcer.invalidated(changed(accountId));
      return record;
    },
    list: async (accountId, limit, after) => {
      const wanted = Math.min(Math.max(limit, 1), PAGE_MAX);
      const found = await store.listProviderKeys(accountId, { limit: wanted + 1, afterId: after === '' ? undefined : after });
      return { providerKeys: found.slice(0, wanted), hasMore: found.length > wanted };
    },
    remove: async (accountId, provider) => {
      const removed = await store.removeProviderKey(accountId, provider, changed(accountId));
      // Announced on a repeat too: workers may have missed the first announcement.
      announcer.invalidated(changed(accountId));
      return removed;
    },
    resolve: async (accountId, provider, handle) => {
      const found = await store.findProviderKey(handle);
      if (found === undefined || found.accountId !== accountId || found.provider !== provider) return undefined;
      const secret = envelope.open(found, ownerOf(found));
      if (secret === undefined) throw new Fault('internal_error', 'a provider credential is under a SECRETS_KEY that is not known here');
      return { secret, baseUrl: found.baseUrl };
    },
    rewrap: async () => {
      let rewrapped = 0;
      let unreadable = 0;
      let after: string | undefined;
      for (;;) {
        const page: readonly SealedProviderKey[] = await store.staleProviderKeys(envelope.keyId, { limit: REWRAP_PAGE, afterId: after });
        for (const stale of page) {
          const fresh = envelope.rewrap(stale, ownerOf(stale));
          if (fresh === undefined) unreadable += 1;
          else if (await store.rewrapProviderKey(stale.handle, stale.keyId, fresh)) rewrapped += 1;
        }
        if (page.length < REWRAP_PAGE) return { rewrapped, unreadable };
        after = page.at(-1)?.handle;
      }
    },
    isSecretsKeyTheirs: async () => {
      const { hasThis, hasAny } = await store.secretsKeysOfProviderKeys(envelope.keyId);
      return hasThis || !hasAny;
    },
  };
}
