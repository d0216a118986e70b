/** The ledger in Postgres: one transaction per batch, with a handful of prepared statements whatever its size. */
import { isWhole } from '@signalbox/ledger-core/fold';
import { CHAIN_START } from '@signalbox/ledger-core/hash-chain';
import { periodAt } from '@signalbox/ledger-core/periods';
import type { Database } from '@signalbox/sql/database';
import { CompiledQuery, sql } from 'kysely';
import type { LedgerRowView, LedgerStore, WriterMarkRow } from '../domain/ports.js';
import { isSettled } from '../domain/request.js';
import { placesFrom } from './ledger-places.js';
import { commitBatch, readRequests, type KnownPeriods } from './postgres-commit.js';

/** Latest rows of an account whose requests are named when quota rebuilds its counters. This is about as many requests, since most have a single row. */
const RECENT_ROWS = 2_000;
/** 70 days: the longest period with an end (a month) and its predecessor. */
const RECENT_PERIODS_MS = 70 * 86_400_000;
/** Daily totals that quota may still use, with two days to spare for clocks. Older ones, which are most of the rows, are left out. */
const RECENT_DAYS_MS = 10 * 86_400_000;
const LEDGER_LIMIT = 1_000;
/**
 * The head of account $1 with its totals that changed since $2 (days) or $3. With a plain join, Postgres reads the whole table, of
 * all accounts, where the account has a notable part of it: more than the second that quota waits when it loads an account.
 */
export const TOTALS = `select h.seq, t.scope, t.period_id, t.charge_nano_usd, t.tokens, t.byok_tokens from account_heads h left join lateral (
    select * from totals t where t.account_id = h.account_id and (t.period_id = 'total' or t.updated_at_ms > case when t.period_id like 'day:%' then $2::bigint else $3::bigint end) offset 0) t on true
  where h.account_id = $1`;

interface LedgerRow {
  readonly seq: bigint;
  readonly kind: string;
  readonly request_id: string;
  readonly attempt: number;
  readonly amount_nano_usd: bigint;
  readonly source: string;
  readonly charged: boolean;
  readonly flags: string[];
  readonly provider: string;
  readonly period: string;
  readonly at_ms: bigint;
  readonly prev_hash: string;
  readonly hash: string;
  readonly applies_to: string;
  readonly tokens: bigint;
  readonly byok_tokens: bigint;
  readonly card_id: string;
}

/** Whether a charge or adjustment row includes the attempt of row `e`. */
const isCharged = (alias: 'a' | 'c') => sql<boolean>`to_jsonb(e.attempt) <@ (${sql.ref(`${alias}.detail`)}::jsonb -> 'charged')`;

