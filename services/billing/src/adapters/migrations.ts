/** The schema `billing`. Rows of `ledger_entries` are never changed: a trigger refuses, whoever asks. */
import type { Migration } from '@signalbox/sql/migrate';
import type { SchemaPlan } from '@signalbox/sql/schema-job';
import { sql } from 'kysely';

const LEDGER = [
  `create table writers (
    writer text primary key, provider text not null default '', last_seq bigint not null default 0,
    ledger_seq bigint not null default 0, registered_at_ms bigint not null default 0)`,
  `create table writer_ranges (writer text not null references writers, first_seq bigint not null, last_seq bigint not null, primary key (writer, first_seq))`,
  `create table account_heads (account_id text primary key, seq bigint not null default 0, hash text not null)`,
  // Partitions by period come when retention asks for them: until then one table, whose key holds nothing but account and sequence.
  `create table ledger_entries (
    account_id text not null, seq bigint not null, kind text not null check (kind in ('attempt', 'charge', 'adjustment')),
    request_id text not null, attempt integer not null, amount_nano_usd bigint not null, tokens bigint not null, byok_tokens bigint not null,
    source text not null, flags text[] not null, provider text not null, period text not null, at_ms bigint not null, applies_to text not null,
    card_id text not null, key_id text not null, detail jsonb not null, prev_hash text not null, hash text not null,
    primary key (account_id, seq))`,
  `create index ledger_entries_request on ledger_entries (request_id)`,
  `create table attempt_keys (request_id text not null, attempt integer not null, primary key (request_id, attempt))`,
  `create table charge_keys (request_id text primary key)`,
  `create table requests (
    request_id text primary key, account_id text not null, key_id text not null, facts jsonb not null, periods jsonb not null, sources jsonb not null,
    charged_attempts integer[] not null, booked_nano_usd bigint, booked_tokens bigint, booked_byok_tokens bigint, updated_at_ms bigint not null)`,
  `create table totals (
    account_id text not null, scope text not null, period_id text not null, charge_nano_usd bigint not null, tokens bigint not null,
    byok_tokens bigint not null, updated_at_ms bigint not null, primary key (account_id, scope, period_id))`,
  `create table dead_events (
    id bigint generated always as identity primary key, digest text not null unique, subject text not null, reason text not null,
    writer text not null, payload bytea not null, at_ms bigint not null)`,
  `create function refuse_change() returns trigger language plpgsql as $$ begin raise exception 'The ledger is append-only.'; end $$`,
  `create trigger ledger_entries_append_only before update or delete on ledger_entries for each row execute function refuse_change()`,
  `create trigger ledger_entries_no_truncate before truncate on ledger_entries for each statement execute function refuse_change()`,
];

/**
 * The rows become the only state of a request: what `requests` remembered moves into the details of its rows (which no
 * hash covers), outcomes that no row tells into a table of their own. A row of the table whose `charge_hash` is set
 * stands for two of the ledger: the attempt, and at the next sequence its charge (see packed-rows.ts). Uniqueness moves
 * from key tables into indexes of the ledger itself; with partitions by period it would need key tables again.
 */
