/** The sums of one account: as stored, and as counted again from its ledger rows. */
import type { Prepared, RunPrepared } from '@signalbox/sql/prepared';
import { Recount, sumsOf, type Sums } from '../domain/recount.js';
import { requestsOf, type RequestState } from '../domain/request.js';
import { textArray } from './arrays.js';
import { nextTurn } from './event-loop.js';
import { storedRows, type KnownRow } from './postgres-commit.js';
import { READ_ROWS } from './statements.js';

const PAGE_ROWS = 200;
/** After this many, others get a turn of the event loop. */
const PART_REQUESTS = 50;

/** Rows of an account in the order of its chain. */
const PAGE: Prepared = { name: 'billing_proof_page', text: `select seq, request_id from ledger_entries where account_id = $1 and seq > $2::bigint order by seq limit ${PAGE_ROWS}` };
/** Figures in the order of `Recount`. The driver reads numbers in arrays as text. */
const USAGE: Prepared = {
  name: 'billing_proof_usage',
  text: `select period, day, provider, key_id, model,
    array[requests, tokens, byok_tokens, prompt_tokens, completion_tokens, cost_nano_usd, charge_nano_usd, adjusted_nano_usd, savings_nano_usd, fees_nano_usd] as figures from usage_days where account_id = $1`,
};
/** A later correction of a cost counts on the day of its attempt. */
const ATTEMPTS: Prepared = {
  name: 'billing_proof_attempts',
  text: `with learnt as (select to_char(to_timestamp(e.at_ms / 1000) at time zone 'utc', 'YYYY-MM-DD') as day, e.provider, sum(a.amount_nano_usd)::bigint as amount
      from ledger_entries a join ledger_entries e on e.kind = 'attempt' and e.request_id = a.request_id and e.attempt = a.attempt
      where a.account_id = $1 and a.kind = 'adjustment' and a.applies_to = 'cost' and (e.detail::jsonb ->> 'byok')::boolean is not true group by 1, 2),
    kept as (select * from attempt_days where account_id = $1)
    select day, provider, array[coalesce(attempts, 0), coalesce(tokens, 0), coalesce(cost_nano_usd, 0) - coalesce(amount, 0), coalesce(estimated_nano_usd, 0)] as figures from kept full join learnt using (day, provider)`,
};
const TOTALS: Prepared = { name: 'billing_proof_totals', text: 'select scope, period_id, array[charge_nano_usd, tokens, byok_tokens] as figures from totals where account_id = $1' };

/** The accounts of a table whose key begins with the account, by one look into the key for each: not by reading its rows, which are up to thousands for each account. */
const accountsOf = (table: string, first: string, most: string): string => `select account_id from (with recursive found as (
    (select account_id from ${table} ${first} order by account_id limit 1)
    union all select (select e.account_id from ${table} e where e.account_id > f.account_id order by e.account_id limit 1) from found f where f.account_id is not null)
  select account_id from found where account_id is not null ${most}) of_${table}`;
const TABLES = ['ledger_entries', 'account_heads', 'totals', 'usage_days', 'attempt_days', 'closed_terms'];
/** All accounts with a row in any table. Not only those with a head: whoever deletes the end of a chain may delete its head too. */
export const ACCOUNTS = `${TABLES.map((table) => accountsOf(table, '', '')).join(' union ')} order by account_id`;
/** The next accounts after $1: so many that asking for them costs nothing beside verifying them. */
export const NEXT_ACCOUNTS_MAX = 500;
export const NEXT_ACCOUNTS = `${TABLES.map((table) => accountsOf(table, 'where account_id > $1', `limit ${NEXT_ACCOUNTS_MAX}`)).join(' union ')} order by account_id limit ${NEXT_ACCOUNTS_MAX}`;

interface UsageRow {
  readonly period: string;
  readonly day: string;
  readonly provider: string;
  readonly key_id: string;
  readonly model: string;
  readonly figures: readonly string[];
}

/** Costs are without later corrections. */
export interface AccountSums {
  readonly usage: Sums;
  readonly attempts: Sums;
  readonly totals: Sums;
}

export async function keptSums(run: RunPrepared, accountId: string): Promise<AccountSums> {
  const [usage, attempts, totals] = await Promise.all([run<UsageRow>(USAGE, [accountId]), run<UsageRow>(ATTEMPTS, [accountId]), run<{ scope: string; period_id: string; figures: readonly string[] }>(TOTALS, [accountId])]);
  return {
    usage: sumsOf(usage, ({ period, day, provider, key_id, model }) => [period, day, provider, key_id, model], ({ figures }) => figures.map(BigInt)),
    attempts: sumsOf(attempts, ({ day, provider }) => [day, provider], ({ figures }) => figures.map(BigInt)),
    totals: sumsOf(totals, ({ scope, period_id }) => [scope, period_id], ({ figures }) => figures.map(BigInt)),
  };
}

/** Called with each request and the count of its charge rows; its state is undefined if it has neither an attempt nor a charge. */
export type Look = (requestId: string, state: RequestState | undefined, charges: number) => void;

/** Counts all requests of the account again, and has a `look` at each. The transaction of `run` must see a single snapshot. */
export async function countedSums(run: RunPrepared, accountId: string, look: Look): Promise<Recount> {
  const recount = new Recount();
  for (let after = 0n; ; ) {
    const page = await run<{ seq: bigint; request_id: string }>(PAGE, [accountId, after]);
    const last = page.at(-1);
    if (last === undefined) return recount;
    await countRequests(run, accountId, [...new Set(page.map(({ request_id }) => request_id))], after, recount, look);
    if (page.length < PAGE_ROWS) return recount;
    after = last.seq;
  }
}

/** Counts the requests that have no row up to `after`; the others were counted with an earlier page. */
async function countRequests(run: RunPrepared, accountId: string, ids: readonly string[], after: bigint, recount: Recount, look: Look): Promise<void> {
  const rowsOf = new Map<string, (KnownRow & { readonly seq: bigint })[]>(ids.map((id) => [id, []]));
  for (const row of await run<KnownRow & { readonly seq: bigint }>(READ_ROWS, [textArray(ids)])) if (row.account_id === accountId) rowsOf.get(row.request_id)?.push(row);
  let looked = 0;
  for (const [id, known] of rowsOf) {
    if (looked % PART_REQUESTS === 0) await nextTurn();
    looked += 1;
    const first = known.find(({ kind }) => kind !== 'outcome');
    if (first === undefined) look(id, undefined, 0);
    if (first === undefined || first.seq <= after) continue;
    const rows = known.flatMap(storedRows);
    const state = requestsOf(rows).get(id);
    if (state === undefined) continue;
    look(id, state, known.filter(({ kind, has_charge }) => kind === 'charge' || has_charge).length);
    recount.add(rows, state);
  }
}
