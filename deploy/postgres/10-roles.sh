#!/bin/sh
# Each service is a role that owns its own schema and sees no other's. Runs once, on an empty volume.
set -eu
psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d "$POSTGRES_DB" \
  -v accounts="$ACCOUNTS_DB_PASSWORD" -v billing="$BILLING_DB_PASSWORD" -v plugins="$PLUGINS_DB_PASSWORD" <<'SQL'
revoke all on database signalbox from public;
revoke create on schema public from public;
create role accounts login password :'accounts';
create role billing login password :'billing';
create role plugins login password :'plugins';
-- The migrations say `create schema if not exists`, which asks for this right even when it exists.
grant connect, create on database signalbox to accounts, billing, plugins;
create schema accounts authorization accounts;
create schema billing authorization billing;
create schema plugins authorization plugins;
SQL
