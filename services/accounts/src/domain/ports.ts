/** What the domain needs from the world. */
import type { AccountRecord, KeyRecord, SecretRecord } from './records.js';

/** Newest first. `afterId` undefined = from the newest. */
export interface Page {
  readonly limit: number;
  readonly afterId?: string | undefined;
}

/** The store. Everything rejects with a Fault `store_unavailable` while it is away; each write is all or nothing. */
export interface AccountStore {
  /** With the account's first key, in one write, when given. */
  insertAccount(account: AccountRecord, first?: { readonly key: KeyRecord; readonly secret: SecretRecord }): Promise<void>;
  findAccount(id: string): Promise<AccountRecord | undefined>;
  listAccounts(page: Page): Promise<readonly AccountRecord[]>;
  /** Reads, changes and writes one row under its lock. Undefined when there is none. `change` may answer the same record to leave it. */
  updateAccount(id: string, change: (account: AccountRecord) => AccountRecord): Promise<AccountRecord | undefined>;
  insertKey(key: KeyRecord, secret: SecretRecord): Promise<void>;
  findKey(id: string): Promise<KeyRecord | undefined>;
  findSecret(digest: Uint8Array): Promise<{ readonly secret: SecretRecord; readonly key: KeyRecord; readonly account: AccountRecord } | undefined>;
  listKeys(accountId: string, page: Page): Promise<readonly KeyRecord[]>;
  updateKey(id: string, change: (key: KeyRecord) => KeyRecord): Promise<KeyRecord | undefined>;
  /** Like `updateKey`, and makes `secret` the newest one; all others end at `othersValidUntil` at the latest. Changes nothing when `change` answers the same record. */
  rotateKey(id: string, change: (key: KeyRecord) => KeyRecord, secret: SecretRecord, othersValidUntil: number): Promise<KeyRecord | undefined>;
  /** Later of what is kept and what is told; unknown keys are ignored. */
  touchKeys(touches: readonly { readonly keyId: string; readonly usedAt: number }[]): Promise<void>;
}

export type InvalidationReason = 'revoked' | 'updated' | 'rotated' | 'suspended' | 'account_updated';

/** Tells every replica of edge to drop what it cached. Best effort; never throws. */
export interface Announcer {
  /** `keyId` empty = every key of the account. */
  invalidated(event: { readonly keyId: string; readonly accountId: string; readonly reason: InvalidationReason }): void;
}
