/** The books in Postgres: periods, reconciliation, cost corrections, dead events. */
import { assert } from '@signalbox/kernel/assert';
import { feesOfAttempt } from '@signalbox/kernel/card-fees';
import { asNanoUsd } from '@signalbox/kernel/money';
import { closeBlockers } from '@signalbox/ledger-core/close';
import { chainHash } from '@signalbox/ledger-core/hash-chain';
import type { AdjustmentRow, BillingTerms } from '@signalbox/ledger-core/statement';
import type { Database } from '@signalbox/sql/database';
import type { RunPrepared } from '@signalbox/sql/prepared';
import { sql } from 'kysely';
import type { BooksStore, CostChange, ReconcileRow } from '../domain/books.js';
import { dayOf, FURTHER_FLAG } from '../domain/usage.js';
import { differingAccounts } from './account-differences.js';
import { textArray } from './arrays.js';
import { inParts } from './days-at-once.js';
import { nextTurn } from './event-loop.js';
import { createRecounter } from './postgres-recount.js';
import { createRequestReads } from './postgres-requests.js';
import { createVerifier } from './postgres-verify.js';
import { LOCK_HEADS, OWN_PERIODS, SHARE_PERIODS } from './statements.js';
import { termsDigest, termsOf, termsText, type TermsJson } from './written-terms.js';

/** Days before today that are compared with the providers' figures. */
const RECONCILED_DAYS = 35;
/** How long reconciliations are kept: a month. */
const KEPT_MS = 31 * 86_400_000;
const DAY_MS = 86_400_000;
/** Kind of the row that is stored for a reconciliation that found no rows. */
const NO_ROW = 'none';
/** Most lines of a bill that name a request each; one more has the sum of the rest. */
const ADJUSTMENT_LINES_MAX = 10_000;
/** Most accounts reported whose sums differ from their rows. */
const ACCOUNT_ROWS_MAX = 1_000;

interface WriterRow {
  readonly writer: string;
  readonly last_seq: bigint;
  readonly ledger_seq: bigint;
  readonly owed_seq: bigint | null;
  readonly gaps: bigint;
  readonly reported_at_ms: bigint;
  readonly open_since_ms: bigint;
  readonly lost_at_ms: bigint;
}
const WRITERS = 'select writer, last_seq, ledger_seq, owed_seq, (cardinality(beyond) / 2)::bigint as gaps, reported_at_ms, open_since_ms, lost_at_ms from writers order by writer';
/** By the key of each account's totals of months, which are few among those of days and keys. `month:` lies between `month` and `plan` in every collation. */
export const OPEN_PERIODS = `select substr(period_id, 7) as period from account_heads h cross join lateral
    (select period_id from totals t where t.account_id = h.account_id and t.scope = 'account' and t.period_id > 'month' and t.period_id < 'plan' and t.period_id like 'month:%' offset 0) t
  where not exists (select from closed_periods c where c.period = substr(period_id, 7)) group by period_id`;
const DEAD_WAITING = 'select count(*)::bigint as count from dead_events where resolved_at_ms is null';
const reportOf = (row: WriterRow) => ({ writer: row.writer, lastSeq: row.last_seq, ledgerSeq: row.ledger_seq, owedSeq: row.owed_seq ?? undefined, gaps: row.gaps, reportedAtMs: Number(row.reported_at_ms), openSinceMs: Number(row.open_since_ms), isDeclaredLost: row.lost_at_ms > 0n });

/** Accounts whose terms are written by one statement: a piece of some milliseconds, here and there. */
const TERMS_AT_ONCE = 500;

/** Inserts in the order of the accounts, so that replicas cannot deadlock. Terms that exist are kept. Yields between parts, since there may be a great many accounts. */
async function addTerms(run: RunPrepared, period: string, terms: ReadonlyMap<string, BillingTerms>): Promise<void> {
  const known = new Set((await run<{ account_id: string }>({ name: 'billing_known_terms', text: 'select account_id from closed_terms where period = $1' }, [period])).map(({ account_id }) => account_id));
  const missing = [...terms].filter(([accountId]) => !known.has(accountId)).sort(([a], [b]) => (a < b ? -1 : 1));
  for (let first = 0; first < missing.length; first += TERMS_AT_ONCE) {
    await nextTurn();
    const accounts = missing.slice(first, first + TERMS_AT_ONCE);
    await run(
      { name: 'billing_add_terms', text: 'insert into closed_terms (account_id, period, terms, digest) select account_id, $1::text, terms::jsonb, digest from unnest($2::text[], $3::text[], $4::text[]) as n(account_id, terms, digest) order by account_id on conflict do nothing' },
      [period, textArray(accounts.map(([accountId]) => accountId)), textArray(accounts.map(([, each]) => termsText(each))), textArray(accounts.map(([accountId, each]) => termsDigest(accountId, period, each)))],
    );
  }
}

