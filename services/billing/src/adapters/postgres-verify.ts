/** Proof of the ledger against its invariants (BILLING, section 10), account by account, in pages. */
import { brokenLink, CHAIN_START, type ChainedRow } from '@signalbox/ledger-core/hash-chain';
import { correctionOf, fold } from '@signalbox/ledger-core/fold';
import type { Database } from '@signalbox/sql/database';
import type { Prepared, RunPrepared } from '@signalbox/sql/prepared';
import { sql } from 'kysely';
import type { BooksStore, InvariantCheck } from '../domain/books.js';
import { differencesOf, Recount, sumsOf } from '../domain/recount.js';
import { requestsOf } from '../domain/request.js';
import { textArray } from './arrays.js';
import { nextTurn } from './event-loop.js';
import { storedRows, type KnownRow } from './postgres-commit.js';
import { READ_ROWS } from './statements.js';
import { areAsWritten, type TermsRow } from './written-terms.js';

/** What one answer of the store brings is read in one go: a few milliseconds. */
const PAGE_ROWS = 1_000;
const PAGE_REQUESTS = 200;
/** Then others have their turn. */
const PART_ROWS = 250;
const PART_REQUESTS = 50;
const EXAMPLES_MAX = 20;

/** What each check says when it holds. */
const CHECKS = {
  I1: 'What a provider reported of a day is what our attempts of that day cost, without the fees of plugins.',
  I2: 'A request has at most one charge row.',
  I3: 'Charges and their adjustments are what the attempts and outcomes of each request give.',
  I6: 'No writer has a gap or is behind, but those declared lost.',
  I7: 'Sums for reports are sums over the ledger.',
  I9: 'Sums over periods are sums over the ledger.',
  'I9 chain': 'The hash chain of each account verifies, to its end.',
  'I9 terms': 'The terms of bills are those that were written.',
  I12: 'An adjustment names a request of the ledger and brings no charge or cost below 0.',
} as const;
type Check = keyof typeof CHECKS;

interface ChainRow {
  readonly seq: bigint;
  readonly kind: string;
  readonly request_id: string;
  readonly attempt: number;
  readonly amount_nano_usd: bigint;
  readonly tokens: bigint;
  readonly byok_tokens: bigint;
  readonly source: string;
  readonly flags: readonly string[];
  readonly provider: string;
  readonly period: string;
  readonly at_ms: bigint;
  readonly applies_to: string;
  readonly card_id: string;
  readonly hash: string;
}

interface HeadRow {
  readonly seq: bigint;
  readonly hash: string;
}

interface UsageRow {
  readonly period: string;
  readonly day: string;
  readonly provider: string;
  readonly key_id: string;
  readonly model: string;
  readonly figures: readonly string[];
}

/** Rows of an account in the order of its chain. */
const PAGE: Prepared = { name: 'billing_proof_page', text: `select seq, request_id from ledger_entries where account_id = $1 and seq > $2::bigint order by seq limit ${PAGE_REQUESTS}` };
const ONE_INSTANT: Prepared = { name: 'billing_proof_instant', text: 'set transaction isolation level repeatable read' };
/** Figures in the order of `Recount`. The driver reads numbers in arrays as text. */
const USAGE: Prepared = {
  name: 'billing_proof_usage',
  text: `select period, day, provider, key_id, model,
    array[requests, tokens, byok_tokens, prompt_tokens, completion_tokens, cost_nano_usd, charge_nano_usd, adjusted_nano_usd, savings_nano_usd, fees_nano_usd] as figures from usage_days where account_id = $1`,
};
/** What is learnt later of a cost counts on the day of its attempt. */
const ATTEMPTS: Prepared = {
  name: 'billing_proof_attempts',
  text: `with learnt as (select to_char(to_timestamp(e.at_ms / 1000) at time zone 'utc', 'YYYY-MM-DD') as day, e.provider, sum(a.amount_nano_usd)::bigint as amount
      from ledger_entries a join ledger_entries e on e.kind = 'attempt' and e.request_id = a.request_id and e.attempt = a.attempt
      where a.account_id = $1 and a.kind = 'adjustment' and a.applies_to = 'cost' and (e.detail::jsonb ->> 'byok')::boolean is not true group by 1, 2)
    select day, provider, array[attempts, tokens, cost_nano_usd - coalesce(amount, 0), estimated_nano_usd] as figures from attempt_days d left join learnt using (day, provider) where d.account_id = $1`,
};
const TERMS: Prepared = { name: 'billing_proof_terms', text: 'select account_id, period, terms, digest from closed_terms where account_id = $1' };
const TOTALS: Prepared = { name: 'billing_proof_totals', text: 'select scope, period_id, array[charge_nano_usd, tokens, byok_tokens] as figures from totals where account_id = $1' };
/** Whoever has a row anywhere: who deletes the end of a chain may delete its head too. */
const ACCOUNTS = `with recursive found as (
    (select account_id from ledger_entries order by account_id limit 1)
    union all select (select e.account_id from ledger_entries e where e.account_id > f.account_id order by e.account_id limit 1) from found f where f.account_id is not null)
  select account_id from found where account_id is not null
  union select account_id from account_heads union select account_id from totals union select account_id from usage_days union select account_id from attempt_days union select account_id from closed_terms order by account_id`;