const ROWS_ARE_THE_STATE = [
  `alter table ledger_entries rename to old_entries`,
  `create table ledger_entries (
    seq bigint not null, at_ms bigint not null, amount_nano_usd bigint not null, tokens bigint not null, byok_tokens bigint not null, attempt integer not null,
    account_id text not null, kind text not null check (kind in ('attempt', 'charge', 'adjustment')), request_id text not null,
    source text not null, provider text not null, period text not null, card_id text not null, key_id text not null, applies_to text not null,
    flags text[] not null, detail text not null, hash text not null, charge_hash text check (charge_hash is null or kind = 'attempt'))`,
  `insert into ledger_entries (seq, at_ms, amount_nano_usd, tokens, byok_tokens, attempt, account_id, kind, request_id, source, provider, period, card_id, key_id, applies_to, flags, detail, hash)
    select e.seq, e.at_ms, e.amount_nano_usd, e.tokens, e.byok_tokens, e.attempt, e.account_id, e.kind, e.request_id, e.source, e.provider, e.period, e.card_id, e.key_id, e.applies_to, e.flags,
      (case when e.kind = 'attempt' then e.detail || jsonb_build_object('day', r.periods->'day', 'week', r.periods->'week', 'plan', r.periods->'plan', 'byok', a.fact->'byok', 'retry_of', a.fact->'retryOf')
        else jsonb_build_object('charged', to_jsonb(r.charged_attempts), 'outcomes',
          (select coalesce(jsonb_agg(jsonb_build_array(o->'attempt', o->'outcome', o->'toldByEdge')), '[]') from jsonb_array_elements(r.facts->'outcomes') o)) end)::text, e.hash
    from old_entries e join requests r using (request_id)
      left join lateral (select fact from jsonb_array_elements(r.facts->'attempts') fact where e.kind = 'attempt' and (fact->>'attempt')::integer = e.attempt) a on true
    order by e.account_id, e.seq`,
  `alter table ledger_entries add primary key (account_id, seq)`,
  `create unique index ledger_one_row_an_attempt on ledger_entries (request_id, attempt) where kind = 'attempt'`,
  `create unique index ledger_one_charge_a_request on ledger_entries (request_id) where kind = 'charge' or charge_hash is not null`,
  `create index ledger_adjustments on ledger_entries (request_id) where kind = 'adjustment'`,
  `create table outcomes (
    request_id text not null, attempt integer not null, outcome text not null, told_by_edge boolean not null, account_id text not null,
    primary key (request_id, attempt, outcome, told_by_edge))`,
  `insert into outcomes (request_id, attempt, outcome, told_by_edge, account_id)
    select r.request_id, (o->>'attempt')::integer, o->>'outcome', (o->>'toldByEdge')::boolean, r.account_id from requests r, jsonb_array_elements(r.facts->'outcomes') o where r.booked_nano_usd is null`,
  // The ledger row by row, for people and checks.
  `create view ledger_rows as
    select account_id, seq, kind, request_id, attempt, amount_nano_usd, tokens, byok_tokens, source, flags, provider, period, at_ms, applies_to, card_id, key_id, detail, hash from ledger_entries
    union all
    select account_id, seq + 1, 'charge', request_id, attempt, amount_nano_usd, tokens, byok_tokens, source, '{}', provider, period, at_ms, applies_to, card_id, key_id,
      format('{"charged":[%1$s],"outcomes":[[%1$s,"DELIVERED",true]]}', attempt), charge_hash from ledger_entries where charge_hash is not null`,
  `drop table old_entries, requests, attempt_keys, charge_keys`,
  `create trigger ledger_entries_append_only before update or delete on ledger_entries for each row execute function refuse_change()`,
  `create trigger ledger_entries_no_truncate before truncate on ledger_entries for each statement execute function refuse_change()`,
  `alter table writers add column beyond bigint[] not null default '{}'`,
  `update writers w set beyond = coalesce((select array_agg(edge order by first_seq, edge) from writer_ranges r, unnest(array[r.first_seq, r.last_seq]) edge where r.writer = w.writer), '{}')`,
  `drop table writer_ranges`,
  `alter table account_heads add column totals_seq bigint not null default 0`,
  `update account_heads set totals_seq = seq`,
  // A few rows that change with every batch: room on their page keeps their new versions there.
  `alter table writers set (fillfactor = 50)`,
  `alter table account_heads set (fillfactor = 50)`,
  `alter table totals set (fillfactor = 50)`,
];

/**
 * Rows that never change leave nothing to vacuum, and a batch is found by its keys, whatever the statistics say: without
 * this, reading the table again each minute costs Postgres more than some of the booking.
 */
