/** Sessions in Postgres. */
import { sql, type Kysely } from 'kysely';
import type { SessionRecord, SessionStore } from '../domain/ports.js';
import { writeChange } from './postgres-change-log.js';
import type { AccountsSchema } from './rows.js';

interface SessionRow {
  readonly digest: Buffer;
  readonly key_digest: Buffer;
  readonly created_at: bigint;
  readonly last_used_at: bigint;
  readonly expires_at: bigint;
}

function fromRow(row: SessionRow): SessionRecord {
  return { digest: row.digest, keyDigest: row.key_digest, createdAt: Number(row.created_at), lastUsedAt: Number(row.last_used_at), expiresAt: Number(row.expires_at) };
}

export function createPostgresSessionStore(db: Kysely<AccountsSchema>): SessionStore {
  return {
    insert: async (session, keptMax, told) => {
      // Outside the transaction, and without waiting for locks: expired sessions of other secrets do no harm here.
      await sql`delete from accounts.session where digest in (select digest from accounts.session where expires_at <= ${session.createdAt} for update skip locked)`.execute(db);
      return db.transaction().execute(async (transaction) => {
        // Under the secret's lock: concurrent sign-ins could otherwise deadlock while deleting the same rows, and would not count each other's sessions.
        await sql`select digest from accounts.api_key_secret where digest = ${Buffer.from(session.keyDigest)} for no key update`.execute(transaction);
        await sql`insert into accounts.session (digest, key_digest, created_at, last_used_at, expires_at)
          values (${Buffer.from(session.digest)}, ${Buffer.from(session.keyDigest)}, ${session.createdAt}, ${session.lastUsedAt}, ${session.expiresAt})`.execute(transaction);
        const { rows } = await sql`delete from accounts.session where digest in (
          select digest from accounts.session where key_digest = ${Buffer.from(session.keyDigest)} order by (digest = ${Buffer.from(session.digest)}) desc, created_at desc, digest offset ${keptMax}) returning digest`.execute(transaction);
        if (rows.length > 0) await writeChange(transaction, told);
        return rows.length > 0;
      });
    },
    find: async (digest) => {
      const { rows } = await sql<SessionRow>`select * from accounts.session where digest = ${Buffer.from(digest)}`.execute(db);
      return rows[0] === undefined ? undefined : fromRow(rows[0]);
    },
    touch: async (digest, usedAt) => {
      await sql`update accounts.session set last_used_at = greatest(last_used_at, ${usedAt}::bigint) where digest = ${Buffer.from(digest)}`.execute(db);
    },
    remove: (digest, told) =>
      db.transaction().execute(async (transaction) => {
        const { rows } = await sql<SessionRow>`delete from accounts.session where digest = ${Buffer.from(digest)} returning *`.execute(transaction);
        if (rows[0] === undefined) return undefined;
        if (told !== undefined) await writeChange(transaction, told);
        return fromRow(rows[0]);
      }),
  };
}
