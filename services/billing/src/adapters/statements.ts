/**
 * The statements of a commit, prepared once per connection. Every parameter whose type ends in `[]` is an array with one
 * element per row, so that a statement is the same for batches of any size.
 */
import type { Prepared } from '@signalbox/sql/prepared';

export const ADD_WRITERS: Prepared = {
  name: 'billing_add_writers',
  text: 'insert into writers (writer, registered_at_ms, reported_at_ms, seen_at_ms) select writer, $2::bigint, $2::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint from unnest($1::text[]) as n(writer) order by writer on conflict do nothing',
};
/** Locks in the order of the keys, so that replicas cannot deadlock. */
export const LOCK_WRITERS: Prepared = {
  name: 'billing_lock_writers',
  text: 'select writer, ledger_seq, beyond from writers where writer = any($1::text[]) order by writer for update',
};

export const ADD_HEADS: Prepared = {
  name: 'billing_add_heads',
  text: 'insert into account_heads (account_id, hash) select account_id, $2::text from unnest($1::text[]) as n(account_id) order by account_id on conflict do nothing',
};
export const LOCK_HEADS: Prepared = {
  name: 'billing_lock_heads',
  text: 'select account_id, seq, hash, totals_seq from account_heads where account_id = any($1::text[]) order by account_id for update',
};

const KNOWN_COLUMNS = ['request_id', 'account_id', 'key_id', 'kind', 'attempt', 'amount_nano_usd', 'tokens', 'byok_tokens', 'source', 'provider', 'card_id', 'period', 'at_ms', 'flags', 'detail', 'seq'];
const ofKnown = `${KNOWN_COLUMNS.map((column) => `e.${column}`).join(', ')}, e.charge_hash is not null as has_charge`;
/**
 * Reads all rows of these requests. A request without an attempt row has no other rows, so those are looked up only where one
 * was found. Charges are those with a row of their own; packed ones come with their attempt. Outcomes that no ledger row
 * contains are returned like rows that charge nothing.
 */
export const READ_ROWS: Prepared = {
  name: 'billing_read_rows',
  text: `with a as materialized (select ${ofKnown} from ledger_entries e where e.kind = 'attempt' and e.request_id = any($1::text[])),
    known as materialized (select distinct request_id from a)
    select * from a
    union all select ${ofKnown} from known join ledger_entries e using (request_id) where e.kind = 'charge'
    union all select ${ofKnown} from known join ledger_entries e using (request_id) where e.kind = 'adjustment' and e.applies_to = 'charge'
    union all select request_id, account_id, '', 'outcome', attempt, 0, 0, 0, '', '', '', '', 0, '{}'::text[], format('{"charged":[],"outcomes":[[%s,"%s",%s]]}', attempt, outcome, told_by_edge::text), 0, false
      from outcomes where request_id = any($1::text[])
    order by seq`,
};

type Column = readonly [name: string, type: 'text' | 'bigint' | 'integer'];

/** Arrays inside a row are sent as text, since Postgres' nested arrays must all have the same length. */
const CASTS: Readonly<Record<string, string>> = { flags: 'flags::text[]', beyond: 'beyond::bigint[]', total_counts: 'total_counts::bigint[]', first_token_counts: 'first_token_counts::bigint[]' };
const ENTRY: readonly Column[] = [
  ['account_id', 'text'], ['seq', 'bigint'], ['kind', 'text'], ['request_id', 'text'], ['attempt', 'integer'], ['amount_nano_usd', 'bigint'], ['tokens', 'bigint'], ['byok_tokens', 'bigint'],
  ['source', 'text'], ['flags', 'text'], ['provider', 'text'], ['period', 'text'], ['at_ms', 'bigint'], ['applies_to', 'text'], ['card_id', 'text'], ['key_id', 'text'], ['detail', 'text'], ['hash', 'text'], ['charge_hash', 'text'],
];
const HEAD: readonly Column[] = [['account_id', 'text'], ['seq', 'bigint'], ['hash', 'text'], ['totals_seq', 'bigint']];
const MARK: readonly Column[] = [['writer', 'text'], ['ledger_seq', 'bigint'], ['beyond', 'text']];
const TOTAL: readonly Column[] = [['account_id', 'text'], ['scope', 'text'], ['period_id', 'text'], ['charge_nano_usd', 'bigint'], ['tokens', 'bigint'], ['byok_tokens', 'bigint']];
const USAGE: readonly Column[] = [
  ['account_id', 'text'], ['period', 'text'], ['day', 'text'], ['model', 'text'], ['provider', 'text'], ['key_id', 'text'],
  ['requests', 'bigint'], ['tokens', 'bigint'], ['byok_tokens', 'bigint'], ['prompt_tokens', 'bigint'], ['completion_tokens', 'bigint'], ['cost_nano_usd', 'bigint'], ['charge_nano_usd', 'bigint'],
  ['adjusted_nano_usd', 'bigint'], ['savings_nano_usd', 'bigint'], ['fees_nano_usd', 'bigint'], ['total_counts', 'text'], ['first_token_counts', 'text'],
];
const ATTEMPTS: readonly Column[] = [['account_id', 'text'], ['day', 'text'], ['provider', 'text'], ['attempts', 'bigint'], ['tokens', 'bigint'], ['cost_nano_usd', 'bigint'], ['estimated_nano_usd', 'bigint']];
const OUTCOME: readonly Column[] = [['request_id', 'text'], ['account_id', 'text'], ['attempt', 'integer'], ['outcome', 'text'], ['told_by_edge', 'integer']];

