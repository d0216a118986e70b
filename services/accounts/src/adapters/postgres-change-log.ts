/** Change log in Postgres. */
import { Fault } from '@signalbox/kernel/fault';
import { sql, type Kysely, type Transaction } from 'kysely';
import type { Change, ChangeLog, ChangesPage, InvalidationReason } from '../domain/ports.js';
import type { AccountsSchema } from './rows.js';

const KEPT_MAX = 10_000;
const PAGE_MAX = 1_000;

interface ChangeRow {
  readonly seq: bigint;
  readonly mark: string;
  readonly key_id: string;
  readonly account_id: string;
  readonly reason: InvalidationReason;
}

/**
 * Must be the last statement of a transaction that changes data cached by edge. It locks the counter's row until the commit, so
 * numbers follow the order of commits without gaps: a reader that has seen one number has seen all before it.
 */
export async function writeChange(transaction: Transaction<AccountsSchema>, { keyId, accountId, reason }: Change): Promise<void> {
  const { rows } = await sql`with counted as (update accounts.change_count set seq = seq + 1 returning seq),
      forgotten as (delete from accounts.change where seq <= (select seq from counted) - ${KEPT_MAX}::bigint)
    insert into accounts.change (seq, key_id, account_id, reason) select seq, ${keyId}::text, ${accountId}::text, ${reason}::text from counted returning seq`.execute(transaction);
  if (rows.length !== 1) throw new Fault('internal_error', 'accounts.change_count has no row.');
}

/** A cursor has the number and a mark, since in a database restored from a backup the same number may be another change. */
const cursorOf = ({ seq, mark }: ChangeRow): string => `${seq}/${mark}`;

function seqOf(cursor: string): bigint {
  const digits = /^\d{1,18}(?=\/)/.exec(cursor)?.[0];
  if (digits === undefined) throw new Fault('bad_message', 'a cursor is of no answer of this service');
  return BigInt(digits);
}

export function createPostgresChangeLog(db: Kysely<AccountsSchema>): ChangeLog {
  const fromNowOn = async (): Promise<ChangesPage> => {
    const { rows } = await sql<ChangeRow>`select seq, mark::text as mark, key_id, account_id, reason from accounts.change order by seq desc limit 1`.execute(db);
    if (rows[0] === undefined) throw new Fault('internal_error', 'accounts.change has no row.');
    return { cursor: cursorOf(rows[0]), changes: [], isUnbroken: false, hasMore: false };
  };
  return {
    list: async (after) => {
      if (after === '') return fromNowOn();
      // Includes the cursor's own row: if that still exists, so do all later ones.
      const { rows } = await sql<ChangeRow>`select seq, mark::text as mark, key_id, account_id, reason from accounts.change where seq >= ${seqOf(after)}::bigint order by seq limit ${PAGE_MAX + 1}`.execute(db);
      const [first, ...rest] = rows;
      if (first === undefined || cursorOf(first) !== after) return fromNowOn();
      return { cursor: cursorOf(rest.at(-1) ?? first), changes: rest.map(({ key_id: keyId, account_id: accountId, reason }) => ({ keyId, accountId, reason })), isUnbroken: true, hasMore: rest.length === PAGE_MAX };
    },
  };
}
