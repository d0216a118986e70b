/** Commits a batch of usage in one transaction: locks, reads what is known, books, writes. */
import { createHash } from 'node:crypto';
import { assert } from '@signalbox/kernel/assert';
import { CHAIN_START } from '@signalbox/ledger-core/hash-chain';
import type { Conclude, Prepared, RunPrepared } from '@signalbox/sql/prepared';
import { bookInParts, byRequest, type Booking, type BookingInput } from '../domain/booking.js';
import type { CheckedOutcome } from '../domain/check.js';
import type { BookedAccount } from '../domain/open-account.js';
import type { AccountTotals, CheckedRange, CommittedBatch, DeadEvent, ScopeTotals } from '../domain/ports.js';
import { mergeRanges, type Progress, type SeqRange } from '../domain/ranges.js';
import { plainChargeDetail, requestsOf, type AttemptDetail, type ChargeDetail, type RequestState, type StoredRow } from '../domain/request.js';
import type { AttemptDelta, UsageDelta } from '../domain/usage.js';
import { bigintsOf, integersOf, textArray, textsOf } from './arrays.js';
import { nextTurn } from './event-loop.js';
import { PackedRows } from './packed-rows.js';
import { ADD_DEAD, ADD_HEADS, ADD_OUTCOMES, ADD_WRITERS, LOCK_HEADS, LOCK_WRITERS, READ_CLOSED, READ_ROWS, SHARE_PERIODS, WRITE_BATCH } from './statements.js';

function unique(values: readonly string[]): string[] {
  return [...new Set(values)];
}

/** First and last of each range as one flat array: `{1,5,9,9}`. */
function flatRanges(ranges: readonly SeqRange[]): string {
  return `{${ranges.map(({ first, last }) => `${first},${last}`).join(',')}}`;
}

function rangesOf(flat: readonly string[]): SeqRange[] {
  const ranges: SeqRange[] = [];
  for (let i = 0; i + 1 < flat.length; i += 2) ranges.push({ first: BigInt(flat[i] ?? 0), last: BigInt(flat[i + 1] ?? 0) });
  return ranges;
}

interface WriterRow {
  readonly writer: string;
  readonly ledger_seq: bigint;
  /** Integers as text, which is how the driver reads arrays of bigint. */
  readonly beyond: readonly string[];
}

interface Mark extends Progress {
  readonly writer: string;
}

/** The progress of each writer once `ranges` are committed. */
function advance(rows: readonly WriterRow[], ranges: readonly CheckedRange[]): Mark[] {
  return rows.map(({ writer, ledger_seq, beyond }) => ({
    writer,
    ...mergeRanges({ watermark: ledger_seq, beyond: rangesOf(beyond) }, ranges.filter((each) => each.writer === writer).map((each) => each.range)),
  }));
}

interface HeadRow {
  readonly account_id: string;
  readonly seq: bigint;
  readonly hash: string;
  readonly totals_seq: bigint;
}

export interface KnownRow {
  readonly request_id: string;
  readonly account_id: string;
  readonly key_id: string;
  readonly kind: StoredRow['kind'];
  readonly attempt: number;
  readonly amount_nano_usd: bigint;
  readonly tokens: bigint;
  readonly byok_tokens: bigint;
  readonly source: string;
  readonly provider: string;
  readonly card_id: string;
  readonly period: string;
  readonly at_ms: bigint;
  readonly flags: readonly string[];
  /** A JSON object. */
  readonly detail: string;
  readonly has_charge: boolean;
}

export function storedRows(row: KnownRow): StoredRow[] {
  const common = {
    requestId: row.request_id, accountId: row.account_id, keyId: row.key_id, attempt: row.attempt, amountNanoUsd: row.amount_nano_usd, tokens: row.tokens, byokTokens: row.byok_tokens,
    source: row.source, provider: row.provider, cardId: row.card_id, period: row.period, atMs: row.at_ms, flags: row.flags,
  };
  if (row.kind !== 'attempt') return [{ ...common, kind: row.kind, detail: JSON.parse(row.detail) as ChargeDetail }];
  const attempt: StoredRow = { ...common, kind: 'attempt', detail: JSON.parse(row.detail) as AttemptDetail };
  return row.has_charge ? [attempt, { ...common, kind: 'charge', detail: JSON.parse(plainChargeDetail(row.attempt)) as ChargeDetail }] : [attempt];
}

