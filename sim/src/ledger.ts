/** The ledger's store in memory, in place of Postgres, with billing's own domain code for booking. */
import {
  book, isSettled, keptRows, mergeRanges, NEW_HEAD, requestsOf,
  type AccountHead, type AccountTotals, type CheckedAttempt, type CheckedOutcome, type CommittedBatch, type DeadEvent, type LedgerEntry, type LedgerStore, type Progress, type Registered,
  type RequestState, type ScopeTotals, type StoredRow,
} from '@signalbox/billing/proof';
import { Fault } from '@signalbox/kernel/fault';
import { isWhole } from '@signalbox/ledger-core/fold';
import { EPOCH_MS, type Life } from './life.js';
import type { Amounts } from './limits.js';
import type { Mutant } from './mutants.js';
import type { Random } from './random.js';
import type { Scheduler } from './scheduler.js';

interface Writer {
  readonly provider: string;
  readonly lastSeq: bigint;
  readonly progress: Progress;
  /** Id of its latest report. */
  readonly reportId: string;
  readonly seenAtMs: number;
  readonly hasOpen: boolean;
  readonly endedReportId: string;
}

interface Tables {
  readonly rows: Map<string, readonly LedgerEntry[]>;
  readonly heads: Map<string, AccountHead>;
  /** By request: its ledger rows, and outcomes that are in no row. */
  readonly stored: Map<string, readonly StoredRow[]>;
  readonly totals: Map<string, ScopeTotals & { readonly accountId: string }>;
  readonly writers: Map<string, Writer>;
  readonly dead: DeadEvent[];
}

const NEW_WRITER: Writer = { provider: '', lastSeq: 0n, progress: { watermark: 0n, beyond: [] }, reportId: '', seenAtMs: 0, hasOpen: false, endedReportId: 'none' };
/** Same condition as in the table's query. */
const isBooked = ({ lastSeq, progress }: Writer): boolean => progress.watermark >= lastSeq && progress.beyond.length === 0;

function emptyTables(): Tables {
  return { rows: new Map(), heads: new Map(), stored: new Map(), totals: new Map(), writers: new Map(), dead: [] };
}

function copyOf({ rows, heads, stored, totals, writers, dead }: Tables): Tables {
  return { rows: new Map(rows), heads: new Map(heads), stored: new Map(stored), totals: new Map(totals), writers: new Map(writers), dead: [...dead] };
}

export class SimLedger {
  isUp = true;
  /** Probability that a commit is done but its answer is lost. */
  lostReply = 0;
  /** Called after each commit. */
  onCommit: () => void = () => undefined;
  /** States by the rows from which they were read; rows never change. */
  private readonly states = new WeakMap<readonly StoredRow[], RequestState>();
  private tables = emptyTables();
  private backup = emptyTables();
  /** Counter for report ids. */
  private reports = 0;

  /** Implements two mutants: one without unique keys, and one in which writers end too early. */
  constructor(
    private readonly scheduler: Scheduler,
    private readonly random: Random,
    private readonly mutant: Mutant | undefined,
  ) {}

  calm(): void {
    this.isUp = true;
    this.lostReply = 0;
  }

  takeBackup(): void {
    this.backup = copyOf(this.tables);
  }

  /**
   * Restores the latest backup: later commits are lost. Returns by how much less it now shows for each account: charges, even
   * if the attempt itself is still there; and attempts of requests that were not charged yet, since another round may be booked while these are unknown.
   */
  restore(): ReadonlyMap<string, Amounts> {
    this.scheduler.say(() => 'ledger restored');
    const accountIds = [...this.tables.heads.keys()];
    const uncharged = new Set([...this.tables.stored.keys()].filter((requestId) => this.bookedFor(requestId) === undefined));
    const told = (accountId: string): Amounts => {
      const [charged, attempts] = [this.spentBy(accountId), this.attemptsOf(accountId, uncharged)];
      return { charge: charged.charge + attempts.charge, tokens: charged.tokens + attempts.tokens };
    };
    const before = new Map(accountIds.map((accountId) => [accountId, told(accountId)]));
    this.tables = copyOf(this.backup);
    return new Map([...before].map(([accountId, { charge, tokens }]) => {
      const after = told(accountId);
      return [accountId, { charge: charge - after.charge, tokens: tokens - after.tokens }];
    }));
  }

  rowsOf(accountId: string): readonly LedgerEntry[] {
    return this.tables.rows.get(accountId) ?? [];
  }

  /** As in the table of totals. */
  totalOf(accountId: string, scope = 'account', periodId = 'total'): ScopeTotals | undefined {
    return this.tables.totals.get(`${accountId}|${scope}|${periodId}`);
  }

  allTotals(): ReadonlyMap<string, ScopeTotals & { readonly accountId: string }> {
    return this.tables.totals;
  }

