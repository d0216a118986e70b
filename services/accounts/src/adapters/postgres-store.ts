/** The store in Postgres, schema `accounts`. Changes hold the row's lock. */
import type { AccountStore, ListedKeys } from '../domain/ports.js';
import type { KeyRecord, SecretRecord } from '../domain/records.js';
import { sql, type Kysely, type RawBuilder, type Transaction } from 'kysely';
import { writeChange } from './postgres-change-log.js';
import {
  accountFromRow, accountSettings, keyFromRow, limitsText, providerKeyFromRow, providerKeysFromJson, sealedFromRow, secretFromRow, type AccountRow, type AccountsSchema, type KeyRow, type ProviderKeyRow, type SealedRow, type SecretRow,
} from './rows.js';

type Executor = Kysely<AccountsSchema> | Transaction<AccountsSchema>;

async function insertKeyRows(db: Executor, key: KeyRecord, secret: SecretRecord): Promise<void> {
  await sql`insert into accounts.api_key (id, account_id, name, prefix, scopes, created_at, expires_at, last_used_at, revoked_at, is_disabled, grace_ends_at, limits)
    values (${key.id}, ${key.accountId}, ${key.name}, ${key.prefix}, ${JSON.stringify(key.scopes)}::jsonb, ${key.createdAt}, ${key.expiresAt}, ${key.lastUsedAt}, ${key.revokedAt}, ${key.isDisabled}, ${key.graceEndsAt}, ${limitsText(key.limits)}::jsonb)`.execute(db);
  await insertSecret(db, secret);
}

async function insertSecret(db: Executor, secret: SecretRecord): Promise<void> {
  await sql`insert into accounts.api_key_secret (digest, pepper_id, key_id, valid_until) values (${Buffer.from(secret.digest)}, ${secret.pepperId}, ${secret.keyId}, ${secret.validUntil})`.execute(db);
}

async function changeKey(transaction: Transaction<AccountsSchema>, id: string, edit: (key: KeyRecord) => KeyRecord): Promise<{ readonly before: KeyRecord; readonly after: KeyRecord } | undefined> {
  const { rows } = await sql<KeyRow>`select * from accounts.api_key where id = ${id} for update`.execute(transaction);
  const [row] = rows;
  if (row === undefined) return undefined;
  const before = keyFromRow(row);
  const after = edit(before);
  if (after !== before) {
    await sql`update accounts.api_key set name = ${after.name}, prefix = ${after.prefix}, scopes = ${JSON.stringify(after.scopes)}::jsonb, expires_at = ${after.expiresAt}, revoked_at = ${after.revokedAt},
      is_disabled = ${after.isDisabled}, grace_ends_at = ${after.graceEndsAt}, limits = ${limitsText(after.limits)}::jsonb where id = ${id}`.execute(transaction);
  }
  return { before, after };
}

/** Same as `keyStatus`, in SQL. Keys that are neither revoked nor expired are few, and an index finds them. */
function hasStatus({ nowSeconds, revokedSince, status }: ListedKeys): RawBuilder<unknown> {
  const lives = sql`lives_until > ${nowSeconds}`;
  const isRotating = sql`coalesce(grace_ends_at > ${nowSeconds}, false)`;
  switch (status) {
    case undefined:
      return sql`(revoked_at is null or revoked_at > ${revokedSince})`;
    case 'revoked':
      return sql`revoked_at > ${revokedSince}`;
    case 'expired':
      return sql`revoked_at is null and expires_at <= ${nowSeconds}`;
    case 'disabled':
      return sql`${lives} and is_disabled`;
    case 'rotating':
      return sql`${lives} and not is_disabled and ${isRotating}`;
    case 'active':
      return sql`${lives} and not is_disabled and not ${isRotating}`;
  }
}

