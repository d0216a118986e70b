#!/bin/sh
# Each service has two roles: <name>_owner owns its schema and creates its tables (`main.js migrate`), <name> reads and
# writes their rows. Neither can access another service's schema. Runs on an empty volume; safe to repeat, also if the services owned their schemas before.
set -eu
# psql (15 or newer) reads the passwords from the environment, since arguments are visible in the list of processes.
: "${ACCOUNTS_DB_PASSWORD:?}" "${BILLING_DB_PASSWORD:?}" "${PLUGINS_DB_PASSWORD:?}" "${ACCOUNTS_OWNER_DB_PASSWORD:?}" "${BILLING_OWNER_DB_PASSWORD:?}" "${PLUGINS_OWNER_DB_PASSWORD:?}"
psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d "$POSTGRES_DB" <<'SQL'
\getenv accounts ACCOUNTS_DB_PASSWORD
\getenv billing BILLING_DB_PASSWORD
\getenv plugins PLUGINS_DB_PASSWORD
\getenv accounts_owner ACCOUNTS_OWNER_DB_PASSWORD
\getenv billing_owner BILLING_OWNER_DB_PASSWORD
\getenv plugins_owner PLUGINS_OWNER_DB_PASSWORD
revoke all on database :"DBNAME" from public;
revoke create on schema public from public;
select format('create role %I login', name) from unnest(array['accounts', 'billing', 'plugins', 'accounts_owner', 'billing_owner', 'plugins_owner']) as n(name)
  where not exists (select from pg_roles where rolname = name) \gexec
-- Named in the dump of a database whose services ran as its administrator: plugins takes it on there before it touches memory.
select 'create role signalbox_memory nologin nosuperuser nobypassrls'
  where not exists (select from pg_roles where rolname = 'signalbox_memory') \gexec
alter role accounts password :'accounts';
alter role billing password :'billing';
alter role plugins password :'plugins';
alter role accounts_owner password :'accounts_owner';
alter role billing_owner password :'billing_owner';
alter role plugins_owner password :'plugins_owner';
reassign owned by accounts to accounts_owner;
reassign owned by billing to billing_owner;
reassign owned by plugins to plugins_owner;
revoke create on database :"DBNAME" from accounts, billing, plugins;
grant connect on database :"DBNAME" to accounts, billing, plugins;
-- The migrations say `create schema if not exists`, which asks for this right even when it exists.
grant connect, create on database :"DBNAME" to accounts_owner, billing_owner, plugins_owner;
create schema if not exists accounts authorization accounts_owner;
create schema if not exists billing authorization billing_owner;
create schema if not exists plugins authorization plugins_owner;
grant usage on schema accounts to accounts;
grant usage on schema billing to billing;
grant usage on schema plugins to plugins;
SQL
