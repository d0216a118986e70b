/** Schema of accounts: only ever added to. */
import type { Migration } from '@signalbox/sql/migrate';
import type { SchemaPlan } from '@signalbox/sql/schema-job';
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
  {
    name: '0002_provider_keys',
    up: async (transaction) => {
      await sql`create table provider_key (
        seq bigserial unique,
        handle text primary key,
        account_id text not null references account (id),
        provider text not null,
        last4 text not null,
        zdr boolean not null,
        base_url text not null,
        created_at bigint not null,
        key_id text not null,
        wrapped_key bytea not null,
        sealed bytea not null,
        unique (account_id, provider)
      )`.execute(transaction);
    },
  },
  {
    name: '0003_claims',
    up: async (transaction) => {
      await sql`create table claim (
        account_id text not null,
        key_digest bytea not null,
        body_digest bytea not null,
        request_id text not null,
        is_ended boolean not null,
        lease_ends_ms bigint not null,
        forget_ms bigint not null,
        cost_nano_usd bigint,
        key_id text,
        wrapped_key bytea,
        sealed bytea,
        primary key (account_id, key_digest)
      )`.execute(transaction);
      await sql`create index claim_forget on claim (forget_ms)`.execute(transaction);
    },
  },
  {
    name: '0004_sessions',
    up: async (transaction) => {
      await sql`create table session (
        digest bytea primary key,
        key_digest bytea not null references api_key_secret (digest) on delete cascade,
        created_at bigint not null,
        last_used_at bigint not null,
        expires_at bigint not null
      )`.execute(transaction);
      await sql`create index session_key on session (key_digest, created_at desc)`.execute(transaction);
      await sql`create index session_expiry on session (expires_at)`.execute(transaction);
    },
  },
  {
    name: '0005_changes',
    up: async (transaction) => {
      await sql`create table change_count (seq bigint not null)`.execute(transaction);
      await sql`create table change (seq bigint primary key, mark uuid not null default gen_random_uuid(), key_id text not null, account_id text not null, reason text not null)`.execute(transaction);
      // There is always a latest one, for whoever asks for the first time.
      await sql`insert into change_count (seq) values (0)`.execute(transaction);
      await sql`insert into change (seq, key_id, account_id, reason) values (0, '', '', '')`.execute(transaction);
    },
  },
  {
    name: '0006_ended_keys',
    up: async (transaction) => {
      // Keys and secrets that have ended are kept, and may be many: neither a new key, nor a list, nor a rotation may read them all.
      // A column of its own, since the planner knows how few live keys there are only of columns.
      await sql`alter table api_key add column lives_until bigint generated always as (case when revoked_at is null then coalesce(expires_at, 9223372036854775807) else 0 end) stored`.execute(transaction);
      await sql`create index api_key_live on api_key (account_id, lives_until)`.execute(transaction);
      await sql`create index api_key_revoked on api_key (account_id, revoked_at) where revoked_at is not null`.execute(transaction);
      await sql`create index api_key_secret_end on api_key_secret (key_id, valid_until)`.execute(transaction);
      await sql`drop index api_key_secret_key`.execute(transaction);
    },
  },
  {
    name: '0007_claims_to_begin',
    up: async (transaction) => {
      // Whose request tells before it is dispatched. The request's id and no flag: code of before, which knows nothing of it, may give the claim to another.
      await sql`alter table claim add column to_begin text`.execute(transaction);
    },
  },
];

export const SCHEMA: SchemaPlan = { schema: 'accounts', migrations: MIGRATIONS };
