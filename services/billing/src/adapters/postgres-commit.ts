/** One batch of usage as one transaction: its locks, what is known, the booking, its writes. */
import { createHash } from 'node:crypto';
import { CHAIN_START } from '@signalbox/ledger-core/hash-chain';
import type { RunPrepared } from '@signalbox/sql/prepared';
import { book } from '../domain/booking.js';
import type { CheckedOutcome } from '../domain/check.js';
import type { BookedAccount, LedgerEntry } from '../domain/open-account.js';
import type { CheckedRange, CommittedBatch, DeadEvent, ScopeTotals } from '../domain/ports.js';
import { mergeRanges, type Progress, type SeqRange } from '../domain/ranges.js';
import { plainChargeDetail, requestsOf, type AttemptDetail, type ChargeDetail, type StoredRow } from '../domain/request.js';
import { bigintArray, integerArray, textArray } from './arrays.js';
import { packRows } from './packed-rows.js';
import { ADD_DEAD, ADD_HEADS, ADD_OUTCOMES, ADD_WRITERS, LOCK_HEADS, LOCK_WRITERS, READ_CLOSED, READ_ROWS, SHARE_PERIODS, WRITE_BATCH } from './statements.js';

function unique(values: readonly string[]): string[] {
  return [...new Set(values)];
}

function column<Row>(rows: readonly Row[], pick: (row: Row) => string): Buffer {
  return textArray(rows.map(pick));
}

/** `{1,5,9,9}`: first and last of each range, in one row. */
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
  /** Whole numbers as text: the driver reads arrays of them so. */
  readonly beyond: readonly string[];
}

interface Mark extends Progress {
  readonly writer: string;
}

/** How far each writer is once `ranges` are committed. */
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
  /** A JSON object. */
  readonly detail: string;
  readonly has_charge: boolean;
}

export function storedRows(row: KnownRow): StoredRow[] {
  const common = {
    requestId: row.request_id, accountId: row.account_id, keyId: row.key_id, attempt: row.attempt, amountNanoUsd: row.amount_nano_usd, tokens: row.tokens, byokTokens: row.byok_tokens,
    source: row.source, provider: row.provider, cardId: row.card_id, period: row.period, atMs: row.at_ms,
  };
  if (row.kind !== 'attempt') return [{ ...common, kind: row.kind, detail: JSON.parse(row.detail) as ChargeDetail }];
  const attempt: StoredRow = { ...common, kind: 'attempt', detail: JSON.parse(row.detail) as AttemptDetail };
  return row.has_charge ? [attempt, { ...common, kind: 'charge', detail: JSON.parse(plainChargeDetail(row.attempt)) as ChargeDetail }] : [attempt];
}

/** Closed periods as known to this process; they never open again, so only new ones are read. */
export interface KnownPeriods {
  lastId: bigint;
  readonly closed: Set<string>;
  /** Period that takes what comes late, at an instant. */
  openAt(nowMs: number, closed: ReadonlySet<string>): string;
}

interface Opened {
  readonly writers: readonly WriterRow[];
  readonly heads: readonly HeadRow[];
  readonly rows: readonly KnownRow[];
}

/** Locks writers and accounts, then reads the requests, so that what another replica booked before is seen: in one round trip unless a writer or an account is new. */
async function open(run: RunPrepared, writers: readonly string[], accountIds: readonly string[], requestIds: readonly string[], periods: KnownPeriods, nowMs: number): Promise<Opened> {
  const names = [textArray(writers)];
  const ids = [textArray(accountIds)];
  const lockAndRead = async (): Promise<Opened> => {
    const [, closed, known, heads, rows] = await Promise.all([run(SHARE_PERIODS, []), run<{ id: bigint; period: string }>(READ_CLOSED, [periods.lastId]), run<WriterRow>(LOCK_WRITERS, names), run<HeadRow>(LOCK_HEADS, ids), run<KnownRow>(READ_ROWS, [textArray(requestIds)])]);
    for (const { id, period } of closed) {
      periods.closed.add(period);
      if (id > periods.lastId) periods.lastId = id;
    }
    return { writers: known, heads, rows };
  };
  const opened = await lockAndRead();
  if (opened.writers.length === writers.length && opened.heads.length === accountIds.length) return opened;
  await Promise.all([run(ADD_WRITERS, [...names, nowMs]), run(ADD_HEADS, [...ids, CHAIN_START])]);
  return lockAndRead();
}