const namesOf = (columns: readonly Column[]): string => columns.map(([name]) => name).join(', ');
/** `select … from unnest(…) as n`: the rows in the parameters from `$first` on. */
const rowsOf = (columns: readonly Column[], first: number): string =>
  `select ${columns.map(([name]) => CASTS[name] ?? name).join(', ')} from unnest(${columns.map(([, type], index) => `$${first + index}::${type}[]`).join(', ')}) as n(${namesOf(columns)})`;

const isCounts = (name: string): boolean => name.endsWith('_counts');
/** Adds the new value to the stored one: a number, or counts element by element. */
const sumOf = (name: string): string =>
  isCounts(name)
    ? `case when excluded.${name} = '{}' then t.${name} else array(select coalesce(a, 0) + coalesce(b, 0) from unnest(t.${name}, excluded.${name}) with ordinality as u(a, b, place) order by place) end`
    : `t.${name} + excluded.${name}`;

/** An upsert that adds sums to the stored ones. The first `keys` columns are the table's key. */
const addTo = (table: string, columns: readonly Column[], keys: number, first: number): string =>
  `insert into ${table} as t (${namesOf(columns)}) ${rowsOf(columns, first)} on conflict (${namesOf(columns.slice(0, keys))}) do update set ${columns.slice(keys).map(([name]) => `${name} = ${sumOf(name)}`).join(', ')}`;

const addTotals = (first: number): string => `insert into totals as t (${namesOf(TOTAL)}, updated_at_ms)
    select n.*, floor(extract(epoch from clock_timestamp()) * 1000)::bigint from (${rowsOf(TOTAL, first)}) n
    on conflict (account_id, scope, period_id) do update set charge_nano_usd = t.charge_nano_usd + excluded.charge_nano_usd, tokens = t.tokens + excluded.tokens,
      byok_tokens = t.byok_tokens + excluded.byok_tokens, updated_at_ms = excluded.updated_at_ms`;

const AT_HEAD = 1 + ENTRY.length;
const AT_MARK = AT_HEAD + HEAD.length;
const AT_USAGE = AT_MARK + MARK.length;
const AT_ATTEMPTS = AT_USAGE + USAGE.length;
const AT_TOTAL = AT_ATTEMPTS + ATTEMPTS.length;

/** Everything that a batch writes, in one statement: ledger rows, heads of chains, watermarks, sums for reports and totals, which it returns. Parameters: the columns of ENTRY, HEAD, MARK, USAGE, ATTEMPTS and TOTAL. */
export const WRITE_BATCH: Prepared = {
  name: 'billing_write_batch',
  text: `with rows as (insert into ledger_entries (${namesOf(ENTRY)}) ${rowsOf(ENTRY, 1)}),
    heads as (update account_heads h set seq = n.seq, hash = n.hash, totals_seq = n.totals_seq from (${rowsOf(HEAD, AT_HEAD)}) n where h.account_id = n.account_id),
    marks as (update writers w set ledger_seq = n.ledger_seq, last_seq = greatest(w.last_seq, n.ledger_seq), beyond = n.beyond from (${rowsOf(MARK, AT_MARK)}) n where w.writer = n.writer),
    usage as (${addTo('usage_days', USAGE, 6, AT_USAGE)}),
    attempts as (${addTo('attempt_days', ATTEMPTS, 3, AT_ATTEMPTS)})
    ${addTotals(AT_TOTAL)}
    returning ${namesOf(TOTAL)}`,
};

/** Correct sums that differ from their rows: `add` adds the difference, `drop` deletes sums without rows (by their key, the first columns). */
const dropFrom = (table: string, columns: readonly Column[], keys: number): string =>
  `delete from ${table} where (${namesOf(columns.slice(0, keys))}) in (${rowsOf(columns.slice(0, keys), 1)})`;
export const MEND = {
  usage: { add: { name: 'billing_mend_usage', text: addTo('usage_days', USAGE, 6, 1) }, drop: { name: 'billing_drop_usage', text: dropFrom('usage_days', USAGE, 6) } },
  attempts: { add: { name: 'billing_mend_attempts', text: addTo('attempt_days', ATTEMPTS, 3, 1) }, drop: { name: 'billing_drop_attempts', text: dropFrom('attempt_days', ATTEMPTS, 3) } },
  totals: { add: { name: 'billing_mend_totals', text: addTotals(1) }, drop: { name: 'billing_drop_totals', text: dropFrom('totals', TOTAL, 3) } },
} as const satisfies Readonly<Record<string, { readonly add: Prepared; readonly drop: Prepared }>>;

/** Advisory lock that booking shares and closing holds exclusively: a row is booked to a period either before the period is closed, or not at all. The number is arbitrary. */
const PERIODS_LOCK = 7_203_551_946_012_341n;
export const SHARE_PERIODS: Prepared = { name: 'billing_share_periods', text: `select pg_advisory_xact_lock_shared(${PERIODS_LOCK})` };
export const OWN_PERIODS: Prepared = { name: 'billing_own_periods', text: `select pg_advisory_xact_lock(${PERIODS_LOCK})` };
/** The latest known closed period and those closed since. */
export const READ_CLOSED: Prepared = { name: 'billing_read_closed', text: 'select id, period from closed_periods where id >= $1::bigint order by id' };

export const ADD_OUTCOMES: Prepared = {
  name: 'billing_add_outcomes',
  text: `insert into outcomes (${namesOf(OUTCOME)}) select request_id, account_id, attempt, outcome, told_by_edge = 1 from (${rowsOf(OUTCOME, 1)}) o on conflict do nothing`,
};
export const ADD_DEAD: Prepared = {
  name: 'billing_add_dead',
  text: `insert into dead_events (digest, subject, reason, writer, payload, at_ms)
    select digest, subject, reason, writer, decode(payload, 'hex'), $6::bigint from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) as n(digest, subject, reason, writer, payload) on conflict do nothing`,
};
