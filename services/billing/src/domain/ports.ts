/** Interfaces that the domain needs, and their types. */
import type { EpochMs } from '@signalbox/kernel/clock';
import type { CheckedAttempt, CheckedOutcome, Refusal } from './check.js';
import type { SeqRange } from './ranges.js';

/** The checked facts of one message. */
export interface CheckedRange {
  readonly writer: string;
  readonly range: SeqRange;
  readonly attempts: CheckedAttempt[];
  readonly outcomes: CheckedOutcome[];
}

export interface DeadEvent {
  readonly subject: string;
  readonly reason: Refusal;
  readonly writer: string;
  readonly payload: Uint8Array;
}

export interface ScopeTotals {
  readonly scope: string;
  readonly periodId: string;
  readonly chargeNanoUsd: bigint;
  readonly tokens: bigint;
  readonly byokTokens: bigint;
}

export interface AccountTotals {
  readonly accountId: string;
  readonly ledgerSeq: bigint;
  /** Sequence at which this account's totals were previously announced; 0 in an answer to a call, which is complete. */
  readonly previousSeq: bigint;
  readonly totals: readonly ScopeTotals[];
  readonly requestIds: readonly string[];
}

export interface CommittedBatch {
  readonly accounts: readonly AccountTotals[];
  readonly rows: Readonly<Record<'attempt' | 'charge' | 'adjustment', number>>;
  readonly refused: number;
}

export interface WriterMarkRow {
  readonly writer: string;
  readonly provider: string;
  readonly lastSeq: bigint;
  readonly ledgerSeq: bigint;
  readonly gaps: bigint;
  /** When it last registered or asked for its watermark. */
  readonly seenAtMs: number;
  /** Declared lost by the operator, and not heard from since. */
  readonly isDeclaredLost: boolean;
  /** Stopped in order with its whole log in the ledger, and not heard from since. */
  readonly isEnded: boolean;
}

/** The ledger's answer to a writer's report. */
export interface Registered {
  readonly ledgerSeq: bigint;
  /** Id of the report. */
  readonly reportId: string;
}

export interface LedgerRowView {
  readonly seq: bigint;
  readonly kind: string;
  readonly requestId: string;
  readonly attempt: number;
  readonly amountNanoUsd: bigint;
  readonly source: string;
  readonly charged: boolean;
  readonly flags: readonly string[];
  readonly provider: string;
  readonly period: string;
  readonly atMs: bigint;
  readonly prevHash: string;
  readonly hash: string;
  readonly appliesTo: string;
  /** Tokens used with the operator's credentials; in an adjustment the difference, also for `byokTokens`. */
  readonly tokens: bigint;
  /** Tokens used with the account's own credential. */
  readonly byokTokens: bigint;
  readonly cardId: string;
}

/**
 * Milliseconds since the epoch by the ledger's own clock, which all replicas share. It decides when writers are lost and periods
 * over: with its own clock, a host that is ahead would take every writer for lost and close periods early. Rejects if the store
 * is away.
 */
export type LedgerNow = () => Promise<EpochMs>;

/** The store of record. Every method rejects with a Fault `store_unavailable` if it is away. */
export interface LedgerStore {
  /** Books everything in one transaction; safe to repeat with the same or overlapping facts. May remove the facts from `ranges`, so that they can be garbage-collected while the store works. */
  commit(ranges: readonly CheckedRange[], dead: readonly DeadEvent[], nowMs: number): Promise<CommittedBatch>;
  /** Registers the writer and returns its watermark. `openSinceMs`: when its oldest attempt without an end was reserved; 0 = there is none, absent = not reported. `owedSeq`: its newest record that is to be booked; absent = not reported. Safe to repeat. */
  register(writer: string, provider: string, lastSeq: bigint, nowMs: number, openSinceMs?: number, owedSeq?: bigint): Promise<Registered>;
  /** Notes that the writer has ended; until it reports again, nobody waits for it. Requires that `reportId` is its latest report, that this had nothing open, and that the ledger has its log up to `lastSeq`, its newest record; otherwise returns false and changes nothing. Safe to repeat. */
  deregister(writer: string, lastSeq: bigint, reportId: string): Promise<boolean>;
  watermarks(): Promise<readonly WriterMarkRow[]>;
  /** Declares the writer lost: nobody waits for it until it reports again. The declaration and its `note` are kept for ever. `alive` = it has reported since `aliveSinceMs`, and nothing was changed. Safe to repeat. */
  declareLost(writer: string, note: string, nowMs: number, aliveSinceMs: number): Promise<'unknown' | 'alive' | 'lost'>;
  /** All-time totals, and those of periods that are recent at `nowMs` by the ledger's own clock. With the settled ones of the latest charged requests and of `asked`. */
  totals(accountId: string, asked: readonly string[], nowMs: number): Promise<AccountTotals>;
  /** Rows with seq above `after` and fromMs ≤ at < toMs (0 = unbounded), ascending, at most `limit`. */
  ledger(query: { readonly accountId: string; readonly fromMs: bigint; readonly toMs: bigint; readonly after: bigint; readonly limit: number; readonly signal?: AbortSignal }): Promise<readonly LedgerRowView[]>;
}
