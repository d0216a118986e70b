/** The store in memory, for tests and simulations. */
import type { AccountStore, Change } from '../domain/ports.js';
import { keyStatus, type AccountRecord, type KeyRecord, type ProviderKeyRecord, type SealedProviderKey, type SecretRecord } from '../domain/records.js';
import { createMemoryChangeLog, type MemoryChangeLog } from './memory-change-log.js';

function newestFirst<Row extends { readonly id: string }>(rows: readonly Row[], limit: number, afterId: string | undefined): readonly Row[] {
  const ordered = [...rows].reverse();
  const start = afterId === undefined ? 0 : ordered.findIndex((row) => row.id === afterId) + 1;
  return afterId !== undefined && start === 0 ? [] : ordered.slice(start, start + limit);
}

export function createMemoryStore(log: MemoryChangeLog = createMemoryChangeLog()): AccountStore {
  const accounts = new Map<string, AccountRecord>();
  const keys = new Map<string, KeyRecord>();
  const secrets = new Map<string, SecretRecord>();
  const providerKeys = new Map<string, SealedProviderKey>();
  const publicPart = ({ keyId: _keyId, wrappedKey: _wrappedKey, sealed: _sealed, ...rest }: SealedProviderKey): ProviderKeyRecord => rest;
  const pageOf = (rows: readonly SealedProviderKey[], limit: number, afterId: string | undefined): readonly SealedProviderKey[] =>
    newestFirst(rows.map((row) => ({ id: row.handle, row })), limit, afterId).map(({ row }) => row);
  const drop = (accountId: string, provider: string): SealedProviderKey | undefined => {
    const found = [...providerKeys.values()].find((row) => row.accountId === accountId && row.provider === provider);
    if (found !== undefined) providerKeys.delete(found.handle);
    return found;
  };
  const hex = (digest: Uint8Array): string => Buffer.from(digest).toString('hex');
  const putKey = (key: KeyRecord, secret: SecretRecord): void => {
    keys.set(key.id, key);
    secrets.set(hex(secret.digest), secret);
  };
  const change = <Row>(map: Map<string, Row>, id: string, edit: (row: Row) => Row, told: (row: Row) => Change | undefined): Row | undefined => {
    const current = map.get(id);
    if (current === undefined) return undefined;
    const next = edit(current);
    map.set(id, next);
    log.add(told(next));
    return next;
  };
  return {
    insertAccount: async (account, first) => {
      accounts.set(account.id, account);
      if (first !== undefined) putKey(first.key, first.secret);
    },
    findAccount: async (id) => accounts.get(id),
    listAccounts: async ({ limit, afterId }) => newestFirst([...accounts.values()], limit, afterId),
    updateAccount: async (id, edit, told) => change(accounts, id, edit, told),
    insertKey: async (key, secret, keysMax) => {
      const lives = [...keys.values()].filter(({ accountId, revokedAt, expiresAt }) => accountId === key.accountId && revokedAt === null && (expiresAt === null || expiresAt > key.createdAt));
      const before = keys.get(key.id);
      if (before !== undefined) return before;
      if (lives.length >= keysMax) return 'full';
      putKey(key, secret);
      return 'made';
    },
    findKey: async (id) => keys.get(id),
    findSecret: async (digest) => {
      const secret = secrets.get(hex(digest));
      const key = secret === undefined ? undefined : keys.get(secret.keyId);
      const account = key === undefined ? undefined : accounts.get(key.accountId);
      return secret === undefined || key === undefined || account === undefined ? undefined : { secret, key, account, providerKeys: [...providerKeys.values()].filter((row) => row.accountId === account.id).map(publicPart) };
    },
    peppersOfSecrets: async (pepperId) => {
      const found = [...secrets.values()];
      return { hasThis: found.some((secret) => secret.pepperId === pepperId), hasAny: found.length > 0 };
    },
    listKeys: async (accountId, { limit, afterId }, { nowSeconds, revokedSince, status }) => {
      const isListed = (key: KeyRecord): boolean => (accountId === '' || key.accountId === accountId) && (key.revokedAt === null || key.revokedAt > revokedSince) && (status === undefined || keyStatus(key, nowSeconds) === status);
      // The record named by `afterId` need not be in the list itself.
      return newestFirst([...keys.values()], keys.size, afterId).filter(isListed).slice(0, limit);
    },
    updateKey: async (id, edit, told) => change(keys, id, edit, told),
    rotateKey: async (id, edit, secret, othersValidUntil, told) => {
      const before = keys.get(id);
      const after = change(keys, id, edit, (key) => (key === before ? undefined : told(key)));
      if (after === undefined || after === before) return after;
      for (const [digest, other] of secrets) {
        if (other.keyId === id) secrets.set(digest, { ...other, validUntil: Math.min(other.validUntil ?? othersValidUntil, othersValidUntil) });
      }
      secrets.set(hex(secret.digest), secret);
      return after;
    },
    touchKeys: async (touches) => {
      for (const { keyId, usedAt } of touches) change(keys, keyId, (key) => ({ ...key, lastUsedAt: Math.max(key.lastUsedAt ?? 0, usedAt) }), () => undefined);
    },
    putProviderKey: async (key, told) => {
      drop(key.accountId, key.provider);
      providerKeys.set(key.handle, key);
      log.add(told);
    },
    findProviderKey: async (handle) => providerKeys.get(handle),
    listProviderKeys: async (accountId, { limit, afterId }) => pageOf([...providerKeys.values()].filter((row) => accountId === '' || row.accountId === accountId), limit, afterId).map(publicPart),
    removeProviderKey: async (accountId, provider, told) => {
      const found = drop(accountId, provider);
      if (found !== undefined) log.add(told);
      return found === undefined ? undefined : publicPart(found);
    },
    // The record named by `afterId` may no longer be stale.
    staleProviderKeys: async (keyId, { limit, afterId }) => pageOf([...providerKeys.values()], providerKeys.size, afterId).filter((row) => row.keyId !== keyId).slice(0, limit),
    secretsKeysOfProviderKeys: async (keyId) => ({ hasThis: [...providerKeys.values()].some((row) => row.keyId === keyId), hasAny: providerKeys.size > 0 }),
    rewrapProviderKey: async (handle, fromKeyId, to) => {
      const row = providerKeys.get(handle);
      if (row === undefined || row.keyId !== fromKeyId) return false;
      providerKeys.set(handle, { ...row, ...to });
      return true;
    },
  };
}
