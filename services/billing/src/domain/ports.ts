/** What the domain needs of the world. */
import type { EpochMs } from '@signalbox/kernel/clock';
import type { CheckedAttempt, CheckedOutcome, Refusal } from './check.js';
import type { SeqRange } from './ranges.js';

/** One message's worth, checked. */
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
  /** Sequence at which this account's totals were announced before; 0 in an answer, which is complete by itself. */
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
  /** When it registered or asked for its watermark last. */
  readonly seenAtMs: number;
  /** Declared lost by the operator, and not heard of since. */
  readonly isDeclaredLost: boolean;
  /** Ended in order, its whole log in the ledger, and not heard of since. */
  readonly isEnded: boolean;
}

/** What the ledger answers a writer that reports. */
export interface Registered {
  readonly ledgerSeq: bigint;
  /** Names the report. */
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
  /** Over the operator's credentials; of an adjustment the difference, as of `byokTokens`. */
  readonly tokens: bigint;
  /** Over the account's own. */
  readonly byokTokens: bigint;
  readonly cardId: string;
}

/**
 * Milliseconds since the epoch by the ledger's own clock, one for all replicas: by it writers are lost and periods over. A
 * host whose clock is ahead would else take every writer for lost, and close what is still to come. Rejects when the store is away.
 */
export type LedgerNow = () => Promise<EpochMs>;

/** The store of record. Every method rejects with a Fault `store_unavailable` when it is away. */
export interface LedgerStore {
  /** Books everything in one transaction; safe to repeat with the same or overlapping facts. May take the facts out of `ranges`, so that nobody holds them while the store works. */
  commit(ranges: readonly CheckedRange[], dead: readonly DeadEvent[], nowMs: number): Promise<CommittedBatch>;
  /** Makes the writer known and answers its watermark; `openSinceMs`: reservation of its oldest attempt without an end, 0 = none, absent = this is no report of it; `owedSeq`: its newest record that is to be booked, absent = not told. Safe to repeat. */
  register(writer: string, provider: string, lastSeq: bigint, nowMs: number, openSinceMs?: number, owedSeq?: bigint): Promise<Registered>;
  /** The writer has ended: until it reports again nobody waits for it. False, and nothing has changed, unless `reportId` names its latest report, in which it had nothing open, and the ledger has its log up to `lastSeq`, its newest record. Safe to repeat. */
  deregister(writer: string, lastSeq: bigint, reportId: string): Promise<boolean>;
  watermarks(): Promise<readonly WriterMarkRow[]>;
  /** Nobody waits for the writer until it is heard of again; kept for ever with `note`. `alive` = it was heard of since `aliveSinceMs`, nothing has changed. Safe to repeat. */
  declareLost(writer: string, note: string, nowMs: number, aliveSinceMs: number): Promise<'unknown' | 'alive' | 'lost'>;
  /** All-time totals and those of periods that were recent at `nowMs` by the ledger's own clock, with the requests charged last and those of `asked` that are charged. */
  totals(accountId: string, asked: readonly string[], nowMs: number): Promise<AccountTotals>;
  /** Rows with seq above `after` and fromMs ≤ at < toMs (0 = open), ascending, at most `limit`. */
  ledger(query: { readonly accountId: string; readonly fromMs: bigint; readonly toMs: bigint; readonly after: bigint; readonly limit: number }): Promise<readonly LedgerRowView[]>;
}