export function createPostgresStore(db: Kysely<AccountsSchema>): AccountStore {
  const inTransaction = <Answer>(work: (transaction: Transaction<AccountsSchema>) => Promise<Answer>): Promise<Answer> => db.transaction().execute(work);
  return {
    insertAccount: (account, first) =>
      inTransaction(async (transaction) => {
        await sql`insert into accounts.account (id, settings) values (${account.id}, ${accountSettings(account)}::jsonb)`.execute(transaction);
        if (first !== undefined) await insertKeyRows(transaction, first.key, first.secret);
      }),
    findAccount: async (id) => {
      const { rows } = await sql<AccountRow>`select * from accounts.account where id = ${id}`.execute(db);
      return rows[0] === undefined ? undefined : accountFromRow(rows[0]);
    },
    listAccounts: async ({ limit, afterId }) => {
      const { rows } = await (afterId === undefined
        ? sql<AccountRow>`select * from accounts.account order by seq desc limit ${limit}`
        : sql<AccountRow>`select * from accounts.account where seq < (select seq from accounts.account where id = ${afterId}) order by seq desc limit ${limit}`
      ).execute(db);
      return rows.map(accountFromRow);
    },
    updateAccount: (id, edit, told) =>
      inTransaction(async (transaction) => {
        const { rows } = await sql<AccountRow>`select * from accounts.account where id = ${id} for update`.execute(transaction);
        if (rows[0] === undefined) return undefined;
        const before = accountFromRow(rows[0]);
        const after = edit(before);
        if (after !== before) await sql`update accounts.account set settings = ${accountSettings(after)}::jsonb where id = ${id}`.execute(transaction);
        const change = told(after);
        if (change !== undefined) await writeChange(transaction, change);
        return after;
      }),
    insertKey: (key, secret, keysMax) =>
      inTransaction(async (transaction) => {
        // Under the account's lock, so that keys created concurrently are counted one after the other.
        await sql`select id from accounts.account where id = ${key.accountId} for update`.execute(transaction);
        const before = await sql<KeyRow>`select * from accounts.api_key where id = ${key.id}`.execute(transaction);
        if (before.rows[0] !== undefined) return keyFromRow(before.rows[0]);
        const { rows } = await sql<{ readonly lives: boolean }>`select true as lives from accounts.api_key where account_id = ${key.accountId} and lives_until > ${key.createdAt} limit ${keysMax}`.execute(transaction);
        if (rows.length >= keysMax) return 'full';
        await insertKeyRows(transaction, key, secret);
        return 'made';
      }),
    findKey: async (id) => {
      const { rows } = await sql<KeyRow>`select * from accounts.api_key where id = ${id}`.execute(db);
      return rows[0] === undefined ? undefined : keyFromRow(rows[0]);
    },
    findSecret: async (digest) => {
      const { rows } = await sql<KeyRow & SecretRow & Pick<AccountRow, 'settings'> & { readonly provider_keys: unknown }>`select k.*, s.digest, s.pepper_id, s.key_id, s.valid_until, a.settings,
        (select jsonb_agg(jsonb_build_object('handle', p.handle, 'account_id', p.account_id, 'provider', p.provider, 'last4', p.last4, 'zdr', p.zdr, 'base_url', p.base_url, 'created_at', p.created_at) order by p.seq)
          from accounts.provider_key p where p.account_id = a.id) as provider_keys
        from accounts.api_key_secret s join accounts.api_key k on k.id = s.key_id join accounts.account a on a.id = k.account_id where s.digest = ${Buffer.from(digest)}`.execute(db);
      const [row] = rows;
      return row === undefined ? undefined : { secret: secretFromRow(row), key: keyFromRow(row), account: accountFromRow({ id: row.account_id, settings: row.settings }), providerKeys: providerKeysFromJson(row.provider_keys) };
    },
    peppersOfSecrets: async (pepperId) => {
      const { rows } = await sql<{ readonly has_this: boolean; readonly has_any: boolean }>`select exists(select 1 from accounts.api_key_secret where pepper_id = ${pepperId}) as has_this, exists(select 1 from accounts.api_key_secret) as has_any`.execute(db);
      return { hasThis: rows[0]?.has_this === true, hasAny: rows[0]?.has_any === true };
    },
    listKeys: async (accountId, { limit, afterId }, listed) => {
      const inAccount = accountId === '' ? sql`true` : sql`account_id = ${accountId}`;
      const older = afterId === undefined ? sql`true` : sql`seq < (select seq from accounts.api_key where id = ${afterId})`;
      const { rows } = await sql<KeyRow>`select * from accounts.api_key where ${inAccount} and ${older} and ${hasStatus(listed)} order by seq desc limit ${limit}`.execute(db);
      return rows.map(keyFromRow);
    },
    updateKey: (id, edit, told) =>
      inTransaction(async (transaction) => {
        const changed = await changeKey(transaction, id, edit);
        const change = changed === undefined ? undefined : told(changed.after);
        if (change !== undefined) await writeChange(transaction, change);
        return changed?.after;
      }),
    rotateKey: (id, edit, secret, othersValidUntil, told) =>
      inTransaction(async (transaction) => {
        const changed = await changeKey(transaction, id, edit);
        if (changed === undefined || changed.after === changed.before) return changed?.after;
        await sql`update accounts.api_key_secret set valid_until = ${othersValidUntil} where key_id = ${id} and (valid_until is null or valid_until > ${othersValidUntil})`.execute(transaction);
        await insertSecret(transaction, secret);
        await writeChange(transaction, told(changed.after));
        return changed.after;
      }),
    touchKeys: async (touches) => {
      if (touches.length === 0) return;
      // Sorted by id, so that two replicas never deadlock.
      const told = JSON.stringify([...touches].sort((one, other) => (one.keyId < other.keyId ? -1 : 1)).map(({ keyId, usedAt }) => ({ key_id: keyId, used_at: usedAt })));
      await sql`update accounts.api_key k set last_used_at = greatest(coalesce(k.last_used_at, 0), t.used_at)
        from (select key_id, max(used_at) as used_at from jsonb_to_recordset(${told}::jsonb) as x (key_id text, used_at bigint) group by key_id) t where k.id = t.key_id`.execute(db);
    },
    putProviderKey: (key, told) =>
      inTransaction(async (transaction) => {
        // Insert a new row, so that it comes first in lists and a handle never names another credential.
        await sql`delete from accounts.provider_key where account_id = ${key.accountId} and provider = ${key.provider}`.execute(transaction);
        await sql`insert into accounts.provider_key as k (handle, account_id, provider, last4, zdr, base_url, created_at, key_id, wrapped_key, sealed)
          values (${key.handle}, ${key.accountId}, ${key.provider}, ${key.last4}, ${key.zdr}, ${key.baseUrl}, ${key.createdAt}, ${key.keyId}, ${Buffer.from(key.wrappedKey)}, ${Buffer.from(key.sealed)})
          on conflict (account_id, provider) do update set handle = excluded.handle, last4 = excluded.last4, zdr = excluded.zdr, base_url = excluded.base_url, created_at = excluded.created_at,
            key_id = excluded.key_id, wrapped_key = excluded.wrapped_key, sealed = excluded.sealed`.execute(transaction);
        await writeChange(transaction, told);
      }),
    findProviderKey: async (handle) => {
      const { rows } = await sql<ProviderKeyRow & SealedRow>`select * from accounts.provider_key where handle = ${handle}`.execute(db);
      return rows[0] === undefined ? undefined : sealedFromRow(rows[0]);
    },
    listProviderKeys: async (accountId, { limit, afterId }) => {
      const inAccount = accountId === '' ? sql`true` : sql`account_id = ${accountId}`;
      const older = afterId === undefined ? sql`true` : sql`seq < (select seq from accounts.provider_key where handle = ${afterId})`;
      const { rows } = await sql<ProviderKeyRow>`select handle, account_id, provider, last4, zdr, base_url, created_at from accounts.provider_key where ${inAccount} and ${older} order by seq desc limit ${limit}`.execute(db);
      return rows.map(providerKeyFromRow);
    },
    removeProviderKey: (accountId, provider, told) =>
      inTransaction(async (transaction) => {
        const { rows } = await sql<ProviderKeyRow>`delete from accounts.provider_key where account_id = ${accountId} and provider = ${provider} returning handle, account_id, provider, last4, zdr, base_url, created_at`.execute(transaction);
        if (rows[0] === undefined) return undefined;
        await writeChange(transaction, told);
        return providerKeyFromRow(rows[0]);
      }),
    staleProviderKeys: async (keyId, { limit, afterId }) => {
      const older = afterId === undefined ? sql`true` : sql`seq < (select seq from accounts.provider_key where handle = ${afterId})`;
      const { rows } = await sql<ProviderKeyRow & SealedRow>`select * from accounts.provider_key where key_id <> ${keyId} and ${older} order by seq desc limit ${limit}`.execute(db);
      return rows.map(sealedFromRow);
    },
    secretsKeysOfProviderKeys: async (keyId) => {
      const { rows } = await sql<{ readonly has_this: boolean; readonly has_any: boolean }>`select exists(select 1 from accounts.provider_key where key_id = ${keyId}) as has_this, exists(select 1 from accounts.provider_key) as has_any`.execute(db);
      return { hasThis: rows[0]?.has_this === true, hasAny: rows[0]?.has_any === true };
    },
    rewrapProviderKey: async (handle, fromKeyId, to) => {
      const { rows } = await sql`update accounts.provider_key set key_id = ${to.keyId}, wrapped_key = ${Buffer.from(to.wrappedKey)} where handle = ${handle} and key_id = ${fromKeyId} returning handle`.execute(db);
      return rows.length > 0;
    },
  };
}
