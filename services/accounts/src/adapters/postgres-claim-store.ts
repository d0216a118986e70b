/** Claims in Postgres, schema `accounts`. A claim is taken in one statement, so that two concurrent requests never both get it. */
import { sql, type Kysely } from 'kysely';
import type { ClaimRecord, ClaimStore } from '../domain/claims.js';
import type { AccountsSchema } from './rows.js';

interface ClaimRow {
  readonly account_id: string;
  readonly key_digest: Buffer;
  readonly body_digest: Buffer;
  readonly request_id: string;
  readonly is_ended: boolean;
  readonly to_begin: string | null;
  readonly lease_ends_ms: bigint;
  readonly forget_ms: bigint;
  readonly cost_nano_usd: bigint | null;
  readonly key_id: string | null;
  readonly wrapped_key: Buffer | null;
  readonly sealed: Buffer | null;
}

function recordOf(row: ClaimRow): ClaimRecord {
  return {
    accountId: row.account_id,
    keyDigest: row.key_digest,
    bodyDigest: row.body_digest,
    requestId: row.request_id,
    isEnded: row.is_ended,
    isToBegin: row.to_begin === row.request_id,
    leaseEndsMs: Number(row.lease_ends_ms),
    forgetMs: Number(row.forget_ms),
    costNanoUsd: row.cost_nano_usd,
    answer: row.key_id === null || row.wrapped_key === null || row.sealed === null ? null : { keyId: row.key_id, wrappedKey: row.wrapped_key, sealed: row.sealed },
  };
}

/** Most attempts, if the claim is freed each time between our insert and our select. */
const LOOKS_MAX = 5;

export function createPostgresClaimStore(db: Kysely<AccountsSchema>): ClaimStore {
  /** True when it was written. */
  const write = async (fresh: ClaimRecord, takesOver: string, nowMs: number): Promise<boolean> => {
    const { rows } = await sql`insert into accounts.claim as c (account_id, key_digest, body_digest, request_id, is_ended, to_begin, lease_ends_ms, forget_ms)
      values (${fresh.accountId}, ${Buffer.from(fresh.keyDigest)}, ${Buffer.from(fresh.bodyDigest)}, ${fresh.requestId}, false, ${fresh.isToBegin ? fresh.requestId : null}, ${fresh.leaseEndsMs}, ${fresh.forgetMs})
      on conflict (account_id, key_digest) do update set body_digest = excluded.body_digest, request_id = excluded.request_id, is_ended = false, to_begin = excluded.to_begin, lease_ends_ms = excluded.lease_ends_ms,
        forget_ms = excluded.forget_ms, cost_nano_usd = null, key_id = null, wrapped_key = null, sealed = null
        where c.forget_ms <= ${nowMs} or ((c.request_id = ${takesOver} or c.to_begin = c.request_id) and not c.is_ended and c.lease_ends_ms <= ${nowMs})
      returning request_id`.execute(db);
    return rows.length > 0;
  };
  return {
    claim: async (fresh, takesOver, nowMs) => {
      for (let look = 0; look < LOOKS_MAX; look += 1) {
        if (await write(fresh, takesOver, nowMs)) return undefined;
        const { rows } = await sql<ClaimRow>`select * from accounts.claim where account_id = ${fresh.accountId} and key_digest = ${Buffer.from(fresh.keyDigest)}`.execute(db);
        if (rows[0] !== undefined) return recordOf(rows[0]);
      }
      // It is taken and freed faster than we can read it: treat it as held by another request.
      return { ...fresh, requestId: '', leaseEndsMs: nowMs + 1_000 };
    },
    renew: async (accountId, keyDigest, requestId, leaseEndsMs, toBeginEndsMs, forgetMs) => {
      const { rows } = await sql<Pick<ClaimRow, 'request_id' | 'to_begin'>>`update accounts.claim set lease_ends_ms = case when to_begin = request_id then ${toBeginEndsMs}::bigint else ${leaseEndsMs}::bigint end, forget_ms = ${forgetMs}
        where account_id = ${accountId} and key_digest = ${Buffer.from(keyDigest)} and request_id = ${requestId} and not is_ended
        returning request_id, to_begin`.execute(db);
      return rows[0] === undefined ? undefined : { isToBegin: rows[0].to_begin === rows[0].request_id };
    },
    begin: async (accountId, keyDigest, requestId, leaseEndsMs, forgetMs) => {
      const { rows } = await sql`update accounts.claim set to_begin = null, lease_ends_ms = ${leaseEndsMs}, forget_ms = ${forgetMs}
        where account_id = ${accountId} and key_digest = ${Buffer.from(keyDigest)} and request_id = ${requestId} and not is_ended
        returning request_id`.execute(db);
      return rows.length > 0;
    },
    end: async (accountId, keyDigest, requestId, { forgetMs, costNanoUsd, answer }) => {
      await sql`update accounts.claim set is_ended = true, forget_ms = ${forgetMs}, cost_nano_usd = ${costNanoUsd}, key_id = ${answer?.keyId ?? null},
        wrapped_key = ${answer === null ? null : Buffer.from(answer.wrappedKey)}, sealed = ${answer === null ? null : Buffer.from(answer.sealed)}
        where account_id = ${accountId} and key_digest = ${Buffer.from(keyDigest)} and request_id = ${requestId} and not is_ended`.execute(db);
    },
    remove: async (accountId, keyDigest, requestId) => {
      await sql`delete from accounts.claim where account_id = ${accountId} and key_digest = ${Buffer.from(keyDigest)} and request_id = ${requestId} and not is_ended`.execute(db);
    },
    purge: async (nowMs, limit) => {
      const { rows } = await sql`delete from accounts.claim where ctid in (select ctid from accounts.claim where forget_ms <= ${nowMs} limit ${limit}) returning request_id`.execute(db);
      return rows.length;
    },
  };
}