const chained = (accountId: string, row: ChainRow): ChainedRow => ({
  accountId, seq: row.seq, kind: row.kind, requestId: row.request_id, attempt: row.attempt, amountNanoUsd: row.amount_nano_usd, tokens: row.tokens, byokTokens: row.byok_tokens, source: row.source, flags: row.flags,
  provider: row.provider, period: row.period, atMs: row.at_ms, appliesTo: row.applies_to, cardId: row.card_id,
});

export function createVerifier({ db, transactPrepared }: Pick<Database<unknown>, 'db' | 'transactPrepared'>): Pick<BooksStore, 'verify'> {
  type Tell = (check: Check, example: string) => void;

  const headOf = async (accountId: string): Promise<HeadRow> =>
    (await sql<HeadRow>`select seq, hash from account_heads where account_id = ${accountId}`.execute(db)).rows[0] ?? { seq: 0n, hash: CHAIN_START };

  async function chain(accountId: string, tell: Tell): Promise<void> {
    const head = await headOf(accountId);
    let isAtHead = head.seq === 0n && head.hash === CHAIN_START;
    let hash = CHAIN_START;
    let seq = 0n;
    for (;;) {
      const { rows } = await sql<ChainRow>`select * from ledger_rows where account_id = ${accountId} and seq > ${seq}::bigint and seq <= ${seq + BigInt(PAGE_ROWS)}::bigint order by seq`.execute(db);
      if (rows.length === 0) break;
      for (let from = 0; from < rows.length; from += PART_ROWS) {
        await nextTurn();
        const part = rows.slice(from, from + PART_ROWS);
        let before = hash;
        const linked = part.map((row) => {
          const one = { ...chained(accountId, row), prevHash: before, hash: row.hash };
          before = row.hash;
          return one;
        });
        const broken = brokenLink(linked, hash, seq + 1n);
        if (broken !== undefined) {
          tell('I9 chain', `${accountId} seq ${part[broken]?.seq ?? seq}`);
          return;
        }
        isAtHead ||= part.some((row) => row.seq === head.seq && row.hash === head.hash);
        hash = before;
        seq = part.at(-1)?.seq ?? seq;
      }
    }
    // The account may have grown meanwhile, never shrunk.
    if (!isAtHead || (await headOf(accountId)).seq < seq) tell('I9 chain', `${accountId} head`);
  }

  /** All requests of an account, and its sums: at one instant, since booking goes on. */
  const books = (accountId: string, tell: Tell): Promise<void> =>
    transactPrepared(async (run) => {
      await run(ONE_INSTANT, []);
      const recount = new Recount();
      for (let after = 0n; ; ) {
        const page = await run<{ seq: bigint; request_id: string }>(PAGE, [accountId, after]);
        const last = page.at(-1);
        if (last === undefined) break;
        await requests(run, accountId, [...new Set(page.map(({ request_id }) => request_id))], after, recount, tell);
        after = last.seq;
      }
      await sums(run, accountId, recount, tell);
    });

  /** Looks at those that have no row up to `after`: the others were looked at with that. */
  async function requests(run: RunPrepared, accountId: string, ids: readonly string[], after: bigint, recount: Recount, tell: Tell): Promise<void> {
    const rowsOf = new Map<string, (KnownRow & { readonly seq: bigint })[]>(ids.map((id) => [id, []]));
    for (const row of await run<KnownRow & { readonly seq: bigint }>(READ_ROWS, [textArray(ids)])) if (row.account_id === accountId) rowsOf.get(row.request_id)?.push(row);
    let looked = 0;
    for (const [id, known] of rowsOf) {
      if (looked % PART_REQUESTS === 0) await nextTurn();
      looked += 1;
      const first = known.find(({ kind }) => kind !== 'outcome');
      if (first === undefined) tell('I12', id);
      if (first === undefined || first.seq <= after) continue;
      const rows = known.flatMap(storedRows);
      const state = requestsOf(rows).get(id);
      if (state === undefined) continue;
      if (correctionOf(state.booked, fold(state.facts)) !== undefined) tell('I3', id);
      if (state.booked !== undefined && state.booked.chargeNanoUsd < 0n) tell('I12', id);
      recount.add(rows, state);
    }
  }

  async function sums(run: RunPrepared, accountId: string, recount: Recount, tell: Tell): Promise<void> {
    const usage = sumsOf(await run<UsageRow>(USAGE, [accountId]), ({ period, day, provider, key_id, model }) => [period, day, provider, key_id, model], ({ figures }) => figures.map(BigInt));
    const attempts = sumsOf(await run<UsageRow>(ATTEMPTS, [accountId]), ({ day, provider }) => [day, provider], ({ figures }) => figures.map(BigInt));
    const totals = sumsOf(await run<{ scope: string; period_id: string; figures: readonly string[] }>(TOTALS, [accountId]), ({ scope, period_id }) => [scope, period_id], ({ figures }) => figures.map(BigInt));
    for (const name of [...differencesOf(usage, recount.usage()), ...differencesOf(attempts, recount.attempts())]) tell('I7', `${accountId} ${name}`);
    for (const name of differencesOf(totals, recount.totals())) tell('I9', `${accountId} ${name}`);
    for (const written of await run<TermsRow>(TERMS, [accountId])) if (!areAsWritten(written)) tell('I9 terms', `${accountId} ${written.period}`);
  }

  return {
    verify: async (accountId) => {
      const found = new Map<Check, { violations: bigint; readonly examples: string[] }>((Object.keys(CHECKS) as Check[]).map((check) => [check, { violations: 0n, examples: [] }]));
      const tell: Tell = (check, example) => {
        const entry = found.get(check);
        if (entry === undefined) return;
        entry.violations += 1n;
        if (entry.examples.length < EXAMPLES_MAX) entry.examples.push(example);
      };
      const accounts = accountId === '' ? (await sql.raw<{ account_id: string }>(ACCOUNTS).execute(db)).rows.map((row) => row.account_id) : [accountId];
      for (const each of accounts) {
        await chain(each, tell);
        await books(each, tell);
        const twice = await sql<{ request_id: string }>`select request_id from ledger_entries where account_id = ${each} and (kind = 'charge' or charge_hash is not null) group by request_id having count(*) > 1 limit ${EXAMPLES_MAX}`.execute(db);
        for (const { request_id } of twice.rows) tell('I2', request_id);
        const below = await sql<{ request_id: string }>`select a.request_id from ledger_entries a join ledger_entries e on e.kind = 'attempt' and e.request_id = a.request_id and e.attempt = a.attempt
          where a.account_id = ${each} and a.kind = 'adjustment' and a.applies_to = 'cost' group by a.request_id, a.attempt, e.amount_nano_usd having e.amount_nano_usd + sum(a.amount_nano_usd) < 0 limit ${EXAMPLES_MAX}`.execute(db);
        for (const { request_id } of below.rows) tell('I12', request_id);
      }
      if (accountId === '') {
        const apart = await sql<{ provider: string; day: string }>`select provider, day from provider_usage p
          where p.cost_nano_usd <> (select coalesce(sum(a.cost_nano_usd), 0) from attempt_days a where a.day = p.day and a.provider = p.provider) order by day, provider`.execute(db);
        for (const { provider, day } of apart.rows) tell('I1', `${provider} ${day}`);
        const { rows } = await sql<{ writer: string }>`select writer from writers where (lost_at_ms = 0 and (beyond <> '{}' or ledger_seq < last_seq)) or ledger_seq > last_seq order by writer`.execute(db);
        for (const { writer } of rows) tell('I6', writer);
      }
      return [...found].map(([invariant, { violations, examples }]): InvariantCheck => ({ invariant, description: CHECKS[invariant], violations, examples }));
    },
  };
}
