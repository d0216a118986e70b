/** The schema `billing`. Rows of `ledger_entries` are never changed: a trigger refuses, whoever asks. */
import type { Migration } from '@signalbox/sql/migrate';
import { sql } from 'kysely';

const STATEMENTS = [
  `create table writers (
    writer text primary key, provider text not null default '', last_seq bigint not null default 0,
    ledger_seq bigint not null default 0, registered_at_ms bigint not null default 0)`,
  `create table writer_ranges (writer text not null references writers, first_seq bigint not null, last_seq bigint not null, primary key (writer, first_seq))`,
  `create table account_heads (account_id text primary key, seq bigint not null default 0, hash text not null)`,
  // Partitions by period come when retention asks for them: until then one table, whose key holds nothing but account and sequence.
  `create table ledger_entries (
    account_id text not null, seq bigint not null, kind text not null check (kind in ('attempt', 'charge', 'adjustment')),
    request_id text not null, attempt integer not null, amount_nano_usd bigint not null, tokens bigint not null, byok_tokens bigint not null,
    source text not null, flags text[] not null, provider text not null, period text not null, at_ms bigint not null, applies_to text not null,
    card_id text not null, key_id text not null, detail jsonb not null, prev_hash text not null, hash text not null,
    primary key (account_id, seq))`,
  `create index ledger_entries_request on ledger_entries (request_id)`,
  `create table attempt_keys (request_id text not null, attempt integer not null, primary key (request_id, attempt))`,
  `create table charge_keys (request_id text primary key)`,
  `create table requests (
    request_id text primary key, account_id text not null, key_id text not null, facts jsonb not null, periods jsonb not null, sources jsonb not null,
    charged_attempts integer[] not null, booked_nano_usd bigint, booked_tokens bigint, booked_byok_tokens bigint, updated_at_ms bigint not null)`,
  `create table totals (
    account_id text not null, scope text not null, period_id text not null, charge_nano_usd bigint not null, tokens bigint not null,
    byok_tokens bigint not null, updated_at_ms bigint not null, primary key (account_id, scope, period_id))`,
  `create table dead_events (
    id bigint generated always as identity primary key, digest text not null unique, subject text not null, reason text not null,
    writer text not null, payload bytea not null, at_ms bigint not null)`,
  `create function refuse_change() returns trigger language plpgsql as $$ begin raise exception 'The ledger is append-only.'; end $$`,
  `create trigger ledger_entries_append_only before update or delete on ledger_entries for each row execute function refuse_change()`,
  `create trigger ledger_entries_no_truncate before truncate on ledger_entries for each statement execute function refuse_change()`,
];

export const migrations: readonly Migration[] = [
  {
    name: '0001_ledger',
    up: async (transaction) => {
      for (const statement of STATEMENTS) await sql.raw(statement).execute(transaction);
    },
  },
];