  requestOf(requestId: string): RequestState | undefined {
    const rows = this.tables.stored.get(requestId);
    if (rows === undefined) return undefined;
    let state = this.states.get(rows);
    if (state === undefined && (state = requestsOf(rows).get(requestId)) !== undefined) this.states.set(rows, state);
    return state;
  }

  /** Attempts counted in the latest row about the request's charge. */
  chargedAttempts(requestId: string): readonly number[] {
    const latest = this.tables.stored.get(requestId)?.findLast(({ kind }) => kind === 'charge' || kind === 'adjustment');
    return latest === undefined || latest.kind === 'attempt' ? [] : latest.detail.charged;
  }

  /** The account's charges, and its tokens of both kinds. */
  spentBy(accountId: string): Amounts {
    const { chargeNanoUsd = 0n, tokens = 0n, byokTokens = 0n } = this.totalOf(accountId) ?? {};
    return { charge: chargeNanoUsd, tokens: tokens + byokTokens };
  }

  /** Cost of the attempts of these requests. */
  private attemptsOf(accountId: string, requestIds: ReadonlySet<string>): Amounts {
    let charge = 0n;
    let tokens = 0n;
    for (const requestId of requestIds) {
      const rows = this.tables.stored.get(requestId) ?? [];
      if (rows[0]?.accountId !== accountId) continue;
      for (const row of rows) {
        charge += row.amountNanoUsd;
        tokens += row.tokens + row.byokTokens;
      }
    }
    return { charge, tokens };
  }

  /** The same for one request; undefined while it has no charge row. */
  bookedFor(requestId: string): Amounts | undefined {
    const booked = this.requestOf(requestId)?.booked;
    return booked === undefined ? undefined : { charge: booked.chargeNanoUsd, tokens: BigInt(booked.tokens + booked.byokTokens) };
  }

  /** True if the writer has ended, so that admissions do not wait for it. */
  hasEnded(writer: string): boolean {
    const known = this.tables.writers.get(writer);
    if (known === undefined) return false;
    return known.endedReportId === known.reportId && (isBooked(known) || this.mutant === 'end-early');
  }

  /** For the mutant that ignores what is outstanding. */
  endEarly(writer: string): void {
    const known = this.tables.writers.get(writer);
    if (known !== undefined) this.tables.writers.set(writer, { ...known, endedReportId: known.reportId });
  }

  writers(): ReadonlyMap<string, Writer> {
    return this.tables.writers;
  }

  dead(): readonly DeadEvent[] {
    return this.tables.dead;
  }

  /** One transaction. */
  commitNow(ranges: Parameters<LedgerStore['commit']>[0], dead: readonly DeadEvent[], nowMs: number): CommittedBatch {
    const { tables } = this;
    for (const { writer, range } of ranges) {
      const known = tables.writers.get(writer) ?? { ...NEW_WRITER, seenAtMs: nowMs };
      tables.writers.set(writer, { ...known, progress: mergeRanges(known.progress, [range]) });
    }
    const attempts: readonly CheckedAttempt[] = ranges.flatMap((range) => range.attempts);
    const outcomes: readonly CheckedOutcome[] = ranges.flatMap((range) => range.outcomes);
    const booking = book({ attempts, outcomes, requests: this.mutant !== 'no-unique-key' ? this.statesOf([...attempts, ...outcomes]) : new Map(), heads: tables.heads, nowMs });
    for (const row of booking.rows) {
      tables.rows.set(row.accountId, [...(tables.rows.get(row.accountId) ?? []), row]);
      this.store(keptRows([row], []));
    }
    for (const outcome of booking.outcomes) this.store(keptRows([], [outcome]));
    tables.dead.push(...dead);
    const accounts: AccountTotals[] = [];
    for (const { accountId, head, previousTotalsSeq, deltas, chargedRequestIds, settledRequestIds } of booking.accounts) {
      tables.heads.set(accountId, head);
      const sums = deltas.map((delta) => {
        const key = `${accountId}|${delta.scope}|${delta.periodId}`;
        const known = tables.totals.get(key);
        const sum = {
          accountId, scope: delta.scope, periodId: delta.periodId,
          chargeNanoUsd: (known?.chargeNanoUsd ?? 0n) + delta.chargeNanoUsd, tokens: (known?.tokens ?? 0n) + delta.tokens, byokTokens: (known?.byokTokens ?? 0n) + delta.byokTokens,
        };
        tables.totals.set(key, sum);
        return sum;
      });
      if (chargedRequestIds.length + settledRequestIds.length > 0) accounts.push({ accountId, ledgerSeq: head.seq, previousSeq: previousTotalsSeq, totals: sums, requestIds: settledRequestIds });
    }
    this.scheduler.say(() => `ledger commits ${ranges.map(({ writer, range }) => `${writer} ${range.first}–${range.last}`).join(', ')}: ${booking.rows.map(({ kind, requestId, attempt, amountNanoUsd, source }) => `${kind} ${requestId}/${attempt} ${amountNanoUsd} ${source}`).join('; ')}`);
    this.onCommit();
    const count = (kind: string): number => booking.rows.filter((row) => row.kind === kind).length;
    return { accounts, rows: { attempt: count('attempt'), charge: count('charge'), adjustment: count('adjustment') }, refused: booking.refused.length };
  }

