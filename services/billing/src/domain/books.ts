/** Types of the books: reports, requests, bills, reconciliation, verification. Amounts are nano-USD; times milliseconds since the epoch. */
import type { AdjustmentRow, BillingTerms, SpendSum } from '@signalbox/ledger-core/statement';
import type { CloseBlocker, WriterReport } from '@signalbox/ledger-core/close';
import type { TokenCounts } from '@signalbox/kernel/tokens';
import type { LedgerRowView } from './ports.js';

export const GROUPS = ['day', 'model', 'provider', 'key', 'account'] as const;
export type Group = (typeof GROUPS)[number];

/** Of a question that may take many statements. Aborted = nobody waits for the answer: no further statement is begun, and the promise rejects. */
interface Awaited {
  readonly signal?: AbortSignal;
}

export interface UsageQuery extends Awaited {
  /** Empty = all accounts. */
  readonly accountId: string;
  /** UTC dates, both included; empty = open. */
  readonly fromDay: string;
  readonly toDay: string;
  readonly groupBy: Group;
  /** Empty = any. */
  readonly model: string;
  readonly provider: string;
  readonly keyId: string;
  /** Group of the last row seen; empty = from the beginning. Only if rows are ordered by group. */
  readonly after: string;
  readonly limit: number;
  /** Order by cost at the price cards, highest first; otherwise by group, with days newest first. */
  readonly dearestFirst: boolean;
}

/** Percentiles over the answered requests, in milliseconds, accurate to 8 %; 0 = unknown. */
export interface LatencyView {
  readonly totalMsP50: number;
  readonly totalMsP95: number;
  readonly ttftMsP50: number;
  readonly ttftMsP95: number;
}

export interface UsageRowView extends LatencyView {
  readonly group: string;
  readonly requests: bigint;
  readonly promptTokens: bigint;
  readonly completionTokens: bigint;
  readonly costNanoUsd: bigint;
  readonly chargeNanoUsd: bigint;
  readonly savingsNanoUsd: bigint;
}

export interface RequestsQuery extends Awaited {
  readonly accountId: string;
  /** `fromMs` inclusive, `toMs` exclusive; 0 = unbounded. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Empty = any. */
  readonly model: string;
  readonly provider: string;
  readonly keyId: string;
  readonly status: '' | 'completed' | 'failed';
  readonly after: string;
  readonly limit: number;
}

export interface AttemptView {
  readonly attempt: number;
  readonly provider: string;
  readonly model: string;
  readonly endpointId: string;
  readonly httpStatus: number;
  readonly failure: string;
  readonly tokens: TokenCounts;
  /** At the price card, as the client was told; later corrections of our own cost are not shown. */
  readonly costNanoUsd: bigint;
  readonly savingsNanoUsd: bigint;
  readonly charged: boolean;
  readonly byok: boolean;
  readonly source: string;
  readonly flags: readonly string[];
  readonly cardId: string;
  readonly ttftMs: number;
  readonly totalMs: number;
  readonly finishReason: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  readonly routedFrom: string;
  readonly decisionId: string;
}

export interface RequestView {
  readonly id: string;
  readonly accountId: string;
  /** Time of the charge. */
  readonly atMs: number;
  readonly keyId: string;
  readonly period: string;
  /** With adjustments. */
  readonly chargeNanoUsd: bigint;
  /** Ascending. */
  readonly attempts: readonly AttemptView[];
  /** Corrections of the charge; rounds that were booked after it are none. */
  readonly adjustments: readonly LedgerRowView[];
}

export interface PeriodView {
  readonly period: string;
  /** 0 = open. */
  readonly closedAtMs: number;
  /** Models, plugins and corrections. */
  readonly chargeNanoUsd: bigint;
  /** As on the statement: without plugin fees and corrections. */
  readonly modelSpendNanoUsd: bigint;
}

/** Everything the account was charged in a period, and its terms for the period if they are written. */
export interface PeriodCharge {
  readonly period: string;
  readonly chargeNanoUsd: bigint;
  readonly terms: BillingTerms | undefined;
}

/** Everything that a bill is made from, read in one snapshot. */
export interface PeriodSums {
  readonly sums: readonly SpendSum[];
  readonly adjustments: readonly AdjustmentRow[];
  /** One for each period with charges, in no order. */
  readonly charges: readonly PeriodCharge[];
  readonly closedAtMs: number;
  /** As written after the end of the period; undefined before that, and for an account that did not exist in it. */
  readonly terms: BillingTerms | undefined;
}

export interface ReconcileRow {
  readonly kind: 'provider' | 'account' | 'writer' | 'dead_events';
  readonly subject: string;
  readonly day: string;
  readonly oursNanoUsd: bigint;
  readonly theirsNanoUsd: bigint;
  readonly status: 'matched' | 'differs' | 'unreported' | 'unbooked';
  readonly gaps: bigint;
}

export interface ProviderDay {
  readonly day: string;
  readonly costNanoUsd: bigint;
  readonly tokens: bigint;
}

