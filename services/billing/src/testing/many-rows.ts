/** Databases with many rows, made by SQL, and how many of them a statement reads. */
import { silentLog } from '@signalbox/runtime/log';
import { Secret } from '@signalbox/runtime/secret';
import { openDatabase, type Database } from '@signalbox/sql/database';
import { migrate } from '@signalbox/sql/migrate';
import { testPostgresUrl } from '@signalbox/testkit/stores';
import { CompiledQuery, sql, type Kysely } from 'kysely';
import { migrations } from '../adapters/migrations.js';

/** A database of its own with the tables of billing, in which `fill` was executed. To be closed by the caller. */
export async function filledDatabase(fill: readonly string[]): Promise<Database<unknown>> {
  const database = openDatabase<unknown>({ url: new Secret(await testPostgresUrl()), poolMax: 2, log: silentLog, statementTimeoutMs: 20_000, schema: 'billing', pipelined: true });
  await migrate(database.db, migrations, { schema: 'billing' });
  for (const statement of fill) await sql.raw(statement).execute(database.db);
  return database;
}

interface PlanNode {
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

function rowsIn(node: PlanNode): number {
  const own = node['Relation Name'] === undefined ? 0 : node['Actual Loops'] * (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0));
  return (node.Plans ?? []).reduce((sum, each) => sum + rowsIn(each), own);
}

/** Rows of tables that the statement reads; it is executed. */
export async function rowsRead(db: Kysely<unknown>, text: string, parameters: readonly unknown[] = []): Promise<number> {
  const { rows } = await db.executeQuery<{ 'QUERY PLAN': readonly { readonly Plan: PlanNode }[] }>(CompiledQuery.raw(`explain (analyze, format json) ${text}`, [...parameters]));
  const plan = rows[0]?.['QUERY PLAN'][0]?.Plan;
  if (plan === undefined) throw new Error('Postgres told no plan.');
  return rowsIn(plan);
}

/** The database, and the number of rows in each answer that it has given. `onAnswer` is called behind each. */
export function watched(db: Kysely<unknown>, onAnswer: () => unknown = () => undefined): { readonly db: Kysely<unknown>; readonly answers: number[] } {
  const answers: number[] = [];
  const transformResult = <Result extends { readonly rows: readonly unknown[] }>({ result }: { readonly result: Result }): Promise<Result> => {
    answers.push(result.rows.length);
    onAnswer();
    return Promise.resolve(result);
  };
  return { db: db.withPlugin({ transformQuery: ({ node }) => node, transformResult }), answers };
}