/** States of these requests, as far as they exist. */
export async function readRequests(run: RunPrepared, requestIds: readonly string[]): Promise<Map<string, RequestState>> {
  return requestsOf((await run<KnownRow>(READ_ROWS, [textArray(requestIds)])).flatMap(storedRows));
}

/** Closed periods that this process knows. They never open again, so only new ones are read. */
export interface KnownPeriods {
  /** The latest close, by which a ledger that went back is known. */
  lastId: bigint;
  lastPeriod: string;
  readonly closed: Set<string>;
  /** The open period to which facts of closed periods are booked at that time. */
  openAt(nowMs: number, closed: ReadonlySet<string>): string;
}

interface ClosedRow {
  readonly id: bigint;
  readonly period: string;
}

interface Opened {
  readonly writers: readonly WriterRow[];
  readonly heads: readonly HeadRow[];
  readonly rows: readonly KnownRow[];
}

/** Locks writers and accounts and then reads the requests, so that rows that another replica has booked are seen. Takes one round trip unless a writer or an account is new. */
async function open(run: RunPrepared, writers: readonly string[], accountIds: readonly string[], requestIds: readonly string[], periods: KnownPeriods, nowMs: number): Promise<Opened> {
  const names = [textArray(writers)];
  const ids = [textArray(accountIds)];
  const lockAndRead = async (): Promise<Opened> => {
    const [, since, known, heads, rows] = await Promise.all([run(SHARE_PERIODS, []), run<ClosedRow>(READ_CLOSED, [periods.lastId]), run<WriterRow>(LOCK_WRITERS, names), run<HeadRow>(LOCK_HEADS, ids), run<KnownRow>(READ_ROWS, [textArray(requestIds)])]);
    // A ledger that was restored from a backup has closed less, and closes other periods under the same ids.
    const [latest] = since;
    const isBack = periods.lastId > 0n && (latest?.id !== periods.lastId || latest.period !== periods.lastPeriod);
    const closed = isBack ? await run<ClosedRow>(READ_CLOSED, [0n]) : since;
    if (isBack) {
      periods.closed.clear();
      periods.lastId = 0n;
    }
    for (const { id, period } of closed) {
      periods.closed.add(period);
      if (id > periods.lastId) [periods.lastId, periods.lastPeriod] = [id, period];
    }
    return { writers: known, heads, rows };
  };
  const opened = await lockAndRead();
  if (opened.writers.length === writers.length && opened.heads.length === accountIds.length) return opened;
  await Promise.all([run(ADD_WRITERS, [...names, nowMs]), run(ADD_HEADS, [...ids, CHAIN_START])]);
  return lockAndRead();
}

/** A commit in encoded form. It no longer references its facts and rows, so that they are collected young while the store works. */
interface PackedBatch {
  readonly counts: CommittedBatch['rows'];
  /** Parameters of WRITE_BATCH. */
  readonly columns: readonly Buffer[];
  /** Accounts to announce: their totals have changed, or requests of theirs are settled. The totals come with the store's answer. */
  readonly moved: readonly Omit<AccountTotals, 'totals'>[];
  readonly outcomes: readonly CheckedOutcome[];
  readonly refused: readonly DeadEvent[];
}

const factText = (fact: unknown): string => JSON.stringify(fact, (_name, part: unknown) => (typeof part === 'bigint' ? part.toString() : part));

/** A delta with its account. */
type Of<Delta> = Delta & { readonly accountId: string };

