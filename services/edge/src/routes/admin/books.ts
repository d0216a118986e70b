/** Admin routes for the ledger: bills, closing of periods, comparisons, proofs, events that could not be read. */
import type {
  AdjustCostResponse__Output, ClosePeriodsResponse__Output, DeadEventsResponse__Output, DeclareLostResponse__Output, GetRequestRequest, GetRequestResponse__Output, ImportProviderUsageResponse__Output, ReconcileResponse__Output, ReconcileRow__Output, RecountedAccount__Output, RecountResponse__Output, ResolveDeadEventResponse__Output,
  StatementResponse__Output, VerifyResponse__Output, WriterUnderWay__Output,
} from '@signalbox/contracts/billing';
import type { Clock } from '@signalbox/kernel/clock';
import { parseUsd } from '@signalbox/kernel/money';
import { periodAt } from '@signalbox/ledger-core/periods';
import type { RpcClient } from '@signalbox/rpc/call';
import { Router, type Request } from 'express';
import { z } from 'zod';
import { oneProvider, requestDetailBody, statementBody, statementCsv } from '../books/schema.js';
import { ANSWER_OPTIONS, bodyOf, digits, id, refuse, send, text } from './answers.js';
import type { AdminChecks } from './checks.js';
import { createCounters, type CountedAccount } from './counters.js';
import { strictFields } from '../strict-fields.js';

export interface AdminBooksDeps {
  readonly clock: Clock;
  /** Length of a bill's period in seconds, for tests; absent = calendar months. */
  readonly periodSeconds?: number | undefined;
  readonly accounts: RpcClient;
  readonly billing: RpcClient;
  readonly quota: RpcClient;
}

/** Proofs and comparisons read the whole ledger. */
const LONG_DEADLINE_MS = 600_000;
const DEAD_PAGE_ROWS = 100;
const EXAMPLES_MAX = 20;

/** 10^9 USD: fits into 64 bits, and no provider bills as much for a day. */
const AMOUNT_NANO_USD_MAX = 1_000_000_000_000_000_000n;

const amount = z.string().transform((text, context) => {
  try {
    const nano = parseUsd(text);
    if (nano >= 0n && nano <= AMOUNT_NANO_USD_MAX) return nano.toString();
  } catch {
    // Reported below.
  }
  context.addIssue({ code: 'custom', message: 'must be an amount of US dollars from 0 to 1000000000 with at most nine decimals' });
  return z.NEVER;
});
const importSchema = strictFields({
  provider: z.string().min(1).max(64),
  days: z.array(strictFields({ day: z.string(), cost_usd: amount, tokens: z.number().int().min(0).default(0) })).min(1).max(10_000),
});
const costSchema = strictFields({ request_id: z.string().min(1).max(200), attempt: z.number().int().min(0).max(1_000), cost_usd: amount, reason: z.string().min(1).max(200) });
const recountSchema = strictFields({ account_id: z.string().min(1).max(64).optional(), closed: z.boolean().default(false) });
const noteSchema = strictFields({ note: z.string().min(1).max(200) });

const isCsv = (request: Request): boolean => text(request, 'format') === 'csv' || request.accepts(['application/json', 'text/csv']) === 'text/csv';

const reconcileRow = (row: ReconcileRow__Output): object => ({
  kind: row.kind, subject: row.subject, day: row.day === '' ? undefined : row.day, ours_nano_usd: row.oursNanoUsd, theirs_nano_usd: row.theirsNanoUsd, difference_nano_usd: row.differenceNanoUsd, status: row.status,
  gaps: row.gaps === '0' ? undefined : Number(row.gaps),
});

const recountedRow = (one: RecountedAccount__Output): object => ({
  account_id: one.accountId, written: { usage_days: Number(one.usageDays), attempt_days: Number(one.attemptDays), totals: Number(one.totals) },
  closed_periods_left: one.closedPeriods.length === 0 ? undefined : one.closedPeriods, broken_invariants: one.brokenInvariants.length === 0 ? undefined : one.brokenInvariants,
});

/** What is wrong with an account's counters: the account, or the account with each lost request. */
const wrongsOf = ({ accountId, differenceNanoUsd, lost }: CountedAccount): readonly string[] => (lost.length > 0 ? lost.map((requestId) => `${accountId} ${requestId}`) : differenceNanoUsd === 0n ? [] : [accountId]);

