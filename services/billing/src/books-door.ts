/** RPC handlers for reports, bills and verification. */
import type {
  AdjustCostRequest__Output, AdjustCostResponse, ClosePeriodsResponse, DeadEventsRequest__Output, DeadEventsResponse, GetRequestRequest__Output, GetRequestResponse, ImportProviderUsageRequest__Output, ImportProviderUsageResponse,
  PeriodsRequest__Output, PeriodsResponse, ReconcileResponse, RecountRequest__Output, RecountResponse, RequestsRequest__Output, RequestsResponse, RequestSummary, ResolveDeadEventRequest__Output, ResolveDeadEventResponse, StatementRequest__Output, StatementResponse,
  UsageRequest__Output, UsageResponse, VerifyRequest__Output, VerifyResponse,
} from '@signalbox/contracts/billing';
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import { completionTokens, promptTokens } from '@signalbox/kernel/tokens';
import { periodAt, periodSpan } from '@signalbox/ledger-core/periods';
import type { CallInfo, Handlers } from '@signalbox/rpc/call';
import { GROUPS, type BooksStore, type Group, type InvariantCheck, type ReconcileRow, type RequestView } from './domain/books.js';
import type { Bookkeeper } from './domain/bookkeeper.js';
import type { LedgerNow } from './domain/ports.js';
import { dayOf } from './domain/usage.js';
import { createVerification } from './domain/verification.js';

const LIMIT_MAX = 100;
const USAGE_LIMIT_MAX = 1_000;
/** 10^6 USD, the most that one attempt may cost. */
const COST_MAX = 1_000_000_000_000_000n;
const DAYS_MAX = 10_000;
/** 10 s: a part of a verification, so that who waits for it sees how far it is. */
const PART_MS = 10_000;

export interface BooksDoorOptions {
  readonly books: BooksStore;
  readonly keeper: Bookkeeper;
  readonly clock: Clock;
  readonly ledgerNow: LedgerNow;
  readonly periodSeconds: number | undefined;
  /** Called after each reconciliation. */
  readonly onReconciled: (unreconciledNanoUsd: bigint) => void;
}

const limitOf = (limit: number, most: number): number => Math.min(limit === 0 ? 20 : limit, most);
const isGroup = (text: string): text is Group => (GROUPS as readonly string[]).includes(text);

/** When the first attempt began; 0 if no row has that. */
function startedAt({ attempts }: RequestView): number {
  const known = attempts.map(({ startedAtMs }) => startedAtMs).filter((atMs) => atMs > 0);
  return known.length === 0 ? 0 : Math.min(...known);
}

function summaryOf(request: RequestView): RequestSummary {
  const { attempts } = request;
  const charged = attempts.filter((attempt) => attempt.charged);
  const shown = charged.at(-1) ?? attempts.at(-1);
  const sum = (of: (attempt: RequestView['attempts'][number]) => bigint): string => charged.reduce((total, attempt) => total + of(attempt), 0n).toString();
  return {
    id: request.id, startedAtMs: String(startedAt(request)), atMs: String(request.atMs), keyId: request.keyId, model: shown?.model ?? '', provider: shown?.provider ?? '', status: charged.length === 0 ? 'failed' : 'completed',
    promptTokens: sum(({ tokens }) => BigInt(promptTokens(tokens))), completionTokens: sum(({ tokens }) => BigInt(completionTokens(tokens))), costNanoUsd: sum(({ costNanoUsd }) => costNanoUsd), chargeNanoUsd: String(request.chargeNanoUsd),
    savingsNanoUsd: sum(({ savingsNanoUsd }) => savingsNanoUsd), byok: shown?.byok ?? false, routedFrom: shown?.routedFrom ?? '', decisionId: shown?.decisionId ?? '', ttftMs: shown?.ttftMs ?? 0, totalMs: shown?.totalMs ?? 0,
    finishReason: shown?.finishReason ?? '', source: shown?.source ?? '',
  };
}

