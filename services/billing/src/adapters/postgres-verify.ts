/** Verifies the ledger against its invariants, account by account, in pages. */
import { brokenLink, CHAIN_START, type ChainedRow } from '@signalbox/ledger-core/hash-chain';
import { correctionOf, fold } from '@signalbox/ledger-core/fold';
import type { Database } from '@signalbox/sql/database';
import type { Prepared } from '@signalbox/sql/prepared';
import { CompiledQuery, sql } from 'kysely';
import type { BooksStore, InvariantCheck, VerifiedPart } from '../domain/books.js';
import { differencesOf } from '../domain/recount.js';
import { countedSums, keptSums, NEXT_ACCOUNTS, NEXT_ACCOUNTS_MAX } from './account-sums.js';
import { inParts } from './days-at-once.js';
import { nextTurn } from './event-loop.js';
import { areAsWritten, type TermsRow } from './written-terms.js';

/** Rows in one answer of the store, which the driver parses in one go: a few milliseconds. */
const PAGE_ROWS = 1_000;
/** After this many, others get a turn of the event loop. */
const PART_ROWS = 250;
const EXAMPLES_MAX = 20;

/** What is true if the check holds. */
const CHECKS = {
  I1: 'The cost that a provider reported for a day equals that of our attempts on that day, without plugin fees.',
  I2: 'A request has at most one charge row.',
  I3: 'Charges with their adjustments are what the attempts and outcomes of each request require.',
  I6: 'No writer has a gap or is behind, except those declared lost.',
  I7: 'Sums for reports equal the sums of the ledger rows.',
  I9: 'Totals of periods equal the sums of the ledger rows.',
  'I9 chain': 'The hash chain of each account is intact up to its head.',
  'I9 terms': 'The terms of bills have not been changed since they were written.',
  I12: 'Every adjustment belongs to a request of the ledger, and none brings a charge or cost below 0.',
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

const COLUMNS = 'request_id, attempt, amount_nano_usd, tokens, byok_tokens, source, provider, period, at_ms, applies_to, card_id';
/**
 * The rows of account $1 with sequences above $2 and up to $3, unpacked as in the view `ledger_rows`. That view computes the
 * sequence of a packed charge row, which no index knows, so each page of it would read the whole account.
 */
export const CHAIN_PAGE = `with page as materialized (select * from ledger_entries where account_id = $1 and seq >= $2::bigint and seq <= $3::bigint)
  select seq, kind, ${COLUMNS}, flags, hash from page where seq > $2::bigint
  union all select seq + 1, 'charge', ${COLUMNS}, '{}', charge_hash from page where charge_hash is not null and seq < $3::bigint
  order by seq`;

const ONE_INSTANT: Prepared = { name: 'billing_proof_instant', text: 'set transaction isolation level repeatable read' };
const TERMS: Prepared = { name: 'billing_proof_terms', text: 'select account_id, period, terms, digest from closed_terms where account_id = $1' };
/** Requests of account $1 with an attempt whose cost was corrected to less than nothing. */
const BELOW: Prepared = {
  name: 'billing_proof_below',
  text: `select a.request_id from ledger_entries a join ledger_entries e on e.kind = 'attempt' and e.request_id = a.request_id and e.attempt = a.attempt
    where a.account_id = $1 and a.kind = 'adjustment' and a.applies_to = 'cost' group by a.request_id, a.attempt, e.amount_nano_usd having e.amount_nano_usd + sum(a.amount_nano_usd) < 0 limit ${EXAMPLES_MAX}`,
};

const chained = (accountId: string, row: ChainRow): ChainedRow => ({
  accountId, seq: row.seq, kind: row.kind, requestId: row.request_id, attempt: row.attempt, amountNanoUsd: row.amount_nano_usd, tokens: row.tokens, byokTokens: row.byok_tokens, source: row.source, flags: row.flags,
  provider: row.provider, period: row.period, atMs: row.at_ms, appliesTo: row.applies_to, cardId: row.card_id,
});

/** Days of providers, among some, on which their cost is not what the ledger has. They may be years apart: nothing is read of those between them. */
export const COSTS_APART = `select provider, day from provider_usage p
  left join (select day, provider, sum(cost_nano_usd) as ours from attempt_days where day = any($1::text[]) group by day, provider) a using (day, provider)
  where day = any($1::text[]) and p.cost_nano_usd <> coalesce(ours, 0) order by day, provider`;

export function createVerifier({ db, transactPrepared }: Pick<Database<unknown>, 'db' | 'transactPrepared'>): Pick<BooksStore, 'verify' | 'verifyFrom'> {
  type Tell = (check: Check, example: string) => void;

  const headOf = async (accountId: string): Promise<HeadRow> =>
    (await sql<HeadRow>`select seq, hash from account_heads where account_id = ${accountId}`.execute(db)).rows[0] ?? { seq: 0n, hash: CHAIN_START };

  async function chain(accountId: string, tell: Tell): Promise<void> {
    const head = await headOf(accountId);
    let isAtHead = head.seq === 0n && head.hash === CHAIN_START;
    let hash = CHAIN_START;
    let seq = 0n;
    for (;;) {
      const { rows } = await db.executeQuery<ChainRow>(CompiledQuery.raw(CHAIN_PAGE, [accountId, seq, seq + BigInt(PAGE_ROWS)]));
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
      // Only the end of a chain has fewer rows: a gap would have broken it.
      if (rows.length < PAGE_ROWS) break;
    }
    // The account may have grown meanwhile, but cannot have shrunk.
    if (!isAtHead || (await headOf(accountId)).seq < seq) tell('I9 chain', `${accountId} head`);
  }

  /** Checks all requests of an account and its sums in one snapshot, since booking goes on. */
  const books = (accountId: string, tell: Tell): Promise<void> =>
    transactPrepared(async (run) => {
      const [, kept, terms, below] = await Promise.all([run(ONE_INSTANT, []), keptSums(run, accountId), run<TermsRow>(TERMS, [accountId]), run<{ request_id: string }>(BELOW, [accountId])]);
      const recount = await countedSums(run, accountId, (id, state, charges) => {
        if (charges > 1) tell('I2', id);
        if (state === undefined) tell('I12', id);
        else if (correctionOf(state.booked, fold(state.facts)) !== undefined) tell('I3', id);
        if (state?.booked !== undefined && state.booked.chargeNanoUsd < 0n) tell('I12', id);
      });
      for (const name of [...differencesOf(kept.usage, recount.usage()), ...differencesOf(kept.attempts, recount.attempts())]) tell('I7', `${accountId} ${name}`);
      for (const name of differencesOf(kept.totals, recount.totals())) tell('I9', `${accountId} ${name}`);
      for (const written of terms) if (!areAsWritten(written)) tell('I9 terms', `${accountId} ${written.period}`);
      for (const { request_id } of below) tell('I12', request_id);
    });

  /** What concerns no single account: the providers' figures and the writers. */
  async function others(tell: Tell): Promise<void> {
    const days = await sql<{ day: string }>`select distinct day from provider_usage order by day`.execute(db);
    for (const part of inParts(days.rows.map(({ day }) => day))) {
      const apart = await db.executeQuery<{ provider: string; day: string }>(CompiledQuery.raw(COSTS_APART, [part]));
      for (const { provider, day } of apart.rows) tell('I1', `${provider} ${day}`);
    }
    const { rows } = await sql<{ writer: string }>`select writer from writers where (lost_at_ms = 0 and (beyond <> '{}' or ledger_seq < last_seq)) or ledger_seq > last_seq order by writer`.execute(db);
    for (const { writer } of rows) tell('I6', writer);
  }

  async function account(accountId: string, tell: Tell): Promise<void> {
    await chain(accountId, tell);
    await books(accountId, tell);
  }

  /** Runs `work`, and lists the checks with what it told. */
  async function checksOf(work: (tell: Tell) => Promise<void>): Promise<readonly InvariantCheck[]> {
    const found = new Map<Check, { violations: bigint; readonly examples: string[] }>((Object.keys(CHECKS) as Check[]).map((check) => [check, { violations: 0n, examples: [] }]));
    await work((check, example) => {
      const entry = found.get(check);
      if (entry === undefined) return;
      entry.violations += 1n;
      if (entry.examples.length < EXAMPLES_MAX) entry.examples.push(example);
    });
    return [...found].map(([invariant, { violations, examples }]): InvariantCheck => ({ invariant, description: CHECKS[invariant], violations, examples }));
  }

  async function verifyFrom(after: string, isOver: () => boolean): Promise<VerifiedPart> {
    let [last, accounts, isDone] = [after, 0, false];
    const checks = await checksOf(async (tell) => {
      while (!isDone) {
        const { rows } = await db.executeQuery<{ account_id: string }>(CompiledQuery.raw(NEXT_ACCOUNTS, [last]));
        for (const { account_id } of rows) {
          if (accounts > 0 && isOver()) return;
          await account(account_id, tell);
          last = account_id;
          accounts += 1;
        }
        isDone = rows.length < NEXT_ACCOUNTS_MAX;
      }
      await others(tell);
    });
    return { checks, accounts, next: isDone ? '' : last };
  }

  return {
    verifyFrom,
    verify: async (accountId) => (accountId === '' ? (await verifyFrom('', () => false)).checks : checksOf((tell) => account(accountId, tell))),
  };
}