const QUIET_VACUUM = [
  `alter table ledger_entries set (autovacuum_vacuum_insert_threshold = -1)`,
  ...['at_ms', 'amount_nano_usd', 'tokens', 'byok_tokens', 'attempt', 'source', 'provider', 'period', 'card_id', 'key_id', 'applies_to', 'flags', 'detail', 'hash', 'charge_hash'].map(
    (column) => `alter table ledger_entries alter column ${column} set statistics 0`,
  ),
  ...['account_id', 'kind', 'request_id', 'seq'].map((column) => `alter table ledger_entries alter column ${column} set statistics 10`),
];

/** Tokens of one side of a row's detail. */
const tokensOf = (buckets: readonly string[]): string => buckets.map((bucket) => `coalesce((d->'tokens'->>'${bucket}')::bigint, 0)`).join(' + ');

/**
 * Sums for reports, kept with the rows they sum; periods that are closed with the terms that held; what providers say;
 * how far writers are by their own account. The time index is what lists of requests are read by.
 */
const BOOKS = [
  `create table usage_days (
    account_id text not null, day text not null, period text not null, provider text not null, key_id text not null, model text not null,
    requests bigint not null, tokens bigint not null, byok_tokens bigint not null, prompt_tokens bigint not null, completion_tokens bigint not null,
    cost_nano_usd bigint not null, charge_nano_usd bigint not null, adjusted_nano_usd bigint not null, savings_nano_usd bigint not null,
    primary key (account_id, day, period, provider, key_id, model)) with (fillfactor = 50)`,
  // Adjustments booked before this are attributed to the day's model without tokens of its own: their sums of money are exact.
  `insert into usage_days
    select r.account_id, to_char(to_timestamp(r.at_ms / 1000) at time zone 'utc', 'YYYY-MM-DD'), r.period, r.provider, r.key_id, coalesce(d->>'model', ''),
      count(*) filter (where r.kind = 'charge'), sum(r.tokens), sum(r.byok_tokens),
      coalesce(sum(${tokensOf(['inputUncached', 'cacheRead', 'cacheWrite', 'audio', 'image'])}) filter (where r.kind = 'charge' and c.charged), 0),
      coalesce(sum(${tokensOf(['outputText', 'outputReasoning'])}) filter (where r.kind = 'charge' and c.charged), 0),
      coalesce(sum(a.amount_nano_usd) filter (where r.kind = 'charge' and c.charged), 0), coalesce(sum(r.amount_nano_usd) filter (where r.kind = 'charge'), 0),
      coalesce(sum(r.amount_nano_usd) filter (where r.kind = 'adjustment'), 0), coalesce(sum(coalesce((d->>'savings')::bigint, 0)) filter (where r.kind = 'charge' and c.charged), 0)
    from ledger_rows r left join ledger_entries a on a.kind = 'attempt' and a.request_id = r.request_id and a.attempt = r.attempt
      cross join lateral (select a.detail::jsonb as d) detail cross join lateral (select to_jsonb(r.attempt) <@ (r.detail::jsonb->'charged') as charged) c
    where r.kind = 'charge' or (r.kind = 'adjustment' and r.applies_to = 'charge') group by 1, 2, 3, 4, 5, 6`,
  `create index usage_days_period on usage_days (account_id, period)`,
  `create table attempt_days (
    account_id text not null, day text not null, provider text not null, attempts bigint not null, tokens bigint not null, cost_nano_usd bigint not null, estimated_nano_usd bigint not null,
    primary key (account_id, day, provider)) with (fillfactor = 50)`,
  `insert into attempt_days
    select account_id, to_char(to_timestamp(at_ms / 1000) at time zone 'utc', 'YYYY-MM-DD'), provider, count(*), sum(tokens), sum(amount_nano_usd), sum(case when source = 'provider' then 0 else amount_nano_usd end)
    from ledger_entries where kind = 'attempt' and coalesce((detail::jsonb->>'byok')::boolean, false) is false group by 1, 2, 3`,
  `create index attempt_days_day on attempt_days (day, provider)`,
  `create index ledger_requests_by_time on ledger_entries (account_id, at_ms desc, seq desc) where kind = 'charge' or charge_hash is not null`,
  `create index ledger_failed_by_time on ledger_entries (account_id, at_ms desc, seq desc) where kind = 'charge' and detail like '{"charged":[]%'`,
  `create index ledger_adjustments_of_period on ledger_entries (account_id, period) where kind = 'adjustment'`,
  `create table closed_periods (id bigint generated always as identity primary key, period text not null unique, start_ms bigint not null, end_ms bigint not null, closed_at_ms bigint not null)`,
  `create table closed_terms (account_id text not null, period text not null references closed_periods (period), terms jsonb not null, primary key (account_id, period))`,
  `create trigger closed_periods_stay before update or delete on closed_periods for each row execute function refuse_change()`,
  `create trigger closed_terms_stay before update or delete on closed_terms for each row execute function refuse_change()`,
  `create table provider_usage (provider text not null, day text not null, cost_nano_usd bigint not null, tokens bigint not null, told_at_ms bigint not null, primary key (provider, day))`,
  `create table reconciliations (
    at_ms bigint not null, kind text not null, subject text not null, day text not null, ours_nano_usd bigint not null, theirs_nano_usd bigint not null, status text not null, gaps bigint not null,
    primary key (at_ms, kind, subject, day))`,
  `alter table writers add column reported_at_ms bigint not null default 0, add column open_since_ms bigint not null default 0`,
  `update writers set reported_at_ms = registered_at_ms`,
  `alter table dead_events add column resolved_at_ms bigint, add column note text not null default ''`,
  `create index dead_events_waiting on dead_events (id) where resolved_at_ms is null`,
  // The service itself may not change rows either; a superuser is stopped by the triggers alone.
  `revoke update, delete, truncate on ledger_entries from public, current_user`,
];

