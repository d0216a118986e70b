/** Decisions in Postgres. Ids ascend with time, so they serve as cursors. */
import type { Database } from '@signalbox/sql/database';
import { sql, type RawBuilder } from 'kysely';
import type { DecisionRow, DecisionStore } from '../domain/decisions.js';

/** End of the year 9999, the last date that has an ordinary text. */
const MS_MAX = 253_402_300_799_999;
/** Decisions deleted by one statement. */
const PRUNED_AT_ONCE = 1_000;

interface StoredRow {
  readonly id: string;
  readonly request_id: string;
  readonly account_id: string;
  readonly at_ms: bigint;
  readonly via_auto: boolean;
  readonly record: string;
  readonly score: number | null;
}

const rowOf = (row: StoredRow): DecisionRow => ({ id: row.id, requestId: row.request_id, accountId: row.account_id, atMs: Number(row.at_ms), viaAuto: row.via_auto, record: row.record, score: row.score ?? undefined });

export function createPostgresDecisions({ db }: Pick<Database<unknown>, 'db'>): DecisionStore {
  /** Deletes from the oldest on for as long as they are over. They are found by their key: no statement reads the whole table, or deletes more than it has time for. */
  async function dropOldest(isOver: RawBuilder<unknown>): Promise<void> {
    for (;;) {
      const { rows } = await sql`delete from decisions d using (select id, at_ms from decisions order by id limit ${PRUNED_AT_ONCE}) oldest where d.id = oldest.id and ${isOver} returning d.id`.execute(db);
      if (rows.length < PRUNED_AT_ONCE) return;
    }
  }

  return {
    add: async (rows) => {
      if (rows.length === 0) return;
      const values = rows.map(({ id, requestId, accountId, atMs, viaAuto, record, score }) => sql`(${id}, ${requestId}, ${accountId}, ${atMs}::bigint, ${viaAuto}, ${record}, ${score ?? null}::double precision)`);
      await sql`insert into decisions (id, request_id, account_id, at_ms, via_auto, record, score) values ${sql.join(values)} on conflict (id) do nothing`.execute(db);
    },
    find: async ({ accountId, id, requestId }) => {
      const { rows } = await sql<StoredRow>`select * from decisions where ${id === '' ? sql`request_id = ${requestId}` : sql`id = ${id}`} and (${accountId} = '' or account_id = ${accountId}) order by id desc limit 1`.execute(db);
      return rows[0] === undefined ? undefined : rowOf(rows[0]);
    },
    list: async ({ accountId, fromMs, toMs, after, limit }) => {
      const { rows } = await sql<StoredRow>`select * from decisions
        where via_auto and ${accountId === '' ? sql`true` : sql`account_id = ${accountId}`} and ${after === '' ? sql`true` : sql`id < ${after}`} and at_ms >= ${fromMs}::bigint and at_ms < ${toMs === 0 ? MS_MAX : toMs}::bigint
        order by id desc limit ${limit + 1}`.execute(db);
      return { rows: rows.slice(0, limit).map(rowOf), hasMore: rows.length > limit };
    },
    rate: async (accountId, requestId, score) => {
      const { rows } = await sql`update decisions set score = ${score}::double precision where request_id = ${requestId} and account_id = ${accountId} returning id`.execute(db);
      return rows.length > 0;
    },
    prune: async (beforeMs, keptMax) => {
      await dropOldest(sql`oldest.at_ms < ${beforeMs}::bigint`);
      const { rows } = await sql<{ id: string }>`select id from decisions order by id desc offset ${keptMax} limit 1`.execute(db);
      if (rows[0] !== undefined) await dropOldest(sql`oldest.id <= ${rows[0].id}`);
    },
  };
}
