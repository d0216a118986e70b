/** What the domain needs from the world. */
import type { Sealed } from './envelope.js';
import type { AccountRecord, KeyRecord, KeyStatus, ProviderKeyRecord, SealedProviderKey, SecretRecord } from './records.js';

/** Newest first. `afterId` undefined = from the newest. */
export interface Page {
  readonly limit: number;
  readonly afterId?: string | undefined;
}

/** Which keys are listed at an instant; times in Unix seconds. */
export interface ListedKeys {
  readonly nowSeconds: number;
  /** Keys that were revoked before are left out. */
  readonly revokedSince: number;
  /** Undefined = any. */
  readonly status?: KeyStatus | undefined;
}

/** The store. Everything rejects with a Fault `store_unavailable` while it is away; each write is all or nothing. */
export interface AccountStore {
  /** With the account's first key, in one write, when given. */
  insertAccount(account: AccountRecord, first?: { readonly key: KeyRecord; readonly secret: SecretRecord }): Promise<void>;
  findAccount(id: string): Promise<AccountRecord | undefined>;
  listAccounts(page: Page): Promise<readonly AccountRecord[]>;
  /** Reads, changes and writes one row under its lock, and with it what `told` answers of the changed record. Undefined when there is none. `change` may answer the same record to leave it. */
  updateAccount(id: string, change: (account: AccountRecord) => AccountRecord, told: (account: AccountRecord) => Change | undefined): Promise<AccountRecord | undefined>;
  /** `full`, and nothing is written, where the account has `keysMax` keys that are neither revoked nor expired at the new one's creation. The key that has its id already, if any, which stays as it is: of two calls at once one makes it. */
  insertKey(key: KeyRecord, secret: SecretRecord, keysMax: number): Promise<'made' | 'full' | KeyRecord>;
  findKey(id: string): Promise<KeyRecord | undefined>;
  findSecret(digest: Uint8Array): Promise<{ readonly secret: SecretRecord; readonly key: KeyRecord; readonly account: AccountRecord; readonly providerKeys: readonly ProviderKeyRecord[] } | undefined>;
  /** Whether some secret's digest is under that pepper, and whether there is any secret. It ends at the first that it meets. */
  peppersOfSecrets(pepperId: string): Promise<{ readonly hasThis: boolean; readonly hasAny: boolean }>;
  /** In one statement, whatever else the account has: keys that have ended are without number. */
  listKeys(accountId: string, page: Page, listed: ListedKeys): Promise<readonly KeyRecord[]>;
  updateKey(id: string, change: (key: KeyRecord) => KeyRecord, told: (key: KeyRecord) => Change | undefined): Promise<KeyRecord | undefined>;
  /** Like `updateKey`, and makes `secret` the newest one; all others end at `othersValidUntil` at the latest. Changes nothing when `change` answers the same record. */
  rotateKey(id: string, change: (key: KeyRecord) => KeyRecord, secret: SecretRecord, othersValidUntil: number, told: (key: KeyRecord) => Change): Promise<KeyRecord | undefined>;
  /** Later of what is kept and what is told; unknown keys are ignored. */
  touchKeys(touches: readonly { readonly keyId: string; readonly usedAt: number }[]): Promise<void>;
  /** In place of what the account has at that provider. */
  putProviderKey(key: SealedProviderKey, told: Change): Promise<void>;
  findProviderKey(handle: string): Promise<SealedProviderKey | undefined>;
  /** `accountId` empty = of all accounts. */
  listProviderKeys(accountId: string, page: Page): Promise<readonly ProviderKeyRecord[]>;
  removeProviderKey(accountId: string, provider: string, told: Change): Promise<ProviderKeyRecord | undefined>;
  /** Those whose data key is under another key than `keyId`. */
  staleProviderKeys(keyId: string, page: Page): Promise<readonly SealedProviderKey[]>;
  /** Whether any data key is under `keyId`, and whether there is any. */
  secretsKeysOfProviderKeys(keyId: string): Promise<{ readonly hasThis: boolean; readonly hasAny: boolean }>;
  /** False when it is gone, or no longer under `fromKeyId`. */
  rewrapProviderKey(handle: string, fromKeyId: string, to: Sealed): Promise<boolean>;
}

export type InvalidationReason = 'revoked' | 'compromised' | 'updated' | 'rotated' | 'suspended' | 'account_updated' | 'provider_key' | 'session_ended';

/** What edge must drop of what it cached. */
export interface Change {
  /** Empty = every key of the account. */
  readonly keyId: string;
  readonly accountId: string;
  readonly reason: InvalidationReason;
}

/** Tells every replica of edge at once. Best effort; never throws. */
export interface Announcer {
  invalidated(change: Change): void;
}

export interface ChangesPage {
  /** Names the last change that is told here. */
  readonly cursor: string;
  /** In the order in which they were made. */
  readonly changes: readonly Change[];
  /** False: what was changed since the cursor asked with is not known, or there was none. */
  readonly isUnbroken: boolean;
  /** More than fit. */
  readonly hasMore: boolean;
}

/**
 * Changes, each written in one transaction with what it changes and read in the order of the commits, so that whoever
 * asks on from a cursor misses none. The latest 10,000 are kept. Rejects with a Fault `store_unavailable` while it is away.
 */
export interface ChangeLog {
  /** `after` empty = from now on. */
  list(after: string): Promise<ChangesPage>;
}

/** A dashboard's session; times in Unix seconds. */
export interface SessionRecord {
  readonly digest: Uint8Array;
  /** Digest of the secret that signed in. */
  readonly keyDigest: Uint8Array;
  readonly createdAt: number;
  readonly lastUsedAt: number;
  readonly expiresAt: number;
}

/** Rejects with a Fault `store_unavailable` while it is away. */
export interface SessionStore {
  /** Of the sessions made with the same secret the oldest beyond `keptMax` go, and so do all that expired before `createdAt`. True, and `told` is written, when any went that had not expired. */
  insert(session: SessionRecord, keptMax: number, told: Change): Promise<boolean>;
  find(digest: Uint8Array): Promise<SessionRecord | undefined>;
  /** Later of what is kept and what is told. */
  touch(digest: Uint8Array, usedAt: number): Promise<void>;
  /** Answers what was there. */
  remove(digest: Uint8Array, told: Change | undefined): Promise<SessionRecord | undefined>;
}