/** The ledger over a database whose search path starts with the schema `billing`. */
export function createPostgresLedger(database: Pick<Database<unknown>, 'db' | 'transactPrepared'>, periodSeconds?: number): LedgerStore {
  const { db } = database;
  const periods: KnownPeriods = {
    lastId: 0n,
    lastPeriod: '',
    closed: new Set(),
    openAt: (nowMs, closed) => {
      let open = periodAt(nowMs, periodSeconds);
      // The current period can be closed only if the clock was set back.
      while (closed.has(open.id)) open = periodAt(open.endMs, periodSeconds);
      return open.id;
    },
  };

  /** The latest charged requests, and those of `asked` that are charged. */
  async function chargedRequests(accountId: string, asked: readonly string[]): Promise<readonly string[]> {
    const { rows } = await sql<{ request_id: string }>`select request_id from (select seq, kind, charge_hash, request_id from ledger_entries where account_id = ${accountId} order by seq desc limit ${RECENT_ROWS}) r
        where kind = 'charge' or charge_hash is not null
      union
      select request_id from ledger_entries where (kind = 'charge' or charge_hash is not null) and request_id = any(${asked}::text[]) and account_id = ${accountId}`.execute(db);
    return rows.map((row) => row.request_id);
  }

  /**
   * Those of the charged requests that are settled: no round of theirs is still to be reported. Requests that quota asks about are
   * no longer running, so they are waited for only as long as `isSettled` says; a round of the others may still be under way.
   * Nearly all requests have one attempt, booked with its charge in one row, and need no further look.
   */
  async function settledRequests(charged: readonly string[], asked: readonly string[], nowMs: number): Promise<readonly string[]> {
    const { rows: several } = await sql<{ request_id: string }>`select distinct request_id from ledger_entries where request_id = any(${charged}::text[]) and kind = 'attempt' and (charge_hash is null or attempt > 1)`.execute(db);
    if (several.length === 0) return charged;
    const known = await database.transactPrepared((run) => readRequests(run, several.map((row) => row.request_id)));
    const overdue = new Set(asked);
    return charged.filter((requestId) => {
      const state = known.get(requestId);
      return state === undefined || (overdue.has(requestId) ? isSettled(state, nowMs) : isWhole(state.facts));
    });
  }

  return {
    commit: (ranges, dead, nowMs) => database.transactPrepared((run, conclude) => commitBatch(run, conclude, ranges, dead, periods, nowMs)),
    register: async (writer, provider, lastSeq, nowMs, openSinceMs, owedSeq) => {
      const { rows } = await sql<{ ledger_seq: bigint; report_id: string }>`insert into writers (writer, provider, last_seq, registered_at_ms, reported_at_ms, open_since_ms, owed_seq, seen_at_ms)
        values (${writer}, ${provider}, ${lastSeq}::bigint, ${nowMs}::bigint, ${nowMs}::bigint, ${openSinceMs ?? 0}::bigint, ${owedSeq ?? null}::bigint, ${nowMs}::bigint)
        on conflict (writer) do update set provider = case when excluded.provider = '' then writers.provider else excluded.provider end, last_seq = greatest(writers.last_seq, excluded.last_seq), seen_at_ms = excluded.seen_at_ms, lost_at_ms = 0,
          reported_at_ms = case when ${openSinceMs === undefined} then writers.reported_at_ms else excluded.reported_at_ms end,
          open_since_ms = case when ${openSinceMs === undefined} then writers.open_since_ms else excluded.open_since_ms end,
          owed_seq = excluded.owed_seq
        returning ledger_seq, report_id`.execute(db);
      return { ledgerSeq: rows[0]?.ledger_seq ?? 0n, reportId: rows[0]?.report_id ?? '' };
    },
    deregister: async (writer, lastSeq, reportId) => {
      const { rows } = await sql`update writers set ended_report_id = report_id
        where writer = ${writer} and report_id::text = ${reportId} and last_seq <= ${lastSeq}::bigint and ledger_seq >= ${lastSeq}::bigint and beyond = '{}' and open_since_ms = 0 returning writer`.execute(db);
      return rows.length > 0;
    },
    watermarks: async () => {
      const { rows } = await sql<{ writer: string; provider: string; last_seq: bigint; ledger_seq: bigint; gaps: bigint; seen_at_ms: bigint; lost_at_ms: bigint; is_ended: boolean }>`select writer, provider, last_seq, ledger_seq, seen_at_ms, lost_at_ms,
        (cardinality(beyond) / 2)::bigint as gaps, (ended_report_id = report_id and ledger_seq >= last_seq and beyond = '{}') is true as is_ended from writers order by writer`.execute(db);
      return rows.map((row): WriterMarkRow => ({ writer: row.writer, provider: row.provider, lastSeq: row.last_seq, ledgerSeq: row.ledger_seq, gaps: row.gaps, seenAtMs: Number(row.seen_at_ms), isDeclaredLost: row.lost_at_ms > 0n, isEnded: row.is_ended }));
    },
    declareLost: async (writer, note, nowMs, aliveSinceMs) => {
      // A report from the future, made before the clock was set back, proves nothing.
      const { rows } = await sql<{ is_alive: boolean }>`with found as (select writer, last_seq, ledger_seq, seen_at_ms > ${aliveSinceMs}::bigint and seen_at_ms <= ${2 * nowMs - aliveSinceMs}::bigint as is_alive from writers where writer = ${writer} for update),
          lost as (update writers w set lost_at_ms = ${nowMs}::bigint from found f where w.writer = f.writer and not f.is_alive and w.lost_at_ms = 0 returning w.writer),
          kept as (insert into writer_losses (writer, at_ms, last_seq, ledger_seq, note) select f.writer, ${nowMs}::bigint, f.last_seq, f.ledger_seq, ${note} from found f join lost using (writer))
        select is_alive from found`.execute(db);
      const [found] = rows;
      return found === undefined ? 'unknown' : found.is_alive ? 'alive' : 'lost';
    },
    totals: async (accountId, asked, nowMs) => {
      // Requests first, so that the totals read afterwards include all that are named.
      const requestIds = await settledRequests(await chargedRequests(accountId, asked), asked, nowMs);
      const { rows } = await db.executeQuery<{ seq: bigint; scope: string | null; period_id: string; charge_nano_usd: bigint; tokens: bigint; byok_tokens: bigint }>(CompiledQuery.raw(TOTALS, [accountId, nowMs - RECENT_DAYS_MS, nowMs - RECENT_PERIODS_MS]));
      const totals = rows.flatMap((row) => (row.scope === null ? [] : [{ scope: row.scope, periodId: row.period_id, chargeNanoUsd: row.charge_nano_usd, tokens: row.tokens, byokTokens: row.byok_tokens }]));
      return { accountId, ledgerSeq: rows[0]?.seq ?? 0n, previousSeq: 0n, totals, requestIds };
    },
    ledger: async ({ accountId, fromMs, toMs, after, limit, signal }) => {
      const most = Math.min(Math.max(limit, 1), LEDGER_LIMIT);
      const seqs = await placesFrom(db, { accountId, fromMs, toMs, after, most: most + 1, signal });
      // The row at `after` may contain the charge row that follows it. `prev_hash` is the hash of the preceding row. An attempt is
      // charged if the newest row about its request's charge says so, and never if it used the account's own credential.
      const { rows } = await sql<LedgerRow>`with e as (
          select * from ledger_entries where account_id = ${accountId} and seq = any(${seqs}::bigint[])),
        r as (
          select seq, kind, request_id, attempt, amount_nano_usd, source, flags, provider, period, at_ms, applies_to, tokens, byok_tokens, card_id, hash,
            coalesce((select coalesce(p.charge_hash, p.hash) from ledger_entries p where p.account_id = e.account_id and p.seq < e.seq order by p.seq desc limit 1), ${CHAIN_START}) as prev_hash,
            case when applies_to = 'cost' then false when kind <> 'attempt' then amount_nano_usd <> 0 when (e.detail::jsonb ->> 'byok')::boolean then false else coalesce(
              (select ${isCharged('a')} from ledger_entries a where a.kind = 'adjustment' and a.request_id = e.request_id and a.applies_to = 'charge' order by a.seq desc limit 1),
              (select ${isCharged('c')} from ledger_entries c where c.kind = 'charge' and c.request_id = e.request_id), charge_hash is not null) end as charged
          from e
          union all
          select seq + 1, 'charge', request_id, attempt, amount_nano_usd, source, '{}', provider, period, at_ms, applies_to, tokens, byok_tokens, card_id, charge_hash, hash, amount_nano_usd <> 0 from e where charge_hash is not null)
        select * from r where seq > ${after}::bigint order by seq limit ${most}`.execute(db);
      return rows.map((row): LedgerRowView => ({
        seq: row.seq, kind: row.kind, requestId: row.request_id, attempt: row.attempt, amountNanoUsd: row.amount_nano_usd, source: row.source, charged: row.charged, flags: row.flags,
        provider: row.provider, period: row.period, atMs: row.at_ms, prevHash: row.prev_hash, hash: row.hash, appliesTo: row.applies_to, tokens: row.tokens, byokTokens: row.byok_tokens, cardId: row.card_id,
      }));
    },
  };
}