const isPlainKind = ({ kind }: ReconcileRow): boolean => kind === 'provider' || kind === 'account';
/** Sum of the absolute differences, in nano-USD. A provider that reported nothing is not reconciled, but not in dispute either. */
export function unreconciledOf(rows: readonly ReconcileRow[]): bigint {
  let sum = 0n;
  for (const row of rows) {
    if (!isPlainKind(row) || row.status !== 'differs') continue;
    const difference = row.oursNanoUsd - row.theirsNanoUsd;
    sum += difference < 0n ? -difference : difference;
  }
  return sum;
}

export function createBooksHandlers({ books, keeper, clock, ledgerNow, periodSeconds, onReconciled }: BooksDoorOptions): Handlers['unary'] {
  const verification = createVerification({ books, clock, ledgerNow });
  return {
    Usage: async (request: UsageRequest__Output, { signal }: CallInfo): Promise<UsageResponse> => {
      if (!isGroup(request.groupBy)) throw new Fault('bad_message', 'An unknown group.');
      if (request.order !== '' && (request.order !== 'cost' || request.after !== '')) throw new Fault('bad_message', 'An unknown order, or a cursor with an order that has no further pages.');
      const toMs = BigInt(request.toMs);
      const { rows, hasMore } = await books.usage({
        accountId: request.accountId, fromDay: request.fromMs === '0' ? '' : dayOf(BigInt(request.fromMs)), toDay: toMs === 0n ? '' : dayOf(toMs - 1n), groupBy: request.groupBy, model: request.model, provider: request.provider, keyId: request.keyId,
        after: request.after, limit: limitOf(request.limit, USAGE_LIMIT_MAX), dearestFirst: request.order === 'cost', signal,
      });
      return {
        hasMore,
        rows: rows.map((row) => ({
          group: row.group, requests: String(row.requests), promptTokens: String(row.promptTokens), completionTokens: String(row.completionTokens), costNanoUsd: String(row.costNanoUsd), chargeNanoUsd: String(row.chargeNanoUsd),
          savingsNanoUsd: String(row.savingsNanoUsd), totalMsP50: row.totalMsP50, totalMsP95: row.totalMsP95, ttftMsP50: row.ttftMsP50, ttftMsP95: row.ttftMsP95,
        })),
      };
    },
    Requests: async (request: RequestsRequest__Output, { signal }: CallInfo): Promise<RequestsResponse> => {
      const { status } = request;
      if (status !== '' && status !== 'completed' && status !== 'failed') throw new Fault('bad_message', 'An unknown status.');
      const page = await books.requests({
        accountId: request.accountId, fromMs: Number(request.fromMs), toMs: Number(request.toMs), model: request.model, provider: request.provider, keyId: request.keyId, status, after: request.after, limit: limitOf(request.limit, LIMIT_MAX), signal,
      });
      return page === undefined ? { afterUnknown: true } : { requests: page.requests.map(summaryOf), hasMore: page.hasMore };
    },
    GetRequest: async ({ accountId, requestId }: GetRequestRequest__Output): Promise<GetRequestResponse> => {
      const found = await books.request(accountId, requestId);
      if (found === undefined) return { found: false };
      return {
        found: true, accountId: found.accountId, request: summaryOf(found), period: found.period,
        attempts: found.attempts.map((attempt) => ({
          ...attempt, costNanoUsd: String(attempt.costNanoUsd), savingsNanoUsd: String(attempt.savingsNanoUsd), flags: [...attempt.flags], startedAtMs: String(attempt.startedAtMs), endedAtMs: String(attempt.endedAtMs),
        })),
        adjustments: found.adjustments.map((row) => ({ ...row, seq: String(row.seq), amountNanoUsd: String(row.amountNanoUsd), tokens: String(row.tokens), byokTokens: String(row.byokTokens), atMs: String(row.atMs), flags: [...row.flags] })),
      };
    },
    Statement: async ({ accountId, period }: StatementRequest__Output): Promise<StatementResponse> => {
      const bill = await keeper.bill(accountId, period, clock.nowMs());
      if (bill === undefined) return { found: false };
      const { span, closedAtMs, terms, statement } = bill;
      return {
        found: true, status: closedAtMs === 0 ? 'open' : 'closed', startMs: String(span.startMs), endMs: String(span.endMs), closedAtMs: String(closedAtMs), tier: terms.tier, variant: terms.variant,
        ...(terms.subscriptionNanoUsd === null ? {} : { subscriptionNanoUsd: String(statement.subscriptionNanoUsd) }),
        ...(terms.includedTokens === null ? {} : { includedTokens: String(terms.includedTokens) }),
        ...(terms.overageNanoUsdPerMillion === null ? {} : { overageNanoUsdPerMillion: String(terms.overageNanoUsdPerMillion) }),
        usedTokens: String(statement.usedTokens), overageTokens: String(statement.overageTokens), overageNanoUsd: String(statement.overageNanoUsd), modelSpendNanoUsd: String(statement.modelSpendNanoUsd),
        pluginsNanoUsd: String(statement.pluginsNanoUsd), adjustmentsNanoUsd: String(statement.adjustmentsNanoUsd), trialCreditNanoUsd: String(statement.trialCreditNanoUsd), totalNanoUsd: String(statement.totalNanoUsd),
        lines: statement.lines.map((line) => ({ ...line, tokens: String(line.tokens), requests: String(line.requests), amountNanoUsd: String(line.amountNanoUsd) })),
      };
    },
    Periods: async ({ accountId, after, limit }: PeriodsRequest__Output): Promise<PeriodsResponse> => {
      // The cursor may be a period in which the account has nothing.
      const afterMs = after === '' ? Number.MAX_SAFE_INTEGER : periodSpan(after, periodSeconds)?.startMs;
      if (afterMs === undefined) return { afterUnknown: true };
      const current = periodAt(clock.nowMs(), periodSeconds);
      const known = await books.periods(accountId);
      const all = known.some(({ period }) => period === current.id) ? known : [...known, { period: current.id, closedAtMs: 0, chargeNanoUsd: 0n, modelSpendNanoUsd: 0n }];
      const spans = all.flatMap((each) => {
        const span = periodSpan(each.period, periodSeconds);
        return span === undefined ? [] : [{ ...each, span }];
      });
      spans.sort((a, b) => b.span.startMs - a.span.startMs);
      const rest = spans.filter(({ span }) => span.startMs < afterMs);
      const most = limitOf(limit, LIMIT_MAX);
      return {
        periods: rest.slice(0, most).map(({ span, closedAtMs, chargeNanoUsd, modelSpendNanoUsd }) => ({
          period: span.id, startMs: String(span.startMs), endMs: String(span.endMs), closedAtMs: String(closedAtMs), chargeNanoUsd: String(chargeNanoUsd), modelSpendNanoUsd: String(modelSpendNanoUsd),
        })),
        hasMore: rest.length > most,
      };
    },
    ClosePeriods: async (): Promise<ClosePeriodsResponse> => {
      const { closed, waiting } = await keeper.closePeriods(await ledgerNow());
      return { closed: [...closed], waiting: [...waiting] };
    },
    Reconcile: async (): Promise<ReconcileResponse> => {
      const atMs = clock.nowMs();
      const rows = await books.reconcile(atMs);
      const unreconciled = unreconciledOf(rows);
      onReconciled(unreconciled);
      return {
        atMs: String(atMs), unreconciledNanoUsd: String(unreconciled),
        rows: rows.map((row) => ({
          kind: row.kind, subject: row.subject, day: row.day, oursNanoUsd: String(row.oursNanoUsd), theirsNanoUsd: String(row.theirsNanoUsd), differenceNanoUsd: String(row.oursNanoUsd - row.theirsNanoUsd), status: row.status, gaps: String(row.gaps),
        })),
      };
    },
    ImportProviderUsage: async ({ provider, days }: ImportProviderUsageRequest__Output): Promise<ImportProviderUsageResponse> => {
      const seen = new Set<string>();
      for (const { day, costNanoUsd, tokens } of days) {
        if (!/^\d{4}-\d{2}-\d{2}$/.test(day) || Number.isNaN(Date.parse(day)) || dayOf(BigInt(Date.parse(day))) !== day) return { problem: 'A day must be a date such as 2026-11-21.' };
        if (seen.has(day)) return { problem: `The day ${day} occurs twice.` };
        if (BigInt(costNanoUsd) < 0n || BigInt(tokens) < 0n) return { problem: `The day ${day} has a negative figure.` };
        seen.add(day);
      }
      if (provider === '' || provider.length > 64) return { problem: 'A provider needs an id.' };
      if (days.length > DAYS_MAX) return { problem: `At most ${DAYS_MAX} days at once.` };
      await books.importProviderUsage(provider, days.map(({ day, costNanoUsd, tokens }) => ({ day, costNanoUsd: BigInt(costNanoUsd), tokens: BigInt(tokens) })), clock.nowMs());
      return { days: days.length };
    },
    AdjustCost: async ({ requestId, attempt, costNanoUsd, reason }: AdjustCostRequest__Output): Promise<AdjustCostResponse> => {
      const cost = BigInt(costNanoUsd);
      if (cost < 0n || cost > COST_MAX) return { found: true, problem: 'A cost must be from 0 to 1000000 US dollars.' };
      if (reason === '' || reason.length > 200) return { found: true, problem: 'A reason must have 1 to 200 characters.' };
      // As the closing of periods: a host's own clock may still be in the period that has just closed, or already in the next one.
      const nowMs = await ledgerNow();
      const made = await books.adjustCost({ requestId, attempt, costNanoUsd: cost, reason }, periodAt(nowMs, periodSeconds).id, nowMs);
      return made === undefined ? { found: false } : { found: true, seq: String(made.seq), amountNanoUsd: String(made.amountNanoUsd) };
    },
    Verify: async ({ accountId, inParts, after }: VerifyRequest__Output): Promise<VerifyResponse> => {
      const told = (checks: readonly InvariantCheck[]) => checks.map(({ invariant, description, violations, examples }) => ({ invariant, description, violations: String(violations), examples: [...examples] }));
      if (accountId !== '') return { checks: told(await verification.verify(accountId)), underWay: [] };
      const { checks, underWay, next, accounts } = await verification.verifyFrom(after, inParts ? PART_MS : Infinity);
      return {
        checks: told(checks), next, accounts: String(accounts),
        underWay: underWay.map(({ writer, records, openSinceMs }) => ({ writer, records: String(records), openSinceMs: String(openSinceMs) })),
      };
    },
    Recount: async ({ accountId, withClosed }: RecountRequest__Output): Promise<RecountResponse> => {
      const accounts = await books.recount(accountId, withClosed);
      // Sums have changed, so the latest reconciliation is out of date.
      if (accounts.length > 0) onReconciled(unreconciledOf(await books.reconcile(clock.nowMs())));
      return {
        accounts: accounts.map(({ accountId: of, usageDays, attemptDays, totals, closedPeriods, brokenInvariants }) => ({
          accountId: of, usageDays: String(usageDays), attemptDays: String(attemptDays), totals: String(totals), closedPeriods: [...closedPeriods], brokenInvariants: [...brokenInvariants],
        })),
      };
    },
    DeadEvents: async ({ after, limit }: DeadEventsRequest__Output): Promise<DeadEventsResponse> => ({
      events: (await books.deadEvents(BigInt(after), limitOf(limit, LIMIT_MAX))).map((event) => ({ ...event, id: String(event.id), atMs: String(event.atMs), payloadBytes: String(event.payloadBytes) })),
    }),
    ResolveDeadEvent: async ({ id, note }: ResolveDeadEventRequest__Output): Promise<ResolveDeadEventResponse> => ({ found: await books.resolveDeadEvent(BigInt(id), note.slice(0, 200), clock.nowMs()) }),
  };
}