/** A Postgres literal of an array of texts. */
function flagsLiteral(flags: readonly string[]): string {
  return flags.length === 0 ? '{}' : `{${flags.map((flag) => `"${flag.replace(/["\\]/g, '\\$&')}"`).join(',')}}`;
}

/** Requests are answered between two parts of a batch: in one go it would hold the event loop of an all-in-one for milliseconds. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

interface TotalRow {
  readonly account_id: string;
  readonly scope: string;
  readonly period_id: string;
  readonly charge_nano_usd: bigint;
  readonly tokens: bigint;
  readonly byok_tokens: bigint;
}

/** Answers the new totals by account. */
async function writeBatch(run: RunPrepared, entries: readonly LedgerEntry[], accounts: readonly BookedAccount[], marks: readonly Mark[], nowMs: number): Promise<Map<string, ScopeTotals[]>> {
  await nextTurn();
  const packed = packRows(entries);
  const rows = packed.map(({ row }) => row);
  const deltas = accounts.flatMap(({ accountId, deltas: each }) => each.map((delta) => ({ accountId, ...delta })));
  const usage = accounts.flatMap(({ accountId, usage: each }) => each.map((delta) => ({ accountId, ...delta })));
  const attempts = accounts.flatMap(({ accountId, attempts: each }) => each.map((delta) => ({ accountId, ...delta })));
  const keys = [
    column(rows, (row) => row.accountId), bigintArray(rows.map((row) => row.seq)), column(rows, (row) => row.kind), column(rows, (row) => row.requestId),
    integerArray(rows.map((row) => row.attempt)), bigintArray(rows.map((row) => row.amountNanoUsd)), bigintArray(rows.map((row) => row.tokens)), bigintArray(rows.map((row) => row.byokTokens)),
  ];
  await nextTurn();
  const values = [
    column(rows, (row) => row.source), column(rows, (row) => flagsLiteral(row.flags)), column(rows, (row) => row.provider), column(rows, (row) => row.period),
    bigintArray(rows.map((row) => row.atMs)), column(rows, (row) => row.appliesTo), column(rows, (row) => row.cardId), column(rows, (row) => row.keyId),
    column(rows, (row) => row.detail), column(rows, (row) => row.hash), textArray(packed.map(({ chargeHash }) => chargeHash)),
  ];
  await nextTurn();
  const totals = await run<TotalRow>(WRITE_BATCH, [
    ...keys, ...values,
    column(accounts, ({ accountId }) => accountId), bigintArray(accounts.map(({ head }) => head.seq)), column(accounts, ({ head }) => head.hash), bigintArray(accounts.map(({ head }) => head.totalsSeq)),
    column(marks, ({ writer }) => writer), bigintArray(marks.map(({ watermark }) => watermark)), column(marks, ({ beyond }) => flatRanges(beyond)),
    column(usage, (sum) => sum.accountId), column(usage, (sum) => sum.period), column(usage, (sum) => sum.day), column(usage, (sum) => sum.model), column(usage, (sum) => sum.provider), column(usage, (sum) => sum.keyId),
    bigintArray(usage.map((sum) => BigInt(sum.requests))), bigintArray(usage.map((sum) => sum.tokens)), bigintArray(usage.map((sum) => sum.byokTokens)), bigintArray(usage.map((sum) => sum.promptTokens)),
    bigintArray(usage.map((sum) => sum.completionTokens)), bigintArray(usage.map((sum) => sum.costNanoUsd)), bigintArray(usage.map((sum) => sum.chargeNanoUsd)), bigintArray(usage.map((sum) => sum.adjustedNanoUsd)),
    bigintArray(usage.map((sum) => sum.savingsNanoUsd)), column(usage, (sum) => `{${sum.total.join(',')}}`), column(usage, (sum) => `{${sum.firstToken.join(',')}}`),
    column(attempts, (sum) => sum.accountId), column(attempts, (sum) => sum.day), column(attempts, (sum) => sum.provider), bigintArray(attempts.map((sum) => BigInt(sum.attempts))),
    bigintArray(attempts.map((sum) => sum.tokens)), bigintArray(attempts.map((sum) => sum.costNanoUsd)), bigintArray(attempts.map((sum) => sum.estimatedNanoUsd)),
    column(deltas, (delta) => delta.accountId), column(deltas, (delta) => delta.scope), column(deltas, (delta) => delta.periodId), bigintArray(deltas.map((delta) => delta.chargeNanoUsd)),
    bigintArray(deltas.map((delta) => delta.tokens)), bigintArray(deltas.map((delta) => delta.byokTokens)),
    nowMs,
  ]);
  const sums = new Map<string, ScopeTotals[]>();
  for (const row of totals) {
    const total = { scope: row.scope, periodId: row.period_id, chargeNanoUsd: row.charge_nano_usd, tokens: row.tokens, byokTokens: row.byok_tokens };
    const known = sums.get(row.account_id);
    if (known === undefined) sums.set(row.account_id, [total]);
    else known.push(total);
  }
  return sums;
}