/** When each writer was heard of last: a rebuild of quota waits for those that may be alive. */
const WRITERS_SEEN = [`alter table writers add column seen_at_ms bigint not null default 0`, `update writers set seen_at_ms = registered_at_ms`];

/** Decisions of routing and what clients thought of them: no money, kept for days. Ids are in the order of time. */
const DECISIONS = [
  `create table decisions (
    id text primary key, request_id text not null, account_id text not null, at_ms bigint not null, via_auto boolean not null, record text not null, score double precision)`,
  `create index decisions_of_account on decisions (account_id, id)`,
  `create index decisions_of_request on decisions (request_id)`,
];

/** Writers whose log an operator declared gone; a declaration stays, also when the writer comes back. */
const WRITERS_LOST = [
  `alter table writers add column lost_at_ms bigint not null default 0`,
  `create table writer_losses (id bigint generated always as identity primary key, writer text not null, at_ms bigint not null, last_seq bigint not null, ledger_seq bigint not null, note text not null)`,
  `create trigger writer_losses_stay before update or delete on writer_losses for each row execute function refuse_change()`,
];

/** How long answers took, as counts that can be added (domain/latency.ts). Days before this have none. */
const LATENCY = [`alter table usage_days add column total_counts bigint[] not null default '{}', add column first_token_counts bigint[] not null default '{}'`];

/** Terms are written when a period is over, which may be before it closes. */
const TERMS_AT_THE_BOUNDARY = [`alter table closed_terms drop constraint closed_terms_period_fkey`, `create index closed_terms_period on closed_terms (period)`];

/** A changed line of a closed bill shows. Rows from before have none. */
const TERMS_WITH_DIGESTS = [`alter table closed_terms add column digest text not null default ''`];

