/** Schema changes: ordered, once, safe when replicas start together. */
import { createHash } from 'node:crypto';
import { assert } from '@signalbox/kernel/assert';
import { Fault } from '@signalbox/kernel/fault';
import { sql, type Kysely, type Transaction } from 'kysely';
import { sqlStateOf, toStoreFault } from './faults.js';

export interface Migration {
  /** Unique and never changed, sorted as text: `0001_accounts`. */
  readonly name: string;
  /** Runs inside the one transaction of the whole migration, with the service's schema first in the search path. */
  up(transaction: Transaction<unknown>): Promise<void>;
}

export interface MigrateOptions {
  /** The service's own schema, such as `billing`; made when missing. Its name is also the lock's. */
  readonly schema: string;
  /** How long to wait for another replica that migrates, in milliseconds. Default 60,000. */
  readonly lockTimeoutMs?: number;
}

/** The advisory lock of a schema: 64 bits of its name's hash. */
function lockKey(schema: string): bigint {
  return createHash('sha256').update(`signalbox.migrate.${schema}`).digest().readBigInt64BE(0);
}

/**
 * Applies what is missing, all or nothing, and answers the names applied. An advisory lock lets one replica work while
 * others wait. Migrations this build does not know (a newer build ran) are left alone: schema changes expand first.
 * Rejects with Fault `store_unavailable`, or the driver's error of a migration that is wrong.
 */
export async function migrate<Schema>(db: Kysely<Schema>, migrations: readonly Migration[], { schema, lockTimeoutMs = 60_000 }: MigrateOptions): Promise<readonly string[]> {
  assert(/^[a-z][a-z0-9_]{0,40}$/.test(schema), 'A schema name has lower-case letters, digits and underscores.');
  const names = migrations.map((migration) => migration.name);
  assert(new Set(names).size === names.length && names.every((name, index) => index === 0 || (names[index - 1] ?? '') < name), 'Migrations are unique and in order.');
  try {
    return await db.transaction().execute(async (typed) => {
      const transaction = typed as unknown as Transaction<unknown>;
      await lock(transaction, schema, lockTimeoutMs);
      await sql`select set_config('statement_timeout', '0', true)`.execute(transaction);
      await sql`create schema if not exists ${sql.id(schema)}`.execute(transaction);
      await sql`select set_config('search_path', ${schema}, true)`.execute(transaction);
      await sql`create table if not exists ${sql.id(schema, 'migration')} (name text primary key, applied_at timestamptz not null default now())`.execute(transaction);
      const { rows } = await sql<{ name: string }>`select name from ${sql.id(schema, 'migration')}`.execute(transaction);
      const known = new Set(rows.map((row) => row.name));
      const applied: string[] = [];
      for (const migration of migrations) {
        if (known.has(migration.name)) continue;
        await migration.up(transaction);
        await sql`insert into ${sql.id(schema, 'migration')} (name) values (${migration.name})`.execute(transaction);
        applied.push(migration.name);
      }
      return applied;
    });
  } catch (error) {
    if (sqlStateOf(error) === undefined) throw error;
    throw toStoreFault(error) ?? error;
  }
}

/** Names of the migrations that the schema lacks, all of them where there is none. Needs no more than to read it. */
export async function missingMigrations<Schema>(db: Kysely<Schema>, migrations: readonly Migration[], { schema }: Pick<MigrateOptions, 'schema'>): Promise<readonly string[]> {
  const { rows: tables } = await sql<{ known: string | null }>`select to_regclass(${`${schema}.migration`})::text as known`.execute(db);
  const names = migrations.map(({ name }) => name);
  if (tables[0]?.known === undefined || tables[0].known === null) return names;
  const { rows } = await sql<{ name: string }>`select name from ${sql.id(schema, 'migration')}`.execute(db);
  const known = new Set(rows.map(({ name }) => name));
  return names.filter((name) => !known.has(name));
}

/** Pause between tries for the lock, in milliseconds, slept by the server: each statement stays short, whatever the timeouts of the pool. */
const LOCK_PAUSE_MS = 100;

async function lock(transaction: Transaction<unknown>, schema: string, timeoutMs: number): Promise<void> {
  const key = lockKey(schema).toString();
  for (let waitedMs = 0; waitedMs <= timeoutMs; waitedMs += LOCK_PAUSE_MS) {
    const { rows } = await sql<{ locked: boolean }>`select pg_try_advisory_xact_lock(${key}::bigint) as locked`.execute(transaction);
    if (rows[0]?.locked === true) return;
    await sql`select pg_sleep(${LOCK_PAUSE_MS / 1_000})`.execute(transaction);
  }
  throw new Fault('store_unavailable', 'Another replica is still migrating.');
}
