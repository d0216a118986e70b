/** The ledger's own time: the clock of the database. */
import type { Database } from '@signalbox/sql/database';
import { sql } from 'kysely';
import type { LedgerNow } from '../domain/ports.js';

export function createDatabaseTime({ db }: Pick<Database<unknown>, 'db'>): LedgerNow {
  return async () => {
    const { rows } = await sql<{ now_ms: bigint }>`select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as now_ms`.execute(db);
    return Number(rows[0]?.now_ms);
  };
}
