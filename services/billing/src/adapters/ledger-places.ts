/** Finds the rows of an account's ledger within a span of time, in the order of its chain. */
import type { Database } from '@signalbox/sql/database';
import { CompiledQuery } from 'kysely';

/** Rows of the chain that are looked at for one that is asked for, before rows are looked for by their time. */
const LOOKED_AT_FOR_ONE = 4;
/** A day of an account that makes a hundred requests a second is read within the time-out of a statement. */
const SLICE_MS = 86_400_000n;
/** Days with fewer rows are read together, until there are about as many: years of few rows are no thousands of statements. */
const ROWS_AT_ONCE = 10_000;
/** 2^63 - 1. */
const NO_END_MS = 9_223_372_036_854_775_807n;

/** $2 = first place, $3 = rows. Rows out of the span are returned too, so that nothing but the chain's own key serves. */
export const CHAIN = 'select seq, at_ms from ledger_entries where account_id = $1 and seq >= $2::bigint order by seq limit $3';

/** By the two indexes by time, which have each row of the table in one of them. */
const PARTS = [`(kind = 'charge' or charge_hash is not null)`, `kind <> 'charge' and charge_hash is null`];
/** An offset that the planner does not know keeps it from reading and sorting the whole span, which it takes for small: times have no statistics. */
const atRow = (offset: number): string => `least(${PARTS.map((part) => `(select at_ms from ledger_entries where account_id = $1 and ${part} and at_ms >= $2::bigint and at_ms < $3::bigint order by at_ms limit 1 offset (select ${offset}))`).join(', ')})`;
/** Times of the first row from $2 to $3, and of the first that is too many for one statement. */
export const FIRST = `select ${atRow(0)} as at_ms, ${atRow(ROWS_AT_ONCE)} as many_ms`;
/** Place of the newest row. */
export const LAST = 'select seq from ledger_entries where account_id = $1 order by seq desc limit 1';
/** The first $5 places from $4 to $6 within the span from $2 to $3. The sums keep Postgres from reading the chain instead of the span. */
export const WITHIN = `select seq from (${PARTS.map((part) => `(select seq from ledger_entries where account_id = $1 and ${part} and at_ms >= $2::bigint and at_ms < $3::bigint and seq + 0 >= $4::bigint and seq + 0 <= $6::bigint offset 0)`).join(' union all ')}) s order by seq limit $5`;

export interface Places {
  readonly accountId: string;
  readonly fromMs: bigint;
  /** Exclusive; 0 = no end. */
  readonly toMs: bigint;
  /** The first place that counts. */
  readonly after: bigint;
  readonly most: number;
  /** Aborted = nobody waits for the rows: no further statement is begun. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * The first `most` places of the chain, ascending, from `after` on, whose rows are of the span. Rows are booked nearly in the order of
 * their times: where the chain goes through the span, a page is full after a few rows. Before and behind the span, and where late rows
 * stand apart, the whole span is looked through by time, whatever else the account has.
 */
export async function placesFrom(db: Database<unknown>['db'], { accountId, fromMs, toMs, after, most, signal }: Places): Promise<readonly bigint[]> {
  const ask = async <Row>(text: string, ...values: readonly unknown[]): Promise<readonly Row[]> => (await db.executeQuery<Row>(CompiledQuery.raw(text, [accountId, ...values]))).rows;
  const isBounded = fromMs > 0n || toMs > 0n;
  const endMs = toMs === 0n ? NO_END_MS : toMs;
  const lookedAt = isBounded ? LOOKED_AT_FOR_ONE * most : most;
  const chain = await ask<{ seq: bigint; at_ms: bigint }>(CHAIN, after, lookedAt);
  const near = chain.filter(({ at_ms }) => at_ms >= fromMs && at_ms < endMs).map(({ seq }) => seq);
  if (near.length >= most || chain.length < lookedAt) return near.slice(0, most);
  // Rows that are booked while the span is looked through are of later pages: a late one may be of a day that was read already, before one that is still read.
  const last = (await ask<{ seq: bigint }>(LAST))[0]?.seq ?? 0n;
  let found: bigint[] = [];
  for (let sliceMs = fromMs; ; ) {
    signal?.throwIfAborted();
    const [first] = await ask<{ at_ms: bigint | null; many_ms: bigint | null }>(FIRST, sliceMs, endMs);
    const firstMs = first?.at_ms ?? endMs;
    if (firstMs >= endMs) return found;
    const manyMs = first?.many_ms ?? endMs;
    const dayMs = firstMs + SLICE_MS < endMs ? firstMs + SLICE_MS : endMs;
    sliceMs = manyMs > dayMs ? manyMs : dayMs;
    const within = await ask<{ seq: bigint }>(WITHIN, firstMs, sliceMs, after, most, last);
    found = [...found, ...within.map(({ seq }) => seq)].sort((a, b) => (a < b ? -1 : 1)).slice(0, most);
  }
}