/** Of an attempt row `a` with the detail `d`. */
const FIGURE = { prompt: tokensOf(['inputUncached', 'cacheRead', 'cacheWrite', 'audio', 'image']), completion: tokensOf(['outputText', 'outputReasoning']), cost: 'a.amount_nano_usd', savings: `coalesce((d->>'savings')::bigint, 0)` };
const FIGURES = Object.keys(FIGURE) as (keyof typeof FIGURE)[];
/** Sums of figures over the attempts of `r` whose numbers are among `numbers`. */
const figuresOf = (numbers: string): string =>
  `lateral (select ${FIGURES.map((name) => `coalesce(sum(${FIGURE[name]}), 0)::bigint as ${name}`).join(', ')} from ledger_entries a cross join lateral (select a.detail::jsonb as d) detail
    where a.kind = 'attempt' and a.request_id = r.request_id and a.attempt = any(${numbers}))`;

/**
 * 0004 counted corrections of a ledger that was there before it without their tokens, costs and savings, and charges by the
 * one attempt that their row names. What it left out is added; a ledger that began with it has nothing of the kind.
 */
const CORRECTIONS_COUNTED = [
  `with since as (select floor(extract(epoch from b.applied_at) * 1000)::bigint as ms from migration b join migration l on l.name = '0001_ledger' and l.applied_at < b.applied_at where b.name = '0004_books'),
    corrected as materialized (select distinct e.request_id from ledger_entries e, since where e.kind = 'adjustment' and e.applies_to = 'charge' and e.at_ms < since.ms),
    booked as (
      select e.*, case when e.charge_hash is null then array(select jsonb_array_elements_text(e.detail::jsonb->'charged')::integer) else array[e.attempt] end as charged, true as is_charge
        from corrected join ledger_entries e using (request_id) where e.kind = 'charge' or e.charge_hash is not null
      union all select e.*, array(select jsonb_array_elements_text(e.detail::jsonb->'charged')::integer), false
        from corrected join ledger_entries e using (request_id) cross join since where e.kind = 'adjustment' and e.applies_to = 'charge' and e.at_ms < since.ms),
    r as (select *, lag(charged, 1, '{}'::integer[]) over (partition by request_id order by seq) as before from booked),
    missing as (
      select r.account_id, to_char(to_timestamp(r.at_ms / 1000) at time zone 'utc', 'YYYY-MM-DD') as day, r.period, r.provider, r.key_id,
        coalesce((select a.detail::jsonb->>'model' from ledger_entries a where a.kind = 'attempt' and a.request_id = r.request_id and a.attempt = r.attempt), '') as model,
        ${FIGURES.map((name) => `sum(now.${name} - was.${name} - counted.${name}) as ${name}`).join(', ')}
      from r cross join ${figuresOf('r.charged')} now cross join ${figuresOf('r.before')} was
        cross join ${figuresOf(`case when r.is_charge and r.attempt = any(r.charged) then array[r.attempt] else '{}'::integer[] end`)} counted
      group by 1, 2, 3, 4, 5, 6)
    update usage_days u set prompt_tokens = u.prompt_tokens + m.prompt, completion_tokens = u.completion_tokens + m.completion, cost_nano_usd = u.cost_nano_usd + m.cost, savings_nano_usd = u.savings_nano_usd + m.savings
    from missing m where (u.account_id, u.day, u.period, u.provider, u.key_id, u.model) = (m.account_id, m.day, m.period, m.provider, m.key_id, m.model)`,
];

/** What each writer says is to be booked of its log: its newest records may be beginnings of attempts alone. */
const WRITERS_OWE = [`alter table writers add column owed_seq bigint`];

