/** The schema `plugins`: the index of documents and books, and memory. Only ever added to. */
import type { Migration } from '@signalbox/sql/migrate';
import type { SchemaPlan } from '@signalbox/sql/schema-job';
import { sql } from 'kysely';

const INDEX = [
  `create table source (
    id bigint generated always as identity primary key, corpus text not null check (corpus in ('web', 'books')), key text not null, title text not null, author text not null,
    url text not null, host text not null, language text not null, passages integer not null, unique (corpus, key))`,
  `create table passage (
    source_id bigint not null references source (id) on delete cascade, ordinal integer not null, heading text not null, body text not null, tsv tsvector not null, primary key (source_id, ordinal))`,
  `create index passage_tsv on passage using gin (tsv)`,
];

/**
 * Every row belongs to one account and one of its users, and the policy lets a transaction see those of the owner it
 * names alone. A superuser is above policies: such a connection takes the role that is not before it touches a row.
 */
const MEMORY = [
  `create table memory_fact (
    id uuid not null default gen_random_uuid() primary key, account_id text not null check (account_id <> ''), user_id text not null, namespace text not null, topic text not null, text text not null,
    created_at_ms bigint not null, updated_at_ms bigint not null,
    tsv tsvector not null generated always as (to_tsvector('english'::regconfig, text)) stored,
    unique (account_id, user_id, namespace, topic))`,
  `alter table memory_fact enable row level security`,
  `alter table memory_fact force row level security`,
  `create policy memory_fact_owner on memory_fact
    using (account_id = current_setting('signalbox.account_id', true) and user_id = current_setting('signalbox.user_id', true))
    with check (account_id = current_setting('signalbox.account_id', true) and user_id = current_setting('signalbox.user_id', true))`,
  `do $$ begin
    if (select rolsuper or rolbypassrls from pg_roles where rolname = current_user) then
      if not exists (select from pg_roles where rolname = 'signalbox_memory') then
        begin
          create role signalbox_memory nologin nosuperuser nobypassrls;
        exception when duplicate_object or unique_violation then null;
        end;
      end if;
      grant usage on schema plugins to signalbox_memory;
      grant select, insert, update, delete on memory_fact to signalbox_memory;
    end if;
  end $$`,
];

const all = (name: string, statements: readonly string[]): Migration => ({
  name,
  up: async (transaction) => {
    for (const statement of statements) await sql.raw(statement).execute(transaction);
  },
});

export const MIGRATIONS: readonly Migration[] = [all('0001_index', INDEX), all('0002_memory', MEMORY)];

export const SCHEMA: SchemaPlan = { schema: 'plugins', migrations: MIGRATIONS };