const counterRow = (one: CountedAccount): object => ({
  kind: 'account', subject: one.accountId, ours_nano_usd: String(one.oursNanoUsd), theirs_nano_usd: String(one.theirsNanoUsd), finished_nano_usd: String(one.finishedNanoUsd), reserved_nano_usd: String(one.reservedNanoUsd),
  difference_nano_usd: String(one.differenceNanoUsd), status: wrongsOf(one).length === 0 ? 'matched' : 'differs', lost_requests: one.lost.length === 0 ? undefined : one.lost,
});

/** What is still on its way to the ledger, which is not a violation. */
const underWayBody = (writers: readonly WriterUnderWay__Output[], counted: readonly CountedAccount[]): object => ({
  writers: writers.map(({ writer, records, openSinceMs }) => ({ writer, records: Number(records), oldest_reserved_at: openSinceMs === '0' ? null : Math.floor(Number(openSinceMs) / 1_000) })),
  finished_nano_usd: String(counted.reduce((sum, { finishedNanoUsd }) => sum + finishedNanoUsd, 0n)),
  reserved_nano_usd: String(counted.reduce((sum, { reservedNanoUsd }) => sum + reservedNanoUsd, 0n)),
});

export function createAdminBooksRouter({ accounts, billing, quota, clock, periodSeconds }: AdminBooksDeps, { unknownName, isAccount }: AdminChecks): Router {
  const long = { deadlineMs: LONG_DEADLINE_MS };
  const router = Router();
  const counters = createCounters({ accounts, billing, quota, clock });

  router.post('/reconcile', async (_request, response) => {
    const found = await billing.unary<object, ReconcileResponse__Output>('Reconcile', {}, long);
    const compared = await counters.compare();
    let unreconciled = BigInt(found.unreconciledNanoUsd);
    for (const { differenceNanoUsd } of compared) unreconciled += differenceNanoUsd < 0n ? -differenceNanoUsd : differenceNanoUsd;
    send(response, {
      at: Math.floor(Number(found.atMs) / 1_000), unreconciled_nano_usd: String(unreconciled),
      rows: [...found.rows.map(reconcileRow), ...compared.map(counterRow)],
    });
  });
  router.post('/provider-usage', async (request, response) => {
    const { provider: told, days } = bodyOf(request, importSchema);
    const unknown = await unknownName({ allowProviders: { field: 'provider', names: [told] } });
    if (unknown !== undefined) return refuse(response, 400, unknown.message);
    // The ledger has only one name for each provider: under another one the figures would be compared with nothing.
    const provider = oneProvider(told);
    const costs = days.map(({ day, cost_usd: costNanoUsd, tokens }) => ({ day, costNanoUsd, tokens: String(tokens) }));
    const made = await billing.unary<object, ImportProviderUsageResponse__Output>('ImportProviderUsage', { provider, days: costs }, ANSWER_OPTIONS);
    if (made.problem === '') send(response, { provider, days: made.days });
    else refuse(response, 400, made.problem);
  });
  router.get('/statement', async (request, response) => {
    // Counters name a month as `month:2026-11`.
    const [accountId, period] = [text(request, 'account'), text(request, 'period').replace(/^month:/, '')];
    if (!(await isAccount(accountId, response))) return;
    const bill = await billing.unary<object, StatementResponse__Output>('Statement', { accountId, period }, ANSWER_OPTIONS);
    if (!bill.found) refuse(response, 404, `The account has no statement of that period; the present one is ${periodAt(clock.nowMs(), periodSeconds).id}.`);
    else if (isCsv(request)) response.type('text/csv').set('cache-control', 'no-store').send(statementCsv(period, bill));
    else send(response, statementBody(accountId, period, bill));
  });
  router.post('/periods/close', async (_request, response) => {
    const { closed, waiting } = await billing.unary<object, ClosePeriodsResponse__Output>('ClosePeriods', {}, long);
    send(response, { closed, waiting: waiting.map(({ period, reason, writer }) => ({ period, reason, writer: writer === '' ? undefined : writer })) });
  });
  router.post('/ledger/cost', async (request, response) => {
    const given = bodyOf(request, costSchema);
    const made = await billing.unary<object, AdjustCostResponse__Output>('AdjustCost', { requestId: given.request_id, attempt: given.attempt, costNanoUsd: given.cost_usd, reason: given.reason }, ANSWER_OPTIONS);
    if (!made.found) refuse(response, 404, 'No such attempt.');
    else if (made.problem !== '') refuse(response, 400, made.problem);
    else send(response, { seq: made.seq === '0' ? null : Number(made.seq), amount_nano_usd: made.amountNanoUsd });
  });
  router.get('/requests/:id', async (request, response) => {
    const found = await billing.unary<GetRequestRequest, GetRequestResponse__Output>('GetRequest', { accountId: '', requestId: id(request) }, ANSWER_OPTIONS);
    if (!found.found || found.request === null) refuse(response, 404, 'No such request in the ledger. One that was refused before a provider was asked is not there; one that is over is booked a second later.');
    else send(response, { account_id: found.accountId, ...requestDetailBody(found.request, found) });
  });
  router.get('/ledger/verify', async (request, response) => {
    const accountId = text(request, 'account');
    if (accountId !== '' && !(await isAccount(accountId, response))) return;
    // A script that asks without `after` gets one answer for all accounts.
    const inParts = accountId === '' && request.query['after'] !== undefined;
    const { checks, underWay, next, accounts: verified } = await billing.unary<object, VerifyResponse__Output>('Verify', { accountId, inParts, after: text(request, 'after') }, long);
    const told = checks.map(({ invariant, description, violations, examples }) => ({ invariant, description, violations: Number(violations), examples }));
    const isLast = accountId === '' && next === '';
    const compared = isLast ? await counters.compare() : [];
    const wrongs = compared.flatMap(wrongsOf);
    if (isLast) told.push({ invariant: 'I5', description: 'The counters of each account have settled what its ledger had booked, and count nothing that it does not know.', violations: wrongs.length, examples: wrongs.slice(0, EXAMPLES_MAX) });
    send(response, { ok: told.every(({ violations }) => violations === 0), checks: told, under_way: isLast ? underWayBody(underWay, compared) : undefined, ...(inParts ? { accounts: Number(verified), next: next === '' ? null : next } : {}) });
  });
  router.post('/ledger/recount', async (request, response) => {
    const { account_id: accountId = '', closed } = bodyOf(request, recountSchema);
    if (accountId !== '' && !(await isAccount(accountId, response))) return;
    const { accounts: found } = await billing.unary<object, RecountResponse__Output>('Recount', { accountId, withClosed: closed }, long);
    send(response, { ok: found.every(({ closedPeriods, brokenInvariants }) => closedPeriods.length + brokenInvariants.length === 0), accounts: found.map(recountedRow) });
  });
  router.post('/writers/:id/lost', async (request, response) => {
    const { note } = bodyOf(request, noteSchema);
    const made = await billing.unary<object, DeclareLostResponse__Output>('DeclareLost', { writer: request.params.id, note }, ANSWER_OPTIONS);
    if (!made.found) refuse(response, 404, 'No such writer.');
    else if (made.problem !== '') refuse(response, 409, made.problem);
    else send(response, { writer: request.params.id, lost: true });
  });
  router.get('/dead-events', async (request, response) => {
    const { events } = await billing.unary<object, DeadEventsResponse__Output>('DeadEvents', { after: digits(request, 'after'), limit: DEAD_PAGE_ROWS }, ANSWER_OPTIONS);
    send(response, {
      events: events.map((event) => ({ id: Number(event.id), subject: event.subject, reason: event.reason, writer: event.writer, at: Math.floor(Number(event.atMs) / 1_000), payload_bytes: Number(event.payloadBytes), resolved: event.resolved })),
      next: events.length < DEAD_PAGE_ROWS ? null : Number(events.at(-1)?.id ?? 0),
    });
  });
  router.post('/dead-events/:id/resolve', async (request, response) => {
    const { note } = bodyOf(request, noteSchema);
    const { found } = /^\d{1,15}$/.test(request.params.id) ? await billing.unary<object, ResolveDeadEventResponse__Output>('ResolveDeadEvent', { id: request.params.id, note }, ANSWER_OPTIONS) : { found: false };
    if (found) send(response, { id: Number(request.params.id), resolved: true });
    else refuse(response, 404, 'No such event.');
  });
  return router;
}
