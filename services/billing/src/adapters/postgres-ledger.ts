/** The ledger in Postgres: one transaction a batch, a dozen statements whatever its size. */
import { createHash } from 'node:crypto';
import { asNanoUsd } from '@signalbox/kernel/money';
import type { RequestFacts } from '@signalbox/ledger-core/fold';
import type { ChargePeriods } from '@signalbox/ledger-core/totals';
import { sql, type Kysely, type Transaction } from 'kysely';
import { book, type AccountHead, type RequestState } from '../domain/booking.js';
import type { CheckedRange, CommittedBatch, DeadEvent, LedgerRowView, LedgerStore, ScopeTotals, WriterMarkRow } from '../domain/ports.js';
import { mergeRanges, type SeqRange } from '../domain/ranges.js';

type Db = Kysely<unknown>;
type Tx = Transaction<unknown>;

/** Requests named in a rebuild: more than can be on their way to the ledger at once. */
const RECENT_REQUESTS = 2_000;
/** 70 days: the longest period with an end (a month) and its predecessor. */
const RECENT_PERIODS_MS = 70 * 86_400_000;
const LEDGER_LIMIT = 1_000;

const json = (value: unknown): string => JSON.stringify(value, (_key, part: unknown) => (typeof part === 'bigint' ? part.toString() : part));

function unique(values: Iterable<string>): string[] {
  return [...new Set(values)].sort();
}

interface StoredFacts {
  readonly attempts: readonly { readonly attempt: number; readonly retryOf: readonly number[]; readonly costNanoUsd: string; readonly tokens: number; readonly byok: boolean }[];
  readonly outcomes: RequestFacts['outcomes'];
}

async function advanceWriters(tx: Tx, ranges: readonly CheckedRange[], nowMs: number): Promise<void> {
  const writers = unique(ranges.map((each) => each.writer));
  if (writers.length === 0) return;
  await sql`insert into writers (writer, registered_at_ms) select writer, ${nowMs}::bigint from unnest(${writers}::text[]) as t(writer) on conflict do nothing`.execute(tx);
  const known = await sql<{ writer: string; ledger_seq: bigint }>`select writer, ledger_seq from writers where writer = any(${writers}::text[]) order by writer for update`.execute(tx);
  const pending = await sql<{ writer: string; first_seq: bigint; last_seq: bigint }>`select writer, first_seq, last_seq from writer_ranges where writer = any(${writers}::text[])`.execute(tx);
  const beyond: { writer: string; first_seq: bigint; last_seq: bigint }[] = [];
  const marks = known.rows.map(({ writer, ledger_seq }) => {
    const before: SeqRange[] = pending.rows.filter((row) => row.writer === writer).map((row) => ({ first: row.first_seq, last: row.last_seq }));
    const next = mergeRanges({ watermark: ledger_seq, beyond: before }, ranges.filter((each) => each.writer === writer).map((each) => each.range));
    for (const range of next.beyond) beyond.push({ writer, first_seq: range.first, last_seq: range.last });
    return { writer, ledger_seq: next.watermark };
  });
  await sql`update writers set ledger_seq = n.ledger_seq, last_seq = greatest(last_seq, n.ledger_seq)
    from jsonb_to_recordset(${json(marks)}::jsonb) as n(writer text, ledger_seq bigint) where writers.writer = n.writer`.execute(tx);
  if (pending.rows.length > 0) await sql`delete from writer_ranges where writer = any(${writers}::text[])`.execute(tx);
  if (beyond.length > 0) {
    await sql`insert into writer_ranges select writer, first_seq, last_seq from jsonb_to_recordset(${json(beyond)}::jsonb) as n(writer text, first_seq bigint, last_seq bigint)`.execute(tx);
  }
}

/** Locks the accounts, in order, so that replicas never wait for each other in a circle. */
async function lockHeads(tx: Tx, accountIds: readonly string[], emptyHash: string): Promise<Map<string, AccountHead>> {
  await sql`insert into account_heads (account_id, hash) select id, ${emptyHash} from unnest(${accountIds}::text[]) as t(id) order by id on conflict do nothing`.execute(tx);
  const { rows } = await sql<{ account_id: string; seq: bigint; hash: string }>`select account_id, seq, hash from account_heads where account_id = any(${accountIds}::text[]) order by account_id for update`.execute(tx);
  return new Map(rows.map((row) => [row.account_id, { seq: row.seq, hash: row.hash }]));
}

