/** Makes bills and closes periods, from the ledger's sums, the accounts' terms and the rules of ledger-core. */
import { closeBlockers, type CloseBlocker } from '@signalbox/ledger-core/close';
import { periodAt, periodSpan, type PeriodSpan } from '@signalbox/ledger-core/periods';
import { statementOf, type BillingTerms, type Statement } from '@signalbox/ledger-core/statement';
import type { BooksStore, PeriodCharge } from './books.js';
import type { Hearing } from './hearing.js';

/** Current terms of an account. */
export interface AccountTerms {
  readonly terms: BillingTerms;
  readonly createdAtMs: number;
}

export interface AccountsPort {
  /** Undefined = no such account. Rejects with a Fault `accounts_unavailable`. */
  termsOf(accountId: string): Promise<AccountTerms | undefined>;
  all(): Promise<ReadonlyMap<string, AccountTerms>>;
}

export interface Bill {
  readonly span: PeriodSpan;
  /** 0 = the period is open, and the bill preliminary. */
  readonly closedAtMs: number;
  readonly terms: BillingTerms;
  readonly statement: Statement;
}

export interface Waiting {
  readonly period: string;
  readonly reason: string;
  readonly writer: string;
}

export interface CloseRound {
  readonly closed: readonly string[];
  readonly waiting: readonly Waiting[];
}

/** Most periods closed in one round; after a long pause the rest follow in the next rounds. */
const ROUND_MAX = 200;

export interface BookkeeperOptions {
  readonly store: BooksStore;
  readonly accounts: AccountsPort;
  /** Length of a period for tests; undefined = calendar months. */
  readonly periodSeconds: number | undefined;
  readonly hearing: Pick<Hearing, 'passedUntil'>;
  /** How long after the end of a period a request that was held before it may still be on its way to a writer. */
  readonly graceMs: number;
}

export interface Bookkeeper {
  /** Undefined if there is no such account or period, or if the period has not begun or ended before the account was created, unless it was charged in it. */
  bill(accountId: string, period: string, nowMs: number): Promise<Bill | undefined>;
  /** Writes the terms for all periods that are over, even if they cannot close yet. Then closes those that nothing blocks, oldest first. */
  closePeriods(nowMs: number): Promise<CloseRound>;
}

/**
 * Of an account that is charged in a period before it was created: the clock of the host that wrote its creation is ahead of
 * that which numbers periods, or the latter behind. What it used is billed; its subscription begins with the next period.
 */
const withoutSubscription = (terms: BillingTerms): BillingTerms => ({ ...terms, subscriptionNanoUsd: null });

export function createBookkeeper({ store, accounts, periodSeconds, hearing, graceMs }: BookkeeperOptions): Bookkeeper {
  const spanOf = (period: string): PeriodSpan | undefined => periodSpan(period, periodSeconds);

  /** Periods that are over and not closed, oldest first: those with rows, and those between the last close and now. */
  async function due(nowMs: number): Promise<{ readonly spans: readonly PeriodSpan[]; readonly withRows: ReadonlySet<string> }> {
    const { periods, closedUntilMs } = await store.openPeriods();
    const spans = new Map<string, PeriodSpan>();
    for (const period of periods) {
      const span = spanOf(period);
      if (span !== undefined) spans.set(span.id, span);
    }
    const current = periodAt(nowMs, periodSeconds);
    const oldestMs = Math.min(...[...spans.values()].map(({ startMs }) => startMs), closedUntilMs === 0 ? current.startMs - 1 : closedUntilMs);
    for (let span = periodAt(oldestMs, periodSeconds); span.startMs < current.startMs && spans.size < ROUND_MAX; span = periodAt(span.endMs, periodSeconds)) if (span.startMs >= closedUntilMs) spans.set(span.id, span);
    return { spans: [...spans.values()].filter(({ endMs }) => endMs <= nowMs).sort((a, b) => a.startMs - b.startMs).slice(0, ROUND_MAX), withRows: new Set(periods) };
  }

  return {
    bill: async (accountId, period, nowMs) => {
      const span = spanOf(period);
      if (span === undefined || span.startMs > nowMs) return undefined;
      const { sums, adjustments, charges, closedAtMs, terms: written } = await store.periodSums(accountId, period);
      let terms = written;
      if (terms === undefined) {
        const account = closedAtMs === 0 ? await accounts.termsOf(accountId) : undefined;
        const isLater = account !== undefined && account.createdAtMs >= span.endMs;
        if (account === undefined || (isLater && sums.length === 0)) return undefined;
        terms = isLater ? withoutSubscription(account.terms) : account.terms;
      }
      const { trialCreditNanoUsd } = terms;
      const startOf = (each: PeriodCharge): number => spanOf(each.period)?.startMs ?? 0;
      const earlier = charges.filter((each) => startOf(each) < span.startMs).sort((a, b) => startOf(a) - startOf(b)).map((each) => ({ chargeNanoUsd: each.chargeNanoUsd, trialCreditNanoUsd: each.terms === undefined ? trialCreditNanoUsd : each.terms.trialCreditNanoUsd }));
      return { span, closedAtMs, terms, statement: statementOf({ terms, sums, adjustments, earlier }) };
    },

    closePeriods: async (nowMs) => {
      const passedMs = hearing.passedUntil(nowMs);
      const { spans, withRows } = await due(nowMs);
      if (spans.length === 0) return { closed: [], waiting: [] };
      const [writers, deadEvents, all] = [await store.writerReports(), await store.deadWaiting(), await accounts.all()];
      const closed: string[] = [];
      const waiting: Waiting[] = [];
      const wait = ({ id }: PeriodSpan, blockers: readonly CloseBlocker[]): void => void waiting.push(...blockers.map(({ reason, writer }) => ({ period: id, reason, writer })));
      const termsFor = async ({ id, endMs }: PeriodSpan): Promise<ReadonlyMap<string, BillingTerms>> => {
        const terms = new Map<string, BillingTerms>();
        const later: string[] = [];
        for (const [accountId, each] of all) {
          if (each.createdAtMs < endMs) terms.set(accountId, each.terms);
          else later.push(accountId);
        }
        if (later.length > 0 && withRows.has(id)) {
          for (const accountId of await store.chargedIn(id, later)) {
            const account = all.get(accountId);
            if (account !== undefined) terms.set(accountId, withoutSubscription(account.terms));
          }
        }
        return terms;
      };
      // Even if a period is blocked: a tier that changes while it waits must not affect its terms.
      for (const span of spans) if (span.endMs <= passedMs) await store.writeTerms(span.id, await termsFor(span));
      for (const span of spans) {
        const blockers = closeBlockers({ boundaryMs: span.endMs, nowMs: passedMs, graceMs, writers, deadEvents });
        if (blockers.length > 0) {
          wait(span, blockers);
          continue;
        }
        const terms = await termsFor(span);
        // No account existed yet, so there is no bill to make.
        if (terms.size === 0 && !withRows.has(span.id)) continue;
        const outcome = await store.close(span, terms, passedMs);
        if (outcome === 'closed') closed.push(span.id);
        else if (outcome !== 'was_closed') {
          // No later period may close before this one: bills build on those of earlier periods.
          wait(span, outcome);
          break;
        }
      }
      return { closed, waiting };
    },
  };
}