/** `graceMs`: how long after the end of a period a request that was held before it may still be on its way to a writer. */
export function createPostgresBooks(database: Pick<Database<unknown>, 'db' | 'transactPrepared'>, { graceMs }: { readonly graceMs: number }): BooksStore {
  const { db } = database;
  const verifier = createVerifier(database);

  async function providerRows(nowMs: number): Promise<readonly ReconcileRow[]> {
    const parts = inParts(Array.from({ length: RECONCILED_DAYS + 1 }, (_, back) => dayOf(BigInt(nowMs - (RECONCILED_DAYS - back) * DAY_MS))));
    const rows: { readonly day: string; readonly provider: string; readonly ours: bigint; readonly theirs: bigint | null }[] = [];
    for (const [at, [firstDay]] of parts.entries()) {
      // The last part has no end: a clock may be ahead.
      const next = parts[at + 1]?.[0];
      const within = next === undefined ? sql`day >= ${firstDay}` : sql`day >= ${firstDay} and day < ${next}`;
      const part = await sql<(typeof rows)[number]>`select day, provider, coalesce(ours, 0)::bigint as ours, theirs from
        (select day, provider, sum(cost_nano_usd) as ours from attempt_days where ${within} group by day, provider) a
        full join (select day, provider, cost_nano_usd as theirs from provider_usage where ${within}) p using (day, provider) order by day, provider`.execute(db);
      rows.push(...part.rows);
    }
    return rows.map(({ day, provider, ours, theirs }): ReconcileRow => ({
      kind: 'provider', subject: provider, day, oursNanoUsd: ours, theirsNanoUsd: theirs ?? 0n, status: theirs === null ? 'unreported' : ours === theirs ? 'matched' : 'differs', gaps: 0n,
    }));
  }

  /** Accounts whose usage sums differ from the totals that quota uses. */
  const accountRows = async (): Promise<readonly ReconcileRow[]> =>
    (await differingAccounts(database, { most: ACCOUNT_ROWS_MAX })).map(({ accountId, usageNanoUsd, totalNanoUsd }): ReconcileRow => ({ kind: 'account', subject: accountId, day: '', oursNanoUsd: usageNanoUsd, theirsNanoUsd: totalNanoUsd, status: 'differs', gaps: 0n }));

  /** Books a cost correction inside the transaction of `run`; undefined if there is no such attempt. */
  async function adjust(run: RunPrepared, accountId: string, change: CostChange, openPeriod: string, nowMs: number): Promise<{ readonly seq: bigint; readonly amountNanoUsd: bigint } | undefined> {
    await run(SHARE_PERIODS, []);
    const [head] = await run<{ seq: bigint; hash: string }>(LOCK_HEADS, [textArray([accountId])]);
    const [row] = await run<{ amount_nano_usd: bigint; adjusted: bigint; source: string; provider: string; period: string; is_closed: boolean; at_ms: bigint; card_id: string; key_id: string; is_byok: boolean }>(
      {
        name: 'billing_read_cost',
        text: `select amount_nano_usd, source, provider, period, at_ms, card_id, key_id, coalesce((detail::jsonb->>'byok')::boolean, false) as is_byok, exists (select from closed_periods c where c.period = e.period) as is_closed,
          (select coalesce(sum(a.amount_nano_usd), 0)::bigint from ledger_entries a where a.kind = 'adjustment' and a.request_id = e.request_id and a.attempt = e.attempt and a.applies_to = 'cost') as adjusted
          from ledger_entries e where kind = 'attempt' and request_id = $1 and attempt = $2 and account_id = $3`,
      },
      [change.requestId, change.attempt, accountId],
    );
    if (head === undefined || row === undefined) return undefined;
    // The corrected cost comes from the provider, which does not know our fees.
    const { feeNanoUsd } = feesOfAttempt(row.amount_nano_usd, row.card_id);
    const amountNanoUsd = asNanoUsd(change.costNanoUsd + feeNanoUsd - row.amount_nano_usd - row.adjusted);
    if (amountNanoUsd === 0n) return { seq: 0n, amountNanoUsd };
    assert(change.costNanoUsd >= 0n, 'A cost is never below 0.');
    const seq = head.seq + 1n;
    const flags = row.is_closed ? ['late'] : [];
    const period = row.is_closed ? openPeriod : row.period;
    const entry = {
      accountId, seq, kind: 'adjustment', requestId: change.requestId, attempt: change.attempt, amountNanoUsd, tokens: 0n, byokTokens: 0n, source: 'provider', flags, provider: row.provider, period, atMs: BigInt(nowMs),
      appliesTo: 'cost', cardId: row.card_id,
    };
    const hash = chainHash(head.hash, entry);
    const detail = JSON.stringify({ reason: change.reason });
    await run(
      {
        name: 'billing_adjust_cost',
        text: `with row as (insert into ledger_entries (account_id, seq, kind, request_id, attempt, amount_nano_usd, tokens, byok_tokens, source, flags, provider, period, at_ms, applies_to, card_id, key_id, detail, hash)
            values ($1, $2, 'adjustment', $3, $4, $5, 0, 0, 'provider', $6, $7, $8, $9, 'cost', $10, $11, $12, $13)),
          day as (insert into attempt_days as t (account_id, day, provider, attempts, tokens, cost_nano_usd, estimated_nano_usd) select $1, $14, $7, 0, 0, $5, 0 where not $15::boolean
            on conflict (account_id, day, provider) do update set cost_nano_usd = t.cost_nano_usd + excluded.cost_nano_usd)
          update account_heads set seq = $2, hash = $13 where account_id = $1`,
      },
      [accountId, seq, change.requestId, change.attempt, amountNanoUsd, flags, row.provider, period, nowMs, row.card_id, row.key_id, detail, hash, dayOf(row.at_ms), row.is_byok],
    );
    return { seq, amountNanoUsd };
  }

  return {
    ...createRequestReads(database),
    ...verifier,
    ...createRecounter(database, verifier),
    periods: async (accountId) => {
      const { rows } = await sql<{ period: string; charge: bigint; models: bigint; closed_at_ms: bigint | null }>`select period, coalesce(charge, 0)::bigint as charge, coalesce(models, 0)::bigint as models, c.closed_at_ms from
          (select period, sum(charge_nano_usd + adjusted_nano_usd) as charge, sum(charge_nano_usd - fees_nano_usd) as models from usage_days where account_id = ${accountId} group by period) u
          full join (select period from closed_terms where account_id = ${accountId}) t using (period) left join closed_periods c using (period)`.execute(db);
      return rows.map(({ period, charge, models, closed_at_ms }) => ({ period, chargeNanoUsd: charge, modelSpendNanoUsd: models, closedAtMs: Number(closed_at_ms ?? 0) }));
    },
    periodSums: (accountId, period) =>
      db.transaction().setIsolationLevel('repeatable read').execute(async (transaction) => {
        const sums = await sql<{ model: string; provider: string; requests: bigint; tokens: bigint; byok_tokens: bigint; charge: bigint; fees: bigint; adjusted: bigint }>`select model, provider, sum(requests)::bigint as requests, sum(tokens)::bigint as tokens,
          sum(byok_tokens)::bigint as byok_tokens, sum(charge_nano_usd)::bigint as charge, sum(fees_nano_usd)::bigint as fees, sum(adjusted_nano_usd)::bigint as adjusted from usage_days where account_id = ${accountId} and period = ${period} group by model, provider`.execute(transaction);
        const adjustments = await sql<{ request_id: string; amount_nano_usd: bigint; late_period: string | null }>`select e.request_id, e.amount_nano_usd,
          case when e.flags @> '{late}' then (select c.period from ledger_entries c where (c.kind = 'charge' or c.charge_hash is not null) and c.request_id = e.request_id) end as late_period
          from ledger_entries e where e.account_id = ${accountId} and e.kind = 'adjustment' and e.period = ${period} and e.applies_to = 'charge' and not e.flags @> ${`{${FURTHER_FLAG}}`}::text[] order by e.seq limit ${ADJUSTMENT_LINES_MAX}`.execute(transaction);
        const charges = await sql<{ period: string; charge: bigint; terms: TermsJson | null }>`select u.period, charge, t.terms from
          (select period, sum(charge_nano_usd + adjusted_nano_usd)::bigint as charge from usage_days where account_id = ${accountId} group by period) u left join closed_terms t on t.account_id = ${accountId} and t.period = u.period`.execute(transaction);
        const closed = await sql<{ closed_at_ms: bigint }>`select closed_at_ms from closed_periods where period = ${period}`.execute(transaction);
        const terms = await sql<{ terms: TermsJson }>`select terms from closed_terms where account_id = ${accountId} and period = ${period}`.execute(transaction);
        const lines: AdjustmentRow[] = adjustments.rows.map((row) => ({ requestId: row.request_id, amountNanoUsd: row.amount_nano_usd, latePeriod: row.late_period ?? '' }));
        const further = sums.rows.reduce((sum, { adjusted }) => sum + adjusted, 0n) - lines.reduce((sum, { amountNanoUsd }) => sum + amountNanoUsd, 0n);
        if (further !== 0n) lines.push({ requestId: '', amountNanoUsd: further, latePeriod: '' });
        return {
          sums: sums.rows.map((row) => ({ model: row.model, provider: row.provider, requests: row.requests, tokens: row.tokens, byokTokens: row.byok_tokens, chargeNanoUsd: row.charge, feesNanoUsd: row.fees })),
          adjustments: lines,
          charges: charges.rows.map((row) => ({ period: row.period, chargeNanoUsd: row.charge, terms: row.terms === null ? undefined : termsOf(row.terms) })),
          closedAtMs: Number(closed.rows[0]?.closed_at_ms ?? 0),
          terms: terms.rows[0] === undefined ? undefined : termsOf(terms.rows[0].terms),
        };
      }),
    openPeriods: async () => {
      const { rows } = await sql.raw<{ period: string }>(OPEN_PERIODS).execute(db);
      const until = await sql<{ end_ms: bigint | null }>`select max(end_ms) as end_ms from closed_periods`.execute(db);
      return { periods: rows.map(({ period }) => period), closedUntilMs: Number(until.rows[0]?.end_ms ?? 0) };
    },
    chargedIn: async (period, accountIds) =>
      (await sql<{ account_id: string }>`select account_id from totals where account_id = any(${accountIds}::text[]) and scope = 'account' and period_id = ${`month:${period}`}`.execute(db)).rows.map(({ account_id }) => account_id),
    writeTerms: (period, terms) =>
      database.transactPrepared(async (run) => {
        await run(SHARE_PERIODS, []);
        const [known] = await run<{ is_known: boolean }>({ name: 'billing_has_terms', text: 'select exists (select from closed_periods where period = $1) or exists (select from closed_terms where period = $1) as is_known' }, [period]);
        if (known?.is_known === false && terms.size > 0) await addTerms(run, period, terms);
      }),
    writerReports: async () => (await sql.raw<WriterRow>(WRITERS).execute(db)).rows.map(reportOf),
    deadWaiting: async () => Number((await sql.raw<{ count: bigint }>(DEAD_WAITING).execute(db)).rows[0]?.count ?? 0),
    close: ({ id, startMs, endMs }, terms, nowMs) =>
      database.transactPrepared(async (run) => {
        await run(OWN_PERIODS, []);
        const writers = await run<WriterRow>({ name: 'billing_writer_reports', text: WRITERS }, []);
        const [dead] = await run<{ count: bigint }>({ name: 'billing_dead_waiting', text: DEAD_WAITING }, []);
        const blockers = closeBlockers({ boundaryMs: endMs, nowMs, graceMs, writers: writers.map(reportOf), deadEvents: Number(dead?.count ?? 0) });
        if (blockers.length > 0) return blockers;
        const made = await run({ name: 'billing_close', text: 'insert into closed_periods (period, start_ms, end_ms, closed_at_ms) values ($1, $2::bigint, $3::bigint, $4::bigint) on conflict do nothing returning id' }, [id, startMs, endMs, nowMs]);
        if (made.length === 0) return 'was_closed';
        await addTerms(run, id, terms);
        return 'closed';
      }),
    reconcile: async (nowMs) => {
      const writers = (await sql.raw<WriterRow>(WRITERS).execute(db)).rows.map(reportOf).filter(({ gaps, lastSeq, ledgerSeq, isDeclaredLost }) => !isDeclaredLost && (gaps > 0n || ledgerSeq < lastSeq));
      const dead = (await sql.raw<{ count: bigint }>(DEAD_WAITING).execute(db)).rows[0]?.count ?? 0n;
      const nothing = { day: '', oursNanoUsd: 0n, theirsNanoUsd: 0n, status: 'unbooked' } as const;
      const rows: ReconcileRow[] = [
        ...(await providerRows(nowMs)),
        ...(await accountRows()),
        ...writers.map(({ writer, lastSeq, ledgerSeq }): ReconcileRow => ({ ...nothing, kind: 'writer', subject: writer, gaps: lastSeq - ledgerSeq })),
        ...(dead === 0n ? [] : [{ ...nothing, kind: 'dead_events' as const, subject: '', gaps: dead }]),
      ];
      await sql`delete from reconciliations where at_ms < ${nowMs - KEPT_MS}::bigint`.execute(db);
      // A reconciliation that found nothing is stored too, so that it counts as the latest.
      const kept = rows.length > 0 ? rows : [{ ...nothing, kind: NO_ROW, subject: '', status: 'matched', gaps: 0n }];
      const values = kept.map((row) => sql`(${nowMs}::bigint, ${row.kind}, ${row.subject}, ${row.day}, ${row.oursNanoUsd}::bigint, ${row.theirsNanoUsd}::bigint, ${row.status}, ${row.gaps}::bigint)`);
      await sql`insert into reconciliations (at_ms, kind, subject, day, ours_nano_usd, theirs_nano_usd, status, gaps) values ${sql.join(values)} on conflict do nothing`.execute(db);
      return rows;
    },
    lastReconciled: async () => {
      const { rows } = await sql<{ kind: ReconcileRow['kind']; subject: string; day: string; ours: bigint; theirs: bigint; status: ReconcileRow['status']; gaps: bigint }>`select kind, subject, day, ours_nano_usd as ours, theirs_nano_usd as theirs, status, gaps
        from reconciliations where at_ms = (select max(at_ms) from reconciliations) and kind <> ${NO_ROW}`.execute(db);
      return rows.map(({ ours, theirs, ...row }): ReconcileRow => ({ ...row, oursNanoUsd: ours, theirsNanoUsd: theirs }));
    },
    importProviderUsage: async (provider, days, nowMs) => {
      if (days.length === 0) return;
      const values = days.map(({ day, costNanoUsd, tokens }) => sql`(${provider}, ${day}, ${costNanoUsd}::bigint, ${tokens}::bigint, ${nowMs}::bigint)`);
      await sql`insert into provider_usage (provider, day, cost_nano_usd, tokens, told_at_ms) values ${sql.join(values)}
        on conflict (provider, day) do update set cost_nano_usd = excluded.cost_nano_usd, tokens = excluded.tokens, told_at_ms = excluded.told_at_ms`.execute(db);
    },
    adjustCost: async (change, openPeriod, nowMs) => {
      const { rows } = await sql<{ account_id: string }>`select account_id from ledger_entries where kind = 'attempt' and request_id = ${change.requestId} and attempt = ${change.attempt}`.execute(db);
      const [found] = rows;
      return found === undefined ? undefined : database.transactPrepared((run) => adjust(run, found.account_id, change, openPeriod, nowMs));
    },
    deadEvents: async (after, limit) => {
      const { rows } = await sql<{ id: bigint; subject: string; reason: string; writer: string; at_ms: bigint; bytes: number; is_resolved: boolean }>`select id, subject, reason, writer, at_ms, length(payload) as bytes, resolved_at_ms is not null as is_resolved
        from dead_events where id > ${after}::bigint order by id limit ${limit}`.execute(db);
      return rows.map((row) => ({ id: row.id, subject: row.subject, reason: row.reason, writer: row.writer, atMs: Number(row.at_ms), payloadBytes: row.bytes, resolved: row.is_resolved }));
    },
    nextUnread: async (after) => {
      const { rows } = await sql<{ id: bigint; subject: string; payload: Buffer }>`select id, subject, payload from dead_events
        where reason = 'undecodable' and resolved_at_ms is null and id > ${after}::bigint order by id limit 1`.execute(db);
      return rows[0];
    },
    resolveDeadEvent: async (id, note, nowMs) => {
      const { rows } = await sql`update dead_events set resolved_at_ms = coalesce(resolved_at_ms, ${nowMs}::bigint), note = ${note} where id = ${id}::bigint returning id`.execute(db);
      return rows.length > 0;
    },
  };
}