async function readRequests(tx: Tx, requestIds: readonly string[]): Promise<Map<string, RequestState>> {
  const { rows } = await sql<{
    request_id: string; account_id: string; key_id: string; facts: StoredFacts; periods: ChargePeriods; sources: RequestState['sources'];
    charged_attempts: number[]; booked_nano_usd: bigint | null; booked_tokens: bigint | null; booked_byok_tokens: bigint | null;
  }>`select request_id, account_id, key_id, facts, periods, sources, charged_attempts, booked_nano_usd, booked_tokens, booked_byok_tokens
    from requests where request_id = any(${requestIds}::text[])`.execute(tx);
  return new Map(
    rows.map((row) => [
      row.request_id,
      {
        requestId: row.request_id,
        accountId: row.account_id,
        keyId: row.key_id,
        facts: { attempts: row.facts.attempts.map((attempt) => ({ ...attempt, costNanoUsd: asNanoUsd(attempt.costNanoUsd) })), outcomes: row.facts.outcomes },
        booked: row.booked_nano_usd === null ? undefined : { chargeNanoUsd: asNanoUsd(row.booked_nano_usd), tokens: Number(row.booked_tokens ?? 0n), byokTokens: Number(row.booked_byok_tokens ?? 0n) },
        chargedAttempts: row.charged_attempts,
        periods: row.periods,
        sources: row.sources,
      },
    ]),
  );
}

async function writeBooking(tx: Tx, booking: ReturnType<typeof book>, nowMs: number): Promise<readonly (ScopeTotals & { accountId: string })[]> {
  const rows = booking.rows.map((row) => ({
    account_id: row.accountId, seq: row.seq, kind: row.kind, request_id: row.requestId, attempt: row.attempt, amount_nano_usd: row.amountNanoUsd, tokens: row.tokens,
    byok_tokens: row.byokTokens, source: row.source, flags: row.flags, provider: row.provider, period: row.period, at_ms: row.atMs, applies_to: row.appliesTo,
    card_id: row.cardId, key_id: row.keyId, detail: row.detail, prev_hash: row.prevHash, hash: row.hash,
  }));
  if (rows.length > 0) {
    await sql`with n as (select * from jsonb_to_recordset(${json(rows)}::jsonb) as r(
        account_id text, seq bigint, kind text, request_id text, attempt integer, amount_nano_usd bigint, tokens bigint, byok_tokens bigint, source text,
        flags text[], provider text, period text, at_ms bigint, applies_to text, card_id text, key_id text, detail jsonb, prev_hash text, hash text)),
      a as (insert into attempt_keys select request_id, attempt from n where kind = 'attempt'),
      c as (insert into charge_keys select request_id from n where kind = 'charge')
      insert into ledger_entries (account_id, seq, kind, request_id, attempt, amount_nano_usd, tokens, byok_tokens, source, flags, provider, period, at_ms, applies_to, card_id, key_id, detail, prev_hash, hash)
      select account_id, seq, kind, request_id, attempt, amount_nano_usd, tokens, byok_tokens, source, flags, provider, period, at_ms, applies_to, card_id, key_id, detail, prev_hash, hash from n`.execute(tx);
  }
  if (booking.requests.length > 0) {
    const states = booking.requests.map((state) => ({
      request_id: state.requestId, account_id: state.accountId, key_id: state.keyId, facts: state.facts, periods: state.periods, sources: state.sources, charged_attempts: state.chargedAttempts,
      booked_nano_usd: state.booked?.chargeNanoUsd ?? null, booked_tokens: state.booked?.tokens ?? null, booked_byok_tokens: state.booked?.byokTokens ?? null,
    }));
    await sql`insert into requests (request_id, account_id, key_id, facts, periods, sources, charged_attempts, booked_nano_usd, booked_tokens, booked_byok_tokens, updated_at_ms)
      select n.*, ${nowMs}::bigint from jsonb_to_recordset(${json(states)}::jsonb) as n(request_id text, account_id text, key_id text, facts jsonb, periods jsonb, sources jsonb,
        charged_attempts integer[], booked_nano_usd bigint, booked_tokens bigint, booked_byok_tokens bigint)
      on conflict (request_id) do update set key_id = excluded.key_id, facts = excluded.facts, periods = excluded.periods, sources = excluded.sources, charged_attempts = excluded.charged_attempts,
        booked_nano_usd = excluded.booked_nano_usd, booked_tokens = excluded.booked_tokens, booked_byok_tokens = excluded.booked_byok_tokens, updated_at_ms = excluded.updated_at_ms`.execute(tx);
  }
  const heads = booking.accounts.map(({ accountId, head }) => ({ account_id: accountId, seq: head.seq, hash: head.hash }));
  if (heads.length > 0) {
    await sql`update account_heads set seq = n.seq, hash = n.hash from jsonb_to_recordset(${json(heads)}::jsonb) as n(account_id text, seq bigint, hash text) where account_heads.account_id = n.account_id`.execute(tx);
  }
  const deltas = booking.accounts.flatMap(({ accountId, deltas: each }) =>
    each.map((delta) => ({ account_id: accountId, scope: delta.scope, period_id: delta.periodId, charge_nano_usd: delta.chargeNanoUsd, tokens: delta.tokens, byok_tokens: delta.byokTokens })),
  );
  if (deltas.length === 0) return [];
  const sums = await sql<{ account_id: string; scope: string; period_id: string; charge_nano_usd: bigint; tokens: bigint; byok_tokens: bigint }>`insert into totals
      (account_id, scope, period_id, charge_nano_usd, tokens, byok_tokens, updated_at_ms)
    select n.*, ${nowMs}::bigint from jsonb_to_recordset(${json(deltas)}::jsonb) as n(account_id text, scope text, period_id text, charge_nano_usd bigint, tokens bigint, byok_tokens bigint)
    on conflict (account_id, scope, period_id) do update set charge_nano_usd = totals.charge_nano_usd + excluded.charge_nano_usd, tokens = totals.tokens + excluded.tokens,
      byok_tokens = totals.byok_tokens + excluded.byok_tokens, updated_at_ms = excluded.updated_at_ms
    returning account_id, scope, period_id, charge_nano_usd, tokens, byok_tokens`.execute(tx);
  return sums.rows.map((row) => ({ accountId: row.account_id, scope: row.scope, periodId: row.period_id, chargeNanoUsd: row.charge_nano_usd, tokens: row.tokens, byokTokens: row.byok_tokens }));
}