async function writeOutcomes(run: RunPrepared, outcomes: readonly CheckedOutcome[]): Promise<void> {
  if (outcomes.length === 0) return;
  await run(ADD_OUTCOMES, [
    column(outcomes, ({ requestId }) => requestId), column(outcomes, ({ accountId }) => accountId), integerArray(outcomes.map(({ fact }) => fact.attempt)),
    column(outcomes, ({ fact }) => fact.outcome), integerArray(outcomes.map(({ fact }) => (fact.toldByEdge ? 1 : 0))),
  ]);
}

async function writeDead(run: RunPrepared, dead: readonly DeadEvent[], nowMs: number): Promise<void> {
  if (dead.length === 0) return;
  await run(ADD_DEAD, [
    column(dead, ({ reason, payload }) => createHash('sha256').update(reason).update(payload).digest('hex')), column(dead, ({ subject }) => subject), column(dead, ({ reason }) => reason),
    column(dead, ({ writer }) => writer), column(dead, ({ payload }) => Buffer.from(payload).toString('hex')), nowMs,
  ]);
}

const factText = (fact: unknown): string => JSON.stringify(fact, (_name, part: unknown) => (typeof part === 'bigint' ? part.toString() : part));

/** Books everything inside the transaction of `run`. */
export async function commitBatch(run: RunPrepared, ranges: readonly CheckedRange[], dead: readonly DeadEvent[], periods: KnownPeriods, nowMs: number): Promise<CommittedBatch> {
  const attempts = ranges.flatMap((each) => each.attempts);
  const outcomes = ranges.flatMap((each) => each.outcomes);
  const facts = [...attempts, ...outcomes];
  const writers = unique(ranges.map((each) => each.writer));
  const opened = await open(run, writers, unique(facts.map((fact) => fact.accountId)), unique(facts.map((fact) => fact.requestId)), periods, nowMs);
  await nextTurn();
  const heads = new Map(opened.heads.map((row) => [row.account_id, { seq: row.seq, hash: row.hash, totalsSeq: row.totals_seq }]));
  const booking = book({ attempts, outcomes, requests: requestsOf(opened.rows.flatMap(storedRows)), heads, nowMs, books: periods.closed.size === 0 ? undefined : { closed: periods.closed, open: periods.openAt(nowMs, periods.closed) } });
  const marks = advance(opened.writers, ranges);
  const sums = ranges.length === 0 ? new Map<string, ScopeTotals[]>() : await writeBatch(run, booking.rows, booking.accounts, marks, nowMs);
  await writeOutcomes(run, booking.outcomes);
  const refused: DeadEvent[] = booking.refused.map((fact) => ({ subject: '', reason: 'account_mismatch', writer: '', payload: Buffer.from(factText(fact)) }));
  await writeDead(run, [...dead, ...refused], nowMs);
  const counts = { attempt: 0, charge: 0, adjustment: 0 };
  for (const row of booking.rows) counts[row.kind] += 1;
  const accounts = booking.accounts
    .filter(({ chargedRequestIds }) => chargedRequestIds.length > 0)
    .map(({ accountId, head, previousTotalsSeq, chargedRequestIds }) => ({ accountId, ledgerSeq: head.seq, previousSeq: previousTotalsSeq, totals: sums.get(accountId) ?? [], requestIds: chargedRequestIds }));
  return { accounts, rows: counts, refused: refused.length };
}