/** Of an attempt row `a`: the fees in its cost (kernel, card-fees.ts). */
const FEE_OF_ATTEMPT = `least(substring(a.card_id from '[+]plugins[.]([0-9]{1,16})$')::bigint, a.amount_nano_usd)`;
const HAS_FEE = `a.kind = 'attempt' and a.amount_nano_usd > 0 and a.card_id like '%+plugins.%' and a.card_id ~ '[+]plugins[.][0-9]{1,16}$' and (a.detail::jsonb->>'byok')::boolean is not true`;
/** Fees of plugins are told apart from what models cost: they are on no provider's bill. */
const FEES_APART = [
  `alter table usage_days add column fees_nano_usd bigint not null default 0`,
  `with fees as (
      select a.account_id, to_char(to_timestamp(c.at_ms / 1000) at time zone 'utc', 'YYYY-MM-DD') as day, c.period, c.provider, c.key_id,
        coalesce((select m.detail::jsonb->>'model' from ledger_entries m where m.kind = 'attempt' and m.request_id = c.request_id and m.attempt = c.attempt), '') as model, sum(${FEE_OF_ATTEMPT})::bigint as fees
      from ledger_entries a join ledger_rows c on c.kind = 'charge' and c.account_id = a.account_id and c.request_id = a.request_id and c.detail::jsonb->'charged' @> to_jsonb(a.attempt)
      where ${HAS_FEE} group by 1, 2, 3, 4, 5, 6)
    update usage_days u set fees_nano_usd = f.fees from fees f where (u.account_id, u.day, u.period, u.provider, u.key_id, u.model) = (f.account_id, f.day, f.period, f.provider, f.key_id, f.model)`,
  `with fees as (
      select a.account_id, to_char(to_timestamp(a.at_ms / 1000) at time zone 'utc', 'YYYY-MM-DD') as day, a.provider, sum(${FEE_OF_ATTEMPT})::bigint as fees,
        coalesce(sum(${FEE_OF_ATTEMPT}) filter (where a.source <> 'provider'), 0)::bigint as estimated
      from ledger_entries a where ${HAS_FEE} group by 1, 2, 3)
    update attempt_days d set cost_nano_usd = d.cost_nano_usd - f.fees, estimated_nano_usd = d.estimated_nano_usd - f.estimated from fees f where (d.account_id, d.day, d.provider) = (f.account_id, f.day, f.provider)`,
];

/**
 * Writers that ended in order. Every report gets a name, so that what one said holds until the next: also where a billing
 * that knows nothing of names takes that, hence the trigger.
 */
const WRITERS_END = [
  `alter table writers add column report_id uuid not null default gen_random_uuid(), add column ended_report_id uuid`,
  `create function name_report() returns trigger language plpgsql as $$ begin new.report_id := gen_random_uuid(); return new; end $$`,
  `create trigger writers_report before update of seen_at_ms on writers for each row execute function name_report()`,
];

/**
 * Spans of time are read by time. `ledger_requests_by_time` has the rows with a charge, nearly all; this has the others, so that an
 * ordinary request costs nothing here. Days of all accounts are read by day.
 */
const SPANS_BY_TIME = [
  `create index ledger_others_by_time on ledger_entries (account_id, at_ms) where kind <> 'charge' and charge_hash is null`,
  `create index usage_days_day on usage_days (day)`,
];

const run = (name: string, statements: readonly string[]): Migration => ({
  name,
  up: async (transaction) => {
    for (const statement of statements) await sql.raw(statement).execute(transaction);
  },
});

export const migrations: readonly Migration[] = [run('0001_ledger', LEDGER), run('0002_rows_are_the_state', ROWS_ARE_THE_STATE), run('0003_quiet_vacuum', QUIET_VACUUM), run('0004_books', BOOKS), run('0005_writers_seen', WRITERS_SEEN), run('0006_decisions', DECISIONS), run('0007_writers_lost', WRITERS_LOST), run('0008_latency', LATENCY), run('0009_terms_at_the_boundary', TERMS_AT_THE_BOUNDARY), run('0010_terms_with_digests', TERMS_WITH_DIGESTS), run('0011_corrections_counted', CORRECTIONS_COUNTED), run('0012_writers_owe', WRITERS_OWE), run('0013_fees_apart', FEES_APART), run('0014_writers_end', WRITERS_END), run('0015_spans_by_time', SPANS_BY_TIME)];

export const SCHEMA: SchemaPlan = { schema: 'billing', migrations, appendOnly: ['ledger_entries', 'closed_periods', 'closed_terms', 'writer_losses'] };