async function writeDead(tx: Tx, dead: readonly DeadEvent[], nowMs: number): Promise<void> {
  if (dead.length === 0) return;
  const rows = dead.map((event) => ({ digest: createHash('sha256').update(event.reason).update(event.payload).digest('hex'), subject: event.subject, reason: event.reason, writer: event.writer, payload: `\\x${Buffer.from(event.payload).toString('hex')}` }));
  await sql`insert into dead_events (digest, subject, reason, writer, payload, at_ms)
    select n.*, ${nowMs}::bigint from jsonb_to_recordset(${json(rows)}::jsonb) as n(digest text, subject text, reason text, writer text, payload bytea) on conflict do nothing`.execute(tx);
}

/** The ledger over a database whose search path starts with the schema `billing`. */
export function createPostgresLedger(db: Db): LedgerStore {
  return {
    commit: (ranges, dead, nowMs) =>
      db.transaction().execute(async (tx): Promise<CommittedBatch> => {
        await advanceWriters(tx, ranges, nowMs);
        const attempts = ranges.flatMap((each) => each.attempts);
        const outcomes = ranges.flatMap((each) => each.outcomes);
        const facts = [...attempts, ...outcomes];
        const rows = { attempt: 0, charge: 0, adjustment: 0 };
        if (facts.length === 0) {
          await writeDead(tx, dead, nowMs);
          return { accounts: [], rows, refused: 0 };
        }
        const heads = await lockHeads(tx, unique(facts.map((fact) => fact.accountId)), '0'.repeat(64));
        const requests = await readRequests(tx, unique(facts.map((fact) => fact.requestId)));
        const booking = book({ attempts, outcomes, requests, heads, nowMs });
        const sums = await writeBooking(tx, booking, nowMs);
        const refused: DeadEvent[] = booking.refused.map((fact) => ({ subject: '', reason: 'account_mismatch', writer: '', payload: Buffer.from(json(fact)) }));
        await writeDead(tx, [...dead, ...refused], nowMs);
        for (const row of booking.rows) if (row.kind === 'attempt' || row.kind === 'charge' || row.kind === 'adjustment') rows[row.kind] += 1;
        const accounts = booking.accounts
          .filter((account) => account.chargedRequestIds.length > 0)
          .map(({ accountId, head, chargedRequestIds }) => ({ accountId, ledgerSeq: head.seq, totals: sums.filter((sum) => sum.accountId === accountId), requestIds: chargedRequestIds }));
        return { accounts, rows, refused: refused.length };
      }),
    register: async (writer, provider, lastSeq, nowMs) => {
      const { rows } = await sql<{ ledger_seq: bigint }>`insert into writers (writer, provider, last_seq, registered_at_ms) values (${writer}, ${provider}, ${lastSeq}::bigint, ${nowMs}::bigint)
        on conflict (writer) do update set provider = case when excluded.provider = '' then writers.provider else excluded.provider end, last_seq = greatest(writers.last_seq, excluded.last_seq)
        returning ledger_seq`.execute(db);
      return rows[0]?.ledger_seq ?? 0n;
    },
    watermarks: async () => {
      const { rows } = await sql<{ writer: string; provider: string; last_seq: bigint; ledger_seq: bigint; gaps: bigint }>`select writer, provider, last_seq, ledger_seq,
        (select count(*) from writer_ranges r where r.writer = w.writer) as gaps from writers w order by writer`.execute(db);
      return rows.map((row): WriterMarkRow => ({ writer: row.writer, provider: row.provider, lastSeq: row.last_seq, ledgerSeq: row.ledger_seq, gaps: row.gaps }));
    },
    totals: async (accountId, nowMs) => {
      // Requests first: what is named here is in the totals that are read after it.
      const recent = await sql<{ request_id: string }>`select request_id from (select seq, kind, request_id from ledger_entries where account_id = ${accountId} order by seq desc limit ${RECENT_REQUESTS * 2}) r
        where kind = 'charge' limit ${RECENT_REQUESTS}`.execute(db);
      const { rows } = await sql<{ seq: bigint; scope: string | null; period_id: string; charge_nano_usd: bigint; tokens: bigint; byok_tokens: bigint }>`select h.seq, t.scope, t.period_id, t.charge_nano_usd, t.tokens, t.byok_tokens
        from account_heads h left join totals t on t.account_id = h.account_id and (t.period_id = 'total' or t.updated_at_ms > ${nowMs - RECENT_PERIODS_MS}::bigint) where h.account_id = ${accountId}`.execute(db);
      const totals = rows.flatMap((row) => (row.scope === null ? [] : [{ scope: row.scope, periodId: row.period_id, chargeNanoUsd: row.charge_nano_usd, tokens: row.tokens, byokTokens: row.byok_tokens }]));
      return { accountId, ledgerSeq: rows[0]?.seq ?? 0n, totals, requestIds: recent.rows.map((row) => row.request_id) };
    },
    ledger: async ({ accountId, fromMs, toMs, after, limit }) => {
      const { rows } = await sql<{
        seq: bigint; kind: string; request_id: string; attempt: number; amount_nano_usd: bigint; source: string; charged: boolean; flags: string[]; provider: string; period: string; at_ms: bigint; prev_hash: string; hash: string; applies_to: string;
      }>`select e.seq, e.kind, e.request_id, e.attempt, e.amount_nano_usd, e.source, e.flags, e.provider, e.period, e.at_ms, e.prev_hash, e.hash, e.applies_to,
        case when e.kind = 'attempt' then coalesce(e.attempt = any(r.charged_attempts), false) else e.amount_nano_usd <> 0 end as charged
        from ledger_entries e left join requests r on r.request_id = e.request_id
        where e.account_id = ${accountId} and e.seq > ${after}::bigint and e.at_ms >= ${fromMs}::bigint and (${toMs}::bigint = 0 or e.at_ms < ${toMs}::bigint)
        order by e.seq limit ${Math.min(Math.max(limit, 1), LEDGER_LIMIT)}`.execute(db);
      return rows.map((row): LedgerRowView => ({
        seq: row.seq, kind: row.kind, requestId: row.request_id, attempt: row.attempt, amountNanoUsd: row.amount_nano_usd, source: row.source, charged: row.charged, flags: row.flags,
        provider: row.provider, period: row.period, atMs: row.at_ms, prevHash: row.prev_hash, hash: row.hash, appliesTo: row.applies_to,
      }));
    },
  };
}
