/** Schema of accounts: only ever added to. */
import type { Migration } from '@signalbox/sql/migrate';
import { sql } from 'kysely';

export const MIGRATIONS: readonly Migration[] = [
  {
    name: '0001_accounts',
    up: async (transaction) => {
      await sql`create table account (seq bigserial unique, id text primary key, settings jsonb not null)`.execute(transaction);
      await sql`create table api_key (
        seq bigserial unique,
        id text primary key,
        account_id text not null references account (id),
        name text not null,
        prefix text not null,
        scopes jsonb not null,
        created_at bigint not null,
        expires_at bigint,
        last_used_at bigint,
        revoked_at bigint,
        is_disabled boolean not null,
        grace_ends_at bigint,
        limits jsonb not null
      )`.execute(transaction);
      await sql`create index api_key_account on api_key (account_id, seq desc)`.execute(transaction);
      await sql`create table api_key_secret (digest bytea primary key, pepper_id text not null, key_id text not null references api_key (id), valid_until bigint)`.execute(transaction);
      await sql`create index api_key_secret_key on api_key_secret (key_id)`.execute(transaction);
    },
  },
];