  /** The store as one process of billing sees it. */
  openFor(life: Life): LedgerStore {
    return {
      commit: (ranges, dead, nowMs) => this.ask(life, () => this.commitNow(ranges, dead, nowMs), this.lostReply),
      register: (writer, provider, lastSeq, nowMs, openSinceMs) => this.ask(life, () => this.report(writer, provider, lastSeq, nowMs, openSinceMs)),
      deregister: (writer, lastSeq, reportId) => this.ask(life, () => this.end(writer, lastSeq, reportId), this.lostReply),
      watermarks: () => this.ask(life, () => [...this.tables.writers].map(([writer, known]) => ({
        writer, provider: known.provider, lastSeq: known.lastSeq, ledgerSeq: known.progress.watermark, gaps: BigInt(known.progress.beyond.length), seenAtMs: known.seenAtMs, isDeclaredLost: false, isEnded: this.hasEnded(writer),
      }))),
      // Every writer comes back within the run.
      declareLost: () => this.ask(life, () => 'alive' as const),
      totals: (accountId, asked) => this.ask(life, () => this.totalsOf(accountId, asked)),
      // The invariants are checked on the rows themselves.
      ledger: () => Promise.resolve([]),
    };
  }

  /** Reads like a process of billing. */
  read<Answer>(life: Life, work: () => Answer): Promise<Answer> {
    return this.ask(life, work);
  }

  private report(writer: string, provider: string, lastSeq: bigint, seenAtMs: number, openSinceMs?: number): Registered {
    const known = this.tables.writers.get(writer) ?? { ...NEW_WRITER, provider };
    const reportId = String((this.reports += 1));
    this.tables.writers.set(writer, { ...known, lastSeq: known.lastSeq > lastSeq ? known.lastSeq : lastSeq, reportId, seenAtMs, hasOpen: openSinceMs === undefined ? known.hasOpen : openSinceMs !== 0 });
    return { ledgerSeq: known.progress.watermark, reportId };
  }

  private end(writer: string, lastSeq: bigint, reportId: string): boolean {
    const known = this.tables.writers.get(writer);
    const mayEnd = known !== undefined && known.reportId === reportId && known.lastSeq <= lastSeq && known.progress.watermark >= lastSeq && isBooked(known) && !known.hasOpen;
    if (mayEnd) this.tables.writers.set(writer, { ...known, endedReportId: reportId });
    return mayEnd;
  }

  private store(rows: readonly StoredRow[]): void {
    for (const row of rows) this.tables.stored.set(row.requestId, [...(this.tables.stored.get(row.requestId) ?? []), row]);
  }

  private statesOf(facts: readonly { readonly requestId: string }[]): Map<string, RequestState> {
    return requestsOf([...new Set(facts.map(({ requestId }) => requestId))].flatMap((requestId) => this.tables.stored.get(requestId) ?? []));
  }

  private totalsOf(accountId: string, asked: readonly string[]): AccountTotals {
    const nowMs = EPOCH_MS + this.scheduler.nowMs;
    const requestIds = this.rowsOf(accountId).filter(({ kind, requestId }) => {
      if (kind !== 'charge' || (asked.length > 0 && !asked.includes(requestId))) return false;
      const state = this.requestOf(requestId);
      return state !== undefined && (asked.includes(requestId) ? isSettled(state, nowMs) : isWhole(state.facts));
    }).map(({ requestId }) => requestId);
    return { accountId, ledgerSeq: (this.tables.heads.get(accountId) ?? NEW_HEAD).seq, previousSeq: 0n, totals: [...this.tables.totals.values()].filter((total) => total.accountId === accountId), requestIds };
  }

  private ask<Answer>(life: Life, work: () => Answer, lostReply = 0): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.scheduler.at(0.2 + this.random.next() * 2, () => {
        if (life.isDead) return;
        const away = new Fault('store_unavailable', 'the ledger');
        if (!this.isUp) {
          life.run(() => reject(away));
          return;
        }
        const answer = work();
        const isLost = this.random.chance(lostReply);
        this.scheduler.at(0.2 + this.random.next(), () => life.run(() => (isLost ? reject(away) : resolve(answer))));
      });
    });
  }
}
