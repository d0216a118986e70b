/** Proof of the ledger against its invariants (BILLING, section 10), account by account, in pages. */
import { brokenLink, CHAIN_START, type ChainedRow } from '@signalbox/ledger-core/hash-chain';
import { correctionOf, fold } from '@signalbox/ledger-core/fold';
import type { Database } from '@signalbox/sql/database';
import { sql, type Transaction } from 'kysely';
import type { BooksStore, InvariantCheck } from '../domain/books.js';
import { requestsOf } from '../domain/request.js';
import { textArray } from './arrays.js';
import { storedRows, type KnownRow } from './postgres-commit.js';
import { READ_ROWS } from './statements.js';

const PAGE_ROWS = 5_000;
const PAGE_REQUESTS = 1_000;
const EXAMPLES_MAX = 20;

/** What each check says when it holds. */
const CHECKS = {
  I1: 'What a provider reported of a day is what our attempts of that day cost.',
  I2: 'A request has at most one charge row.',
  I3: 'Charges and their adjustments are what the attempts and outcomes of each request give.',
  I6: 'No writer has a gap or is behind, but those declared lost.',
  I7: 'Sums for reports are sums over the ledger.',
  I9: 'Sums over periods are sums over the ledger.',
  'I9 chain': 'The hash chain of each account verifies.',
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

/** Of one period: by the rows of the ledger, for reports (`u_`) and in the totals that limits are counted by (`t_`). */
type PeriodSums = { readonly period: string } & Readonly<Record<'charge' | 'adjusted' | 'requests' | 'tokens' | 'byok_tokens' | 'u_charge' | 'u_adjusted' | 'u_requests' | 'u_tokens' | 'u_byok_tokens' | 't_charge' | 't_tokens' | 't_byok_tokens', bigint>>;

const chained = (accountId: string, row: ChainRow): ChainedRow => ({
  accountId, seq: row.seq, kind: row.kind, requestId: row.request_id, attempt: row.attempt, amountNanoUsd: row.amount_nano_usd, tokens: row.tokens, byokTokens: row.byok_tokens, source: row.source, flags: row.flags,
  provider: row.provider, period: row.period, atMs: row.at_ms, appliesTo: row.applies_to, cardId: row.card_id,
});

export function createVerifier({ db, transactPrepared }: Pick<Database<unknown>, 'db' | 'transactPrepared'>): Pick<BooksStore, 'verify'> {
  type Tell = (check: Check, example: string) => void;

  async function chain(accountId: string, tell: Tell): Promise<void> {
    let hash = CHAIN_START;
    let seq = 0n;
    for (;;) {
      const { rows } = await sql<ChainRow>`select * from ledger_rows where account_id = ${accountId} and seq > ${seq}::bigint and seq <= ${seq + BigInt(PAGE_ROWS)}::bigint order by seq`.execute(db);
      if (rows.length === 0) break;
      let before = hash;
      const linked = rows.map((row) => {
        const one = { ...chained(accountId, row), prevHash: before, hash: row.hash };
        before = row.hash;
        return one;
      });
      const broken = brokenLink(linked, hash, seq + 1n);
      if (broken !== undefined) {
        tell('I9 chain', `${accountId} seq ${rows[broken]?.seq ?? seq}`);
        return;
      }
      hash = before;
      seq = rows.at(-1)?.seq ?? seq;
    }
    const head = await sql<{ seq: bigint; hash: string }>`select seq, hash from account_heads where account_id = ${accountId}`.execute(db);
    // The account may have grown meanwhile, never shrunk.
    if (head.rows[0] !== undefined && head.rows[0].seq < seq) tell('I9 chain', `${accountId} head`);
  }

  /** Requests whose charge has a row of its own or was adjusted; the others are right by the shape of their row. */
  async function requests(accountId: string, tell: Tell): Promise<void> {
    for (let after = ''; ; ) {
      const { rows } = await sql<{ request_id: string }>`select distinct request_id from ledger_entries where account_id = ${accountId} and request_id > ${after} and kind <> 'attempt' order by request_id limit ${PAGE_REQUESTS}`.execute(db);
      if (rows.length === 0) return;
      const ids = rows.map(({ request_id }) => request_id);
      const known = await transactPrepared((run) => run<KnownRow>(READ_ROWS, [textArray(ids)]));
      const states = requestsOf(known.flatMap(storedRows));
      for (const id of ids) {
        const state = states.get(id);
        if (state?.booked === undefined) tell('I12', id);
        else {
          if (correctionOf(state.booked, fold(state.facts)) !== undefined) tell('I3', id);
          if (state.booked.chargeNanoUsd < 0n) tell('I12', id);
        }
      }
      after = ids.at(-1) ?? '';
    }
  }

  /** At one instant, since booking goes on. */
  const sums = (accountId: string, tell: Tell): Promise<void> => db.transaction().setIsolationLevel('repeatable read').execute((transaction) => sumsIn(transaction, accountId, tell));

  async function sumsIn(transaction: Transaction<unknown>, accountId: string, tell: Tell): Promise<void> {
    const { rows } = await sql<PeriodSums>`select period, coalesce(r.charge, 0)::bigint as charge, coalesce(r.adjusted, 0)::bigint as adjusted, coalesce(r.requests, 0)::bigint as requests, coalesce(r.tokens, 0)::bigint as tokens,
        coalesce(r.byok_tokens, 0)::bigint as byok_tokens, coalesce(u.charge, 0)::bigint as u_charge, coalesce(u.adjusted, 0)::bigint as u_adjusted, coalesce(u.requests, 0)::bigint as u_requests, coalesce(u.tokens, 0)::bigint as u_tokens,
        coalesce(u.byok_tokens, 0)::bigint as u_byok_tokens, coalesce(t.charge_nano_usd, 0)::bigint as t_charge, coalesce(t.tokens, 0)::bigint as t_tokens, coalesce(t.byok_tokens, 0)::bigint as t_byok_tokens from
        (select period, sum(amount_nano_usd) filter (where not is_adjustment) as charge, sum(amount_nano_usd) filter (where is_adjustment) as adjusted, count(*) filter (where not is_adjustment) as requests, sum(tokens) as tokens, sum(byok_tokens) as byok_tokens
          from (select period, amount_nano_usd, tokens, byok_tokens, kind = 'adjustment' as is_adjustment from ledger_entries where account_id = ${accountId} and (kind = 'charge' or charge_hash is not null or (kind = 'adjustment' and applies_to = 'charge'))) c group by period) r
        full join (select period, sum(charge_nano_usd) as charge, sum(adjusted_nano_usd) as adjusted, sum(requests) as requests, sum(tokens) as tokens, sum(byok_tokens) as byok_tokens from usage_days where account_id = ${accountId} group by period) u using (period)
        full join (select substr(period_id, 7) as period, charge_nano_usd, tokens, byok_tokens from totals where account_id = ${accountId} and scope = 'account' and period_id like 'month:%') t using (period)`.execute(transaction);
    const all = { charge: 0n, tokens: 0n, byokTokens: 0n };
    for (const row of rows) {
      const charge = row.charge + row.adjusted;
      all.charge += charge;
      all.tokens += row.tokens;
      all.byokTokens += row.byok_tokens;
      // Tokens are money too, where they are beyond an allotment.
      if (row.charge !== row.u_charge || row.adjusted !== row.u_adjusted || row.requests !== row.u_requests || row.tokens !== row.u_tokens || row.byok_tokens !== row.u_byok_tokens) tell('I7', `${accountId} ${row.period}`);
      if (row.period !== '' && (charge !== row.t_charge || row.tokens !== row.t_tokens || row.byok_tokens !== row.t_byok_tokens)) tell('I9', `${accountId} ${row.period}`);
    }
    const [total] = (await sql<{ charge: bigint; tokens: bigint; byok_tokens: bigint }>`select charge_nano_usd as charge, tokens, byok_tokens from totals where account_id = ${accountId} and scope = 'account' and period_id = 'total'`.execute(transaction)).rows;
    if ((total?.charge ?? 0n) !== all.charge || (total?.tokens ?? 0n) !== all.tokens || (total?.byok_tokens ?? 0n) !== all.byokTokens) tell('I9', `${accountId} total`);
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
      const accounts = accountId === '' ? (await sql<{ account_id: string }>`select account_id from account_heads order by account_id`.execute(db)).rows.map((row) => row.account_id) : [accountId];
      for (const each of accounts) {
        await chain(each, tell);
        await requests(each, tell);
        await sums(each, tell);
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
        const { rows } = await sql<{ writer: string }>`select writer from writers where lost_at_ms = 0 and (beyond <> '{}' or ledger_seq < last_seq) order by writer`.execute(db);
        for (const { writer } of rows) tell('I6', writer);
      }
      return [...found].map(([invariant, { violations, examples }]): InvariantCheck => ({ invariant, description: CHECKS[invariant], violations, examples }));
    },
  };
}