/** Columns of USAGE. */
export const usageColumns = (usage: readonly Of<UsageDelta>[]): Buffer[] => [
  textsOf(usage, (sum) => sum.accountId), textsOf(usage, (sum) => sum.period), textsOf(usage, (sum) => sum.day), textsOf(usage, (sum) => sum.model), textsOf(usage, (sum) => sum.provider), textsOf(usage, (sum) => sum.keyId),
  bigintsOf(usage, (sum) => sum.requests), bigintsOf(usage, (sum) => sum.tokens), bigintsOf(usage, (sum) => sum.byokTokens), bigintsOf(usage, (sum) => sum.promptTokens),
  bigintsOf(usage, (sum) => sum.completionTokens), bigintsOf(usage, (sum) => sum.costNanoUsd), bigintsOf(usage, (sum) => sum.chargeNanoUsd), bigintsOf(usage, (sum) => sum.adjustedNanoUsd),
  bigintsOf(usage, (sum) => sum.savingsNanoUsd), bigintsOf(usage, (sum) => sum.feesNanoUsd), textsOf(usage, (sum) => `{${sum.total.join(',')}}`), textsOf(usage, (sum) => `{${sum.firstToken.join(',')}}`),
];
/** Columns of ATTEMPTS. */
export const attemptColumns = (attempts: readonly Of<AttemptDelta>[]): Buffer[] => [
  textsOf(attempts, (sum) => sum.accountId), textsOf(attempts, (sum) => sum.day), textsOf(attempts, (sum) => sum.provider), bigintsOf(attempts, (sum) => sum.attempts),
  bigintsOf(attempts, (sum) => sum.tokens), bigintsOf(attempts, (sum) => sum.costNanoUsd), bigintsOf(attempts, (sum) => sum.estimatedNanoUsd),
];
/** Columns of TOTAL. */
export const totalColumns = (totals: readonly Of<ScopeTotals>[]): Buffer[] => [
  textsOf(totals, (sum) => sum.accountId), textsOf(totals, (sum) => sum.scope), textsOf(totals, (sum) => sum.periodId), bigintsOf(totals, (sum) => sum.chargeNanoUsd), bigintsOf(totals, (sum) => sum.tokens), bigintsOf(totals, (sum) => sum.byokTokens),
];

/** Columns of HEAD, MARK, USAGE, ATTEMPTS and TOTAL. */
function packSums(accounts: readonly BookedAccount[], marks: readonly Mark[]): Buffer[] {
  return [
    textsOf(accounts, ({ accountId }) => accountId), bigintsOf(accounts, ({ head }) => head.seq), textsOf(accounts, ({ head }) => head.hash), bigintsOf(accounts, ({ head }) => head.totalsSeq),
    textsOf(marks, ({ writer }) => writer), bigintsOf(marks, ({ watermark }) => watermark), textsOf(marks, ({ beyond }) => flatRanges(beyond)),
    ...usageColumns(accounts.flatMap(({ accountId, usage }) => usage.map((delta) => ({ accountId, ...delta })))),
    ...attemptColumns(accounts.flatMap(({ accountId, attempts }) => attempts.map((delta) => ({ accountId, ...delta })))),
    ...totalColumns(accounts.flatMap(({ accountId, deltas }) => deltas.map((delta) => ({ accountId, ...delta })))),
  ];
}

/** Books the facts in parts, with a turn of the event loop for others before each. */
async function bookAll(input: BookingInput): Promise<Booking> {
  const parts = bookInParts(input);
  for (;;) {
    await nextTurn();
    const part = parts.next();
    if (part.done === true) return part.value;
  }
}

/** All accounts that are named. */
function accountsOf(ranges: readonly CheckedRange[]): string[] {
  const ids = new Set<string>();
  for (const { attempts, outcomes } of ranges) {
    for (const { accountId } of attempts) ids.add(accountId);
    for (const { accountId } of outcomes) ids.add(accountId);
  }
  return [...ids];
}

/** Ranges whose facts were taken out. Committing one again would move its writer's watermark past facts that were never booked. */
const emptied = new WeakSet<CheckedRange>();

