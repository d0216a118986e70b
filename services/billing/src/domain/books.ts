/** What the books answer: reports, requests, bills, comparisons, proofs. Amounts are nano-USD; times milliseconds since the epoch. */
import type { AdjustmentRow, BillingTerms, SpendSum } from '@signalbox/ledger-core/statement';
import type { CloseBlocker, WriterReport } from '@signalbox/ledger-core/close';
import type { TokenCounts } from '@signalbox/kernel/tokens';
import type { LedgerRowView } from './ports.js';

export const GROUPS = ['day', 'model', 'provider', 'key', 'account'] as const;
export type Group = (typeof GROUPS)[number];

export interface UsageQuery {
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
  /** Group of the last row seen; empty = from the beginning. Only where rows are in the order of their groups. */
  readonly after: string;
  readonly limit: number;
  /** By what rows cost at the price cards, the dearest first; else by group, days newest first. */
  readonly dearestFirst: boolean;
}

/** Of requests that were answered, in milliseconds within 8 %; 0 = none has told. */
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

export interface RequestsQuery {
  readonly accountId: string;
  /** Half open; 0 = open. */
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
  /** At the price card, as the client was told: what is learnt later of our own cost does not show. */
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
  /** Adjustments included. */
  readonly chargeNanoUsd: bigint;
  /** Ascending. */
  readonly attempts: readonly AttemptView[];
  readonly adjustments: readonly LedgerRowView[];
}

export interface PeriodView {
  readonly period: string;
  /** 0 = open. */
  readonly closedAtMs: number;
  /** Models, plugins and corrections. */
  readonly chargeNanoUsd: bigint;
  /** As on the statement: without the fees of plugins, and without corrections. */
  readonly modelSpendNanoUsd: bigint;
}

/** Everything the account was charged in a period, and its terms for it where they are written. */
export interface PeriodCharge {
  readonly period: string;
  readonly chargeNanoUsd: bigint;
  readonly terms: BillingTerms | undefined;
}

/** What a bill is made of, read at one instant. */
export interface PeriodSums {
  readonly sums: readonly SpendSum[];
  readonly adjustments: readonly AdjustmentRow[];
  /** One for each period with charges, in no order. */
  readonly charges: readonly PeriodCharge[];
  readonly closedAtMs: number;
  /** As written after the period's end; undefined before, and for an account that had no part in it. */
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

/** What a recount did with the sums of one account that differed from its rows. */
export interface RecountedAccount {
  readonly accountId: string;
  /** Sums that were written anew, by table. */
  readonly usageDays: number;
  readonly attemptDays: number;
  readonly totals: number;
  /** Closed periods of which sums differ and were left as they are. */
  readonly closedPeriods: readonly string[];
  /** Invariants that its rows break: nothing was written. */
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

/** As it came over the bus. */
export interface UnreadMessage {
  readonly id: bigint;
  readonly subject: string;
  readonly payload: Uint8Array;
}

export interface CostChange {
  readonly requestId: string;
  readonly attempt: number;
  /** In all, ≥ 0. */
  readonly costNanoUsd: bigint;
  readonly reason: string;
}

/** Reads of the ledger for people, and the few writes that are not booking. Every method rejects with a Fault `store_unavailable` when the store is away. */
export interface BooksStore {
  usage(query: UsageQuery): Promise<{ readonly rows: readonly UsageRowView[]; readonly hasMore: boolean }>;
  /** Newest first. Undefined: `after` is no request of the account. */
  requests(query: RequestsQuery): Promise<{ readonly requests: readonly RequestView[]; readonly hasMore: boolean } | undefined>;
  /** `accountId` '' = of any account. */
  request(accountId: string, requestId: string): Promise<RequestView | undefined>;
  /** Periods that the account has rows or written terms in, in no order. */
  periods(accountId: string): Promise<readonly PeriodView[]>;
  periodSums(accountId: string, period: string): Promise<PeriodSums>;
  /** Periods with rows that are not closed, and the end of the newest closed one (0 = none is). */
  openPeriods(): Promise<{ readonly periods: readonly string[]; readonly closedUntilMs: number }>;
  /** Writes the terms of accounts for a period that is over, unless it has some or is closed: the first who comes writes all. */
  writeTerms(period: string, terms: ReadonlyMap<string, BillingTerms>): Promise<void>;
  writerReports(): Promise<readonly WriterReport[]>;
  deadWaiting(): Promise<number>;
  /** Closes the period unless what stands in the way, asked again inside the transaction, says no. `terms` are for accounts that have none written. Answers what stands in the way; `was_closed`: another replica did it. */
  close(period: { readonly id: string; readonly startMs: number; readonly endMs: number }, terms: ReadonlyMap<string, BillingTerms>, nowMs: number): Promise<'closed' | 'was_closed' | readonly CloseBlocker[]>;
  /** Compares and keeps what was found. */
  reconcile(nowMs: number): Promise<readonly ReconcileRow[]>;
  /** What the latest comparison found, of whichever replica; nothing where none was made. */
  lastReconciled(): Promise<readonly ReconcileRow[]>;
  importProviderUsage(provider: string, days: readonly ProviderDay[], nowMs: number): Promise<void>;
  /** Undefined: no such attempt. `seq` 0n: the cost was that already. */
  adjustCost(change: CostChange, openPeriod: string, nowMs: number): Promise<{ readonly seq: bigint; readonly amountNanoUsd: bigint } | undefined>;
  /** Of one account, or of all when empty. */
  verify(accountId: string): Promise<readonly InvariantCheck[]>;
  /** Writes sums that differ from their rows anew, account by account, each at one instant; of closed periods only when asked to. Of one account, or of all when empty; answers those of which a sum differed. Rows stay as they are. Safe to repeat. */
  recount(accountId: string, withClosed: boolean): Promise<readonly RecountedAccount[]>;
  deadEvents(after: bigint, limit: number): Promise<readonly DeadEventView[]>;
  /** The first message with an id above `after` that no version could read and nobody has dealt with. */
  nextUnread(after: bigint): Promise<UnreadMessage | undefined>;
  resolveDeadEvent(id: bigint, note: string, nowMs: number): Promise<boolean>;
}
