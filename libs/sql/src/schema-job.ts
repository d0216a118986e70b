/** A schema is made by the service as it starts, or before it by a run of its own under the role that owns it. */
import { Fault } from '@signalbox/kernel/fault';
import { ConfigError, type Environment } from '@signalbox/runtime/config';
import { silentLog } from '@signalbox/runtime/log';
import { loadSchemaJobConfig } from '@signalbox/runtime/schema-job';
import type { Secret } from '@signalbox/runtime/secret';
import { sql, type Kysely } from 'kysely';
import { openDatabase } from './database.js';
import { NO_RIGHT, sqlStateOf } from './faults.js';
import { migrate, missingMigrations, type Migration } from './migrate.js';

export interface SchemaPlan {
  /** The service's name, and the schema's. */
  readonly schema: string;
  readonly migrations: readonly Migration[];
  /** Tables whose rows are added and never changed. */
  readonly appendOnly?: readonly string[];
}

/** `migrate`, whose user may be one that reads and writes rows only: rejects with a ConfigError then. */
async function migrateAsOwner<Schema>(db: Kysely<Schema>, { schema, migrations }: SchemaPlan): Promise<readonly string[]> {
  try {
    return await migrate(db, migrations, { schema });
  } catch (error) {
    const refusal = error instanceof Fault ? error.cause : undefined;
    if (!(refusal instanceof Error) || sqlStateOf(refusal) !== NO_RIGHT) throw error;
    throw new ConfigError(`DATABASE_URL: its user may not make the schema ${schema} (${refusal.message}): give it CREATE on the database and what is in the schema, or name the user who owns them.`, { cause: error });
  }
}

/** However long a change of a large ledger takes: it is one transaction, and nobody waits for its answer. */
const STATEMENT_TIMEOUT_MS = 86_400_000;

/** Over a connection of its own: those of a service give each statement up after seconds. */
async function migrateAtLeisure(url: Secret, plan: SchemaPlan): Promise<readonly string[]> {
  const { db, close } = openDatabase<unknown>({ url, poolMax: 1, log: silentLog, statementTimeoutMs: STATEMENT_TIMEOUT_MS });
  try {
    return await migrateAsOwner(db, plan);
  } finally {
    await close();
  }
}

/** Before a service uses its schema over `db`, of the database at `url`. Rejects with a ConfigError when it may not make it, and with `off`, when it only looks, when the schema is older than this build. */
export async function readySchema<Schema>(db: Kysely<Schema>, url: Secret, plan: SchemaPlan, migrateOnStart: 'on' | 'off'): Promise<void> {
  const { schema, migrations } = plan;
  if (migrateOnStart === 'on') {
    // What cannot be looked up is told by the migration.
    const missing = await missingMigrations(db, migrations, { schema }).catch(() => undefined);
    if (missing?.length !== 0) await migrateAtLeisure(url, plan);
    return;
  }
  const missing = await missingMigrations(db, migrations, { schema });
  if (missing.length > 0) throw new ConfigError(`The schema ${schema} is older than this build, which needs ${missing.join(', ')}: run \`node services/${schema}/dist/main.js migrate\` first, or start with MIGRATE_ON_START=on.`);
}

/** Rows for the service's role: all that it reads and writes, and no more than adding where rows stay. The owner alone changes tables. */
async function grant(db: Kysely<unknown>, { schema, appendOnly = [] }: SchemaPlan, role: string): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    const { rows } = await sql<{ is_owner: boolean }>`select current_user = ${role} as is_owner`.execute(transaction);
    if (rows[0]?.is_owner === true) return;
    const of = sql`from ${sql.id(role)}`;
    await sql`grant usage on schema ${sql.id(schema)} to ${sql.id(role)}`.execute(transaction);
    await sql`grant select, insert, update, delete on all tables in schema ${sql.id(schema)} to ${sql.id(role)}`.execute(transaction);
    await sql`grant usage on all sequences in schema ${sql.id(schema)} to ${sql.id(role)}`.execute(transaction);
    for (const table of appendOnly) await sql`revoke update, delete on ${sql.id(schema, table)} ${of}`.execute(transaction);
    await sql`revoke insert, update, delete on ${sql.id(schema, 'migration')} ${of}`.execute(transaction);
  });
}

/** Applies what is missing, gives the service's role its rights, and answers what was applied. Rejects with a ConfigError, a Fault or the driver's error. */
export async function runSchemaJob(plan: SchemaPlan, environment: Environment): Promise<readonly string[]> {
  const { DATABASE_URL: url, SERVICE_ROLE: role } = loadSchemaJobConfig(environment);
  const { db, close } = openDatabase<unknown>({ url, poolMax: 1, log: silentLog, statementTimeoutMs: STATEMENT_TIMEOUT_MS, schema: plan.schema });
  try {
    const applied = await migrateAsOwner(db, plan);
    if (role !== undefined) await grant(db, plan, role);
    return applied;
  } finally {
    await close();
  }
}

/** The whole process of such a run: one line for a person, and the exit code 0 or 1. */
export async function schemaJobProcess(plan: SchemaPlan, environment: Environment): Promise<void> {
  try {
    const applied = await runSchemaJob(plan, environment);
    process.stdout.write(`${plan.schema}: ${applied.length === 0 ? 'the schema is as this build needs it' : `applied ${applied.join(', ')}`}\n`);
  } catch (error) {
    process.stderr.write(`${plan.schema}: ${error instanceof Error ? error.message : 'the schema could not be made'}\n`);
    process.exitCode = 1;
  }
}