/** Takes the facts out of `ranges`, locks their writers and accounts, and books them. */
async function packBatch(run: RunPrepared, ranges: readonly CheckedRange[], periods: KnownPeriods, nowMs: number): Promise<PackedBatch> {
  for (const range of ranges) {
    assert(!emptied.has(range), 'A range is committed once; its message is read again for a second try.');
    emptied.add(range);
  }
  const rows = new PackedRows(ranges.reduce((sum, { attempts }) => sum + attempts.length, 0));
  const accountIds = accountsOf(ranges);
  const told = byRequest(ranges);
  for (const { attempts, outcomes } of ranges) attempts.length = outcomes.length = 0;
  const opened = await open(run, unique(ranges.map((each) => each.writer)), accountIds, told.map(({ requestId }) => requestId), periods, nowMs);
  const counts = { attempt: 0, charge: 0, adjustment: 0 };
  const booking = await bookAll({
    told, nowMs,
    requests: requestsOf(opened.rows.flatMap(storedRows)),
    heads: new Map(opened.heads.map((row) => [row.account_id, { seq: row.seq, hash: row.hash, totalsSeq: row.totals_seq }])),
    books: periods.closed.size === 0 ? undefined : { closed: periods.closed, open: periods.openAt(nowMs, periods.closed) },
    addRow: (row) => {
      counts[row.kind] += 1;
      rows.add(row);
    },
  });
  return {
    counts,
    columns: [...rows.columns(), ...packSums(booking.accounts, advance(opened.writers, ranges))],
    moved: booking.accounts
      .filter(({ chargedRequestIds, settledRequestIds }) => chargedRequestIds.length + settledRequestIds.length > 0)
      .map(({ accountId, head, previousTotalsSeq, settledRequestIds }) => ({ accountId, ledgerSeq: head.seq, previousSeq: previousTotalsSeq, requestIds: settledRequestIds })),
    outcomes: booking.outcomes,
    refused: booking.refused.map((fact) => ({ subject: '', reason: 'account_mismatch', writer: '', payload: Buffer.from(factText(fact)) })),
  };
}

interface TotalRow {
  readonly account_id: string;
  readonly scope: string;
  readonly period_id: string;
  readonly charge_nano_usd: bigint;
  readonly tokens: bigint;
  readonly byok_tokens: bigint;
}

/** Returns the new totals by account. */
async function writeBatch(run: RunPrepared, columns: readonly Buffer[]): Promise<Map<string, ScopeTotals[]>> {
  const totals = await run<TotalRow>(WRITE_BATCH, columns);
  const sums = new Map<string, ScopeTotals[]>();
  for (const row of totals) {
    const total = { scope: row.scope, periodId: row.period_id, chargeNanoUsd: row.charge_nano_usd, tokens: row.tokens, byokTokens: row.byok_tokens };
    const known = sums.get(row.account_id);
    if (known === undefined) sums.set(row.account_id, [total]);
    else known.push(total);
  }
  return sums;
}

const outcomeColumns = (outcomes: readonly CheckedOutcome[]): unknown[] => [
  textsOf(outcomes, ({ requestId }) => requestId), textsOf(outcomes, ({ accountId }) => accountId), integersOf(outcomes, ({ fact }) => fact.attempt),
  textsOf(outcomes, ({ fact }) => fact.outcome), integersOf(outcomes, ({ fact }) => (fact.toldByEdge ? 1 : 0)),
];

const deadColumns = (dead: readonly DeadEvent[], nowMs: number): unknown[] => [
  textsOf(dead, ({ reason, payload }) => createHash('sha256').update(reason).update(payload).digest('hex')), textsOf(dead, ({ subject }) => subject), textsOf(dead, ({ reason }) => reason),
  textsOf(dead, ({ writer }) => writer), textsOf(dead, ({ payload }) => Buffer.from(payload).toString('hex')), nowMs,
];

/** Books everything inside the transaction of `run`. Takes one round trip to read and one to write and commit, unless a writer or an account is new. */
export async function commitBatch(run: RunPrepared, conclude: Conclude, ranges: readonly CheckedRange[], dead: readonly DeadEvent[], periods: KnownPeriods, nowMs: number): Promise<CommittedBatch> {
  const { counts, columns, moved, outcomes, refused } = await packBatch(run, ranges, periods, nowMs);
  await nextTurn();
  // Encode all columns before sending the first statement: the commit is sent right behind the statements, and must not be if encoding one of them throws.
  const lost = [...dead, ...refused];
  const statements: (readonly [Prepared, readonly unknown[]])[] = [];
  if (outcomes.length > 0) statements.push([ADD_OUTCOMES, outcomeColumns(outcomes)]);
  if (lost.length > 0) statements.push([ADD_DEAD, deadColumns(lost, nowMs)]);
  const writes = Promise.all([ranges.length === 0 ? new Map<string, ScopeTotals[]>() : writeBatch(run, columns), ...statements.map(([statement, values]) => run(statement, values))] as const);
  conclude();
  const [sums] = await writes;
  return { accounts: moved.map((account) => ({ ...account, totals: sums.get(account.accountId) ?? [] })), rows: counts, refused: refused.length };
}
