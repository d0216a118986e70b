/** Facts in Postgres, separated by row-level security: a transaction sees only the rows of the owner that it names. */
import { sql, type Kysely, type Transaction } from 'kysely';
import { QUESTION_CHARS_MAX } from '../domain/passages.js';
import { RECENCY_MS } from '../domain/recall.js';
import type { Fact, FactStore, MemoryOwner } from '../domain/ports.js';
import type { PluginsSchema } from './postgres-index.js';

interface Row {
  readonly id: string;
  readonly text: string;
  readonly namespace: string;
  readonly created_at_ms: bigint;
  readonly updated_at_ms: bigint;
}

const FACT_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

const factOf = (row: Row): Fact => ({ id: row.id, text: row.text, namespace: row.namespace, createdAtMs: Number(row.created_at_ms), updatedAtMs: Number(row.updated_at_ms) });

export function createPostgresFacts(db: Kysely<PluginsSchema>): FactStore {
  let isAbovePolicies: boolean | undefined;

  const as = <Result>({ accountId, user }: MemoryOwner, work: (transaction: Transaction<PluginsSchema>) => Promise<Result>): Promise<Result> =>
    db.transaction().execute(async (transaction) => {
      isAbovePolicies ??= (await sql<{ above: boolean }>`select rolsuper or rolbypassrls as above from pg_roles where rolname = current_user`.execute(transaction)).rows[0]?.above !== false;
      if (isAbovePolicies) await sql`set local role signalbox_memory`.execute(transaction);
      await sql`select set_config('signalbox.account_id', ${accountId}, true), set_config('signalbox.user_id', ${user}, true)`.execute(transaction);
      return work(transaction);
    });

  return {
    put: (owner, namespace, facts, nowMs, keepMax) =>
      as(owner, async (transaction) => {
        for (const { topic, text } of facts) {
          await sql`insert into plugins.memory_fact (account_id, user_id, namespace, topic, text, created_at_ms, updated_at_ms)
            values (${owner.accountId}, ${owner.user}, ${namespace}, ${topic}, ${text}, ${nowMs}, ${nowMs})
            on conflict (account_id, user_id, namespace, topic) do update set text = excluded.text, updated_at_ms = excluded.updated_at_ms`.execute(transaction);
        }
        await sql`delete from plugins.memory_fact where id in (select id from plugins.memory_fact where namespace = ${namespace} order by updated_at_ms desc, id offset ${keepMax})`.execute(transaction);
      }),
    recall: (owner, namespace, text, limit, nowMs) =>
      as(owner, async (transaction) => {
        const { rows } = await sql<Row>`
          with asked as (select replace(plainto_tsquery('english'::regconfig, ${text.slice(0, QUESTION_CHARS_MAX)})::text, '&', '|')::tsquery as query)
          select id, text, namespace, created_at_ms, updated_at_ms from asked, plugins.memory_fact
          where namespace = ${namespace}
          order by ts_rank(tsv, asked.query) * 10 + exp(-least(greatest(${nowMs}::bigint - updated_at_ms, 0)::double precision / ${RECENCY_MS}, 100)) desc, updated_at_ms desc, id
          limit ${limit}`.execute(transaction);
        return rows.map(factOf);
      }),
    list: (owner, namespace, limit, after) =>
      after !== undefined && !FACT_ID.test(after)
        ? Promise.resolve(undefined)
        : as(owner, async (transaction) => {
            const { rows } = await sql<Row>`select id, text, namespace, created_at_ms, updated_at_ms from plugins.memory_fact as fact
              where (${namespace ?? null}::text is null or namespace = ${namespace ?? null})
                and (${after ?? null}::uuid is null or exists (select from plugins.memory_fact as last where last.id = ${after ?? null}::uuid
                  and (fact.updated_at_ms < last.updated_at_ms or (fact.updated_at_ms = last.updated_at_ms and fact.id > last.id))))
              order by updated_at_ms desc, id limit ${limit}`.execute(transaction);
            // Either nothing follows `after`, or `after` does not exist.
            const isGone = rows.length === 0 && after !== undefined && (await sql`select from plugins.memory_fact where id = ${after}::uuid`.execute(transaction)).rows.length === 0;
            return isGone ? undefined : rows.map(factOf);
          }),
    clear: (owner, namespace) =>
      as(owner, async (transaction) => {
        const { numAffectedRows = 0n } = await sql`delete from plugins.memory_fact where (${namespace ?? null}::text is null or namespace = ${namespace ?? null})`.execute(transaction);
        return Number(numAffectedRows);
      }),
  };
}