export interface InvariantCheck {
  readonly invariant: string;
  readonly description: string;
  readonly violations: bigint;
  /** At most 20. */
  readonly examples: readonly string[];
}

/** A part of a verification of all accounts. */
export interface VerifiedPart {
  readonly checks: readonly InvariantCheck[];
  /** Accounts in this part. */
  readonly accounts: number;
  /** The last account of the part; empty = no account is left, and providers and writers were checked too. */
  readonly next: string;
}

/** What a recount did for one account whose sums differed from its rows. */
export interface RecountedAccount {
  readonly accountId: string;
  /** Number of corrected sums, by table. */
  readonly usageDays: number;
  readonly attemptDays: number;
  readonly totals: number;
  /** Closed periods whose sums differ and were left as they are. */
  readonly closedPeriods: readonly string[];
  /** Invariants that the account's rows violate; if there are any, nothing was written. */
  readonly brokenInvariants: readonly string[];
}

export interface DeadEventView {
  readonly id: bigint;
  readonly subject: string;
  readonly reason: string;
  readonly writer: string;
  readonly atMs: number;
  readonly payloadBytes: number;
  readonly resolved: boolean;
}

/** A message as received from the bus. */
export interface UnreadMessage {
  readonly id: bigint;
  readonly subject: string;
  readonly payload: Uint8Array;
}

export interface CostChange {
  readonly requestId: string;
  readonly attempt: number;
  /** The total cost, ≥ 0. */
  readonly costNanoUsd: bigint;
  readonly reason: string;
}

/** Reads the ledger for people, and does the few writes that are not booking. Every method rejects with a Fault `store_unavailable` if the store is away. */
export interface BooksStore {
  usage(query: UsageQuery): Promise<{ readonly rows: readonly UsageRowView[]; readonly hasMore: boolean }>;
  /** Newest first. Undefined if `after` is not a request of the account. */
  requests(query: RequestsQuery): Promise<{ readonly requests: readonly RequestView[]; readonly hasMore: boolean } | undefined>;
  /** `accountId` '' = of any account. */
  request(accountId: string, requestId: string): Promise<RequestView | undefined>;
  /** Periods in which the account has rows or written terms, in no order. */
  periods(accountId: string): Promise<readonly PeriodView[]>;
  periodSums(accountId: string, period: string): Promise<PeriodSums>;
  /** Open periods with rows, and the end of the newest closed one (0 = none is closed). */
  openPeriods(): Promise<{ readonly periods: readonly string[]; readonly closedUntilMs: number }>;
  /** Those of these accounts that have charges or corrections in the period. */
  chargedIn(period: string, accountIds: readonly string[]): Promise<readonly string[]>;
  /** Writes the terms of all accounts for a period that is over, unless it already has terms or is closed. */
  writeTerms(period: string, terms: ReadonlyMap<string, BillingTerms>): Promise<void>;
  writerReports(): Promise<readonly WriterReport[]>;
  deadWaiting(): Promise<number>;
  /** Closes the period unless something blocks that, which is checked again inside the transaction; returns the blockers. `terms` are for accounts that have none written. `was_closed`: another replica has closed it. */
  close(period: { readonly id: string; readonly startMs: number; readonly endMs: number }, terms: ReadonlyMap<string, BillingTerms>, nowMs: number): Promise<'closed' | 'was_closed' | readonly CloseBlocker[]>;
  /** Compares the ledger with the providers' figures and its own sums, and stores the result. */
  reconcile(nowMs: number): Promise<readonly ReconcileRow[]>;
  /** The result of the latest reconciliation, of any replica; empty if there was none. */
  lastReconciled(): Promise<readonly ReconcileRow[]>;
  importProviderUsage(provider: string, days: readonly ProviderDay[], nowMs: number): Promise<void>;
  /** Undefined = no such attempt. `seq` 0n = the attempt already had that cost. */
  adjustCost(change: CostChange, openPeriod: string, nowMs: number): Promise<{ readonly seq: bigint; readonly amountNanoUsd: bigint } | undefined>;
  /** Verifies one account, or all if empty. */
  verify(accountId: string): Promise<readonly InvariantCheck[]>;
  /** Verifies the accounts behind `after` ('' = all) in the order of their ids, at least one, until `isOver`; then, if none is left, providers and writers. */
  verifyFrom(after: string, isOver: () => boolean): Promise<VerifiedPart>;
  /** Corrects sums that differ from their rows, of one account or of all if empty, each account in one transaction. Sums of closed periods are corrected only if asked for. Returns the accounts with differences. Rows are never changed. Safe to repeat. */
  recount(accountId: string, withClosed: boolean): Promise<readonly RecountedAccount[]>;
  deadEvents(after: bigint, limit: number): Promise<readonly DeadEventView[]>;
  /** The first message with an id above `after` that could not be read and is not resolved. */
  nextUnread(after: bigint): Promise<UnreadMessage | undefined>;
  resolveDeadEvent(id: bigint, note: string, nowMs: number): Promise<boolean>;
}
