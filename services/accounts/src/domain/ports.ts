/** Interfaces that the domain needs from outside. */
import type { Sealed } from './envelope.js';
import type { AccountRecord, KeyRecord, KeyStatus, ProviderKeyRecord, SealedProviderKey, SecretRecord } from './records.js';

/** Newest first. `afterId` undefined = from the newest. */
export interface Page {
  readonly limit: number;
  readonly afterId?: string | undefined;
}

/** Filter for lists of keys; times in Unix seconds. */
export interface ListedKeys {
  readonly nowSeconds: number;
  /** Keys revoked before this are left out. */
  readonly revokedSince: number;
  /** Undefined = any. */
  readonly status?: KeyStatus | undefined;
}

/** The store. All calls reject with a Fault `store_unavailable` while it is unreachable; each write is all or nothing. */
export interface AccountStore {
  /** Writes the account, and its first key if given, in one transaction. */
  insertAccount(account: AccountRecord, first?: { readonly key: KeyRecord; readonly secret: SecretRecord }): Promise<void>;
  findAccount(id: string): Promise<AccountRecord | undefined>;
  listAccounts(page: Page): Promise<readonly AccountRecord[]>;
  /** Reads, changes and writes one row under its lock, together with the change-log entry that `told` returns for it. Undefined if there is no such row. `change` may return the same record to leave it unchanged. */
  updateAccount(id: string, change: (account: AccountRecord) => AccountRecord, told: (account: AccountRecord) => Change | undefined): Promise<AccountRecord | undefined>;
  /** Returns `full` and writes nothing if the account has `keysMax` keys that are neither revoked nor expired. If a key with this id exists already, returns it unchanged: of two concurrent calls only one creates it. */
  insertKey(key: KeyRecord, secret: SecretRecord, keysMax: number): Promise<'made' | 'full' | KeyRecord>;
  findKey(id: string): Promise<KeyRecord | undefined>;
  findSecret(digest: Uint8Array): Promise<{ readonly secret: SecretRecord; readonly key: KeyRecord; readonly account: AccountRecord; readonly providerKeys: readonly ProviderKeyRecord[] } | undefined>;
  /** Whether any secret's digest uses that pepper, and whether there is any secret at all. Stops at the first match. */
  peppersOfSecrets(pepperId: string): Promise<{ readonly hasThis: boolean; readonly hasAny: boolean }>;
  /** Must use one statement that does not read all keys: an account may have any number of ended keys. */
  listKeys(accountId: string, page: Page, listed: ListedKeys): Promise<readonly KeyRecord[]>;
  updateKey(id: string, change: (key: KeyRecord) => KeyRecord, told: (key: KeyRecord) => Change | undefined): Promise<KeyRecord | undefined>;
  /** Like `updateKey`, and makes `secret` the newest one; all others end at `othersValidUntil` at the latest. Changes nothing if `change` returns the same record. */
  rotateKey(id: string, change: (key: KeyRecord) => KeyRecord, secret: SecretRecord, othersValidUntil: number, told: (key: KeyRecord) => Change): Promise<KeyRecord | undefined>;
  /** Keeps the later of the stored and the given time; unknown keys are ignored. */
  touchKeys(touches: readonly { readonly keyId: string; readonly usedAt: number }[]): Promise<void>;
  /** Replaces the account's credential at that provider, if any. */
  putProviderKey(key: SealedProviderKey, told: Change): Promise<void>;
  findProviderKey(handle: string): Promise<SealedProviderKey | undefined>;
  /** `accountId` empty = all accounts. */
  listProviderKeys(accountId: string, page: Page): Promise<readonly ProviderKeyRecord[]>;
  removeProviderKey(accountId: string, provider: string, told: Change): Promise<ProviderKeyRecord | undefined>;
  /** Credentials whose data key is wrapped under a key other than `keyId`. */
  staleProviderKeys(keyId: string, page: Page): Promise<readonly SealedProviderKey[]>;
  /** Whether any data key is wrapped under `keyId`, and whether there is any at all. */
  secretsKeysOfProviderKeys(keyId: string): Promise<{ readonly hasThis: boolean; readonly hasAny: boolean }>;
  /** False if the credential is gone, or no longer under `fromKeyId`. */
  rewrapProviderKey(handle: string, fromKeyId: string, to: Sealed): Promise<boolean>;
}

export type InvalidationReason = 'revoked' | 'compromised' | 'updated' | 'rotated' | 'suspended' | 'account_updated' | 'provider_key' | 'session_ended';

/** What edge must drop from its cache. */
export interface Change {
  /** Empty = every key of the account. */
  readonly keyId: string;
  readonly accountId: string;
  readonly reason: InvalidationReason;
}

/** Notifies all replicas of edge immediately. Best effort; never throws. */
export interface Announcer {
  invalidated(change: Change): void;
}

export interface ChangesPage {
  /** Points to the last change in this page. */
  readonly cursor: string;
  /** In the order in which they were made. */
  readonly changes: readonly Change[];
  /** False if the changes since the given cursor are no longer known, or no cursor was given. */
  readonly isUnbroken: boolean;
  /** There are more changes than fit in this page. */
  readonly hasMore: boolean;
}

/**
 * Log of changes. Each is written in the same transaction as the data it is about, and read in the order of commits, so that
 * a reader that continues from its cursor misses none. The latest 10,000 are kept. Rejects with a Fault `store_unavailable` while the store is unreachable.
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

/** Rejects with a Fault `store_unavailable` while the store is unreachable. */
export interface SessionStore {
  /** Inserts a session. Deletes the oldest sessions of the same secret beyond `keptMax`, and all that expired before `createdAt`. If an unexpired one was deleted, writes `told` to the change log and returns true. */
  insert(session: SessionRecord, keptMax: number, told: Change): Promise<boolean>;
  find(digest: Uint8Array): Promise<SessionRecord | undefined>;
  /** Keeps the later of the stored and the given time. */
  touch(digest: Uint8Array, usedAt: number): Promise<void>;
  /** Returns the removed session. */
  remove(digest: Uint8Array, told: Change | undefined): Promise<SessionRecord | undefined>;
}
