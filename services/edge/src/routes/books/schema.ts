/** Parameters and answers of /api/usage, /api/requests and /api/statements. They never contain prompts or completions. */
import type { PeriodSummary__Output, RequestAttempt__Output, GetRequestResponse__Output, RequestSummary__Output, StatementResponse__Output, UsageRequest, UsageRow__Output } from '@signalbox/contracts/billing';
import { feesOfAttempt } from '@signalbox/kernel/card-fees';
import { parseIsoTime } from '@signalbox/kernel/iso-time';
import { formatUsd } from '@signalbox/kernel/money';
import { providersForbidden, providersNamed } from '@signalbox/kernel/provider-names';
import { usd } from '../api-auth/exact-json.js';
import { QueryError } from '../query-fields.js';

type Query = Readonly<Record<string, unknown>>;

const VALUE_CHARS_MAX = 300;

/** A parameter's value; '' when absent. Throws QueryError when it is given twice or has more than 300 characters. */
export function textOf(query: Query, name: string): string {
  const value = query[name];
  if (value === undefined) return '';
  if (typeof value !== 'string') throw new QueryError(name, `${name} must be given once.`);
  if (value.length > VALUE_CHARS_MAX) throw new QueryError(name, `${name} must not have more than ${String(VALUE_CHARS_MAX)} characters.`);
  return value;
}

/** A filter's value; '' when absent. An empty value throws QueryError: it would filter nothing, which cannot be meant. */
function narrowingOf(query: Query, name: string): string {
  const text = textOf(query, name);
  if (text === '' && query[name] !== undefined) throw new QueryError(name, `${name} must not be empty; leave it out to have all.`);
  return text;
}

export function limitOf(query: Query): number {
  const text = textOf(query, 'limit');
  if (text === '') return 20;
  const limit = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > 100) throw new QueryError('limit', 'limit must be from 1 to 100.');
  return limit;
}

/** The end of the year 9999. */
const MS_MAX = 253_402_300_799_999;

const isDay = (text: string): boolean => text.length === 10 && text.includes('-');

/** Milliseconds from Unix seconds, or from an ISO 8601 date or time; 0 when absent. A date as `to` includes the whole day. */
function timeOf(query: Query, name: 'from' | 'to'): number {
  const text = narrowingOf(query, name);
  if (text === '') return 0;
  const parsed = /^\d{1,12}$/.test(text) ? Number(text) * 1_000 : parseIsoTime(text);
  const ms = isDay(text) && name === 'to' ? parsed + 86_400_000 : parsed;
  if (!Number.isFinite(ms) || ms < 0 || ms > MS_MAX) throw new QueryError(name, `${name} must be Unix seconds or an ISO 8601 date${/T.* /.test(text) ? '; in a query the + of an offset is written %2B' : ''}.`);
  // 0 would mean no bound.
  return name === 'to' ? Math.max(ms, 1) : ms;
}

/** `from` and `to` in milliseconds; 0 = no bound. */
export function spanOf(query: Query): { readonly fromMs: string; readonly toMs: string } {
  const [from, to] = [timeOf(query, 'from'), timeOf(query, 'to')];
  // The end of a day is the beginning of the next one and not part of it.
  if (to !== 0 && (isDay(textOf(query, 'to')) ? from >= to : from > to)) throw new QueryError('from', 'from must not be after to.');
  return { fromMs: String(from), toMs: String(to) };
}

/** One of `words`; the first one when absent. */
export function wordOf<Word extends string>(query: Query, name: string, words: readonly [Word, ...Word[]]): Word {
  const text = narrowingOf(query, name);
  if (text === '') return words[0];
  const word = words.find((each) => each === text);
  if (word === undefined) throw new QueryError(name, `${name} must be one of ${words.filter((each) => each !== '').join(', ')}.`);
  return word;
}

/** The catalog's id of a provider, from any name that provider lists accept. '' stays ''. */
export function oneProvider(told: string): string {
  const meant = told.includes('/') ? [] : providersForbidden([told]);
  // If a name means several providers, the figures of one would be mistaken for those of all.
  if (meant.length > 1) throw new QueryError('provider', `provider must be one of ${meant.join(', ')}, which others call by one name.`);
  return providersNamed([told])[0] ?? '';
}

const providerOf = (query: Query): string => oneProvider(narrowingOf(query, 'provider'));

type RequestsNarrowing = Required<Pick<UsageRequest, 'model' | 'provider' | 'keyId'>> & { readonly fromMs: string; readonly toMs: string };

/** The filters of requests that are listed or added up. */
export function requestsQueryOf(query: Query): RequestsNarrowing {
  return { ...spanOf(query), model: narrowingOf(query, 'model'), provider: providerOf(query), keyId: narrowingOf(query, 'key') };
}

type UsageNarrowing = RequestsNarrowing & Required<Pick<UsageRequest, 'order' | 'after'>>;

/** The form of group names, for checking `after`: with any other value the next page would be the first one again, or empty. */
const GROUP_FORMS: Readonly<Record<string, RegExp>> = { day: /^\d{4}-\d{2}-\d{2}$/, key: /^key_/, account: /^acct_/ };

/** Filters and order of usage sums by that group. */
export function usageQueryOf(query: Query, groupBy: string): UsageNarrowing {
  const [order, after] = [wordOf(query, 'order', ['', 'cost']), textOf(query, 'after')];
  if (order !== '' && after !== '') throw new QueryError('after', 'after goes with the order by group only: with order=cost raise limit instead.');
  if (after !== '' && GROUP_FORMS[groupBy]?.test(after) === false) throw new QueryError('after', 'after must be the last_id of the page before, by the same group.');
  return { ...requestsQueryOf(query), order, after };
}

export interface Page {
  readonly data: readonly object[];
  readonly hasMore: boolean;
  readonly ids: readonly string[];
}

export function listBody({ data, hasMore, ids }: Page): object {
  return { object: 'list', data, has_more: hasMore, first_id: ids[0] ?? null, last_id: ids.at(-1) ?? null };
}

const whole = (text: string): number => Number(text);
const orNull = (text: string): string | null => (text === '' ? null : text);
const seconds = (ms: string): number | null => (ms === '0' ? null : Math.floor(Number(ms) / 1_000));

const msOrNull = (ms: number): number | null => (ms === 0 ? null : ms);

export function usageBody(groupBy: string, row: UsageRow__Output): object {
  return {
    [groupBy]: row.group, requests: whole(row.requests), prompt_tokens: whole(row.promptTokens), completion_tokens: whole(row.completionTokens), cost_usd: usd(row.costNanoUsd), charge_usd: usd(row.chargeNanoUsd),
    savings_usd: usd(row.savingsNanoUsd), latency_ms_p50: msOrNull(row.totalMsP50), latency_ms_p95: msOrNull(row.totalMsP95), time_to_first_token_ms_p50: msOrNull(row.ttftMsP50), time_to_first_token_ms_p95: msOrNull(row.ttftMsP95),
  };
}

export function requestBody(request: RequestSummary__Output): object {
  return {
    id: request.id, object: 'request', created: seconds(request.startedAtMs === '0' ? request.atMs : request.startedAtMs), ended_at: seconds(request.atMs), key_id: orNull(request.keyId), model: orNull(request.model), provider: orNull(request.provider), status: request.status, byok: request.byok,
    prompt_tokens: whole(request.promptTokens), completion_tokens: whole(request.completionTokens), cost_usd: usd(request.costNanoUsd), charge_usd: usd(request.chargeNanoUsd), savings_usd: usd(request.savingsNanoUsd),
    latency_ms: request.totalMs, time_to_first_token_ms: request.status === 'failed' ? null : msOrNull(request.ttftMs), finish_reason: orNull(request.finishReason), routed_from: orNull(request.routedFrom), decision_id: orNull(request.decisionId),
  };
}

function attemptBody(attempt: RequestAttempt__Output): object {
  const { tokens } = attempt;
  // Without a token there is no first one: what came at that time was a refusal.
  const isTokenless = attempt.failure !== '' && (tokens?.outputText ?? 0) + (tokens?.outputReasoning ?? 0) + (tokens?.audio ?? 0) + (tokens?.image ?? 0) === 0;
  return {
    attempt: attempt.attempt, provider: attempt.provider, model: orNull(attempt.model), endpoint_id: orNull(attempt.endpointId), status: attempt.httpStatus === 0 ? null : attempt.httpStatus,
    failure: orNull(attempt.failure.toLowerCase()), charged: attempt.charged, byok: attempt.byok, source: attempt.source, flags: attempt.flags,
    tokens: {
      input_uncached: tokens?.inputUncached ?? 0, cache_read: tokens?.cacheRead ?? 0, cache_write: tokens?.cacheWrite ?? 0, output_text: tokens?.outputText ?? 0, output_reasoning: tokens?.outputReasoning ?? 0,
      audio: tokens?.audio ?? 0, image: tokens?.image ?? 0,
    },
    cost_usd: usd(attempt.costNanoUsd), plugins_usd: usd(feesOfAttempt(BigInt(attempt.costNanoUsd), attempt.cardId).feeNanoUsd), savings_usd: usd(attempt.savingsNanoUsd), price_card_id: orNull(attempt.cardId), latency_ms: attempt.totalMs, time_to_first_token_ms: isTokenless ? null : msOrNull(attempt.ttftMs),
    finish_reason: orNull(attempt.finishReason), started_at: seconds(attempt.startedAtMs), ended_at: seconds(attempt.endedAtMs),
  };
}

export function requestDetailBody(request: RequestSummary__Output, { attempts, adjustments, period }: GetRequestResponse__Output): object {
  return {
    ...requestBody(request),
    attempts: attempts.map(attemptBody),
    charge: {
      amount_usd: usd(request.chargeNanoUsd), period, source: orNull(request.source), attempts: attempts.filter(({ charged }) => charged).map(({ attempt }) => attempt),
      adjustments: adjustments.map((row) => ({ amount_usd: usd(row.amountNanoUsd), period: row.period, at: seconds(row.atMs) })),
    },
  };
}

export function periodBody(period: PeriodSummary__Output): object {
  return {
    id: period.period, object: 'statement', period: period.period, status: period.closedAtMs === '0' ? 'open' : 'closed', starts_at: seconds(period.startMs), ends_at: seconds(period.endMs), closed_at: seconds(period.closedAtMs),
    model_spend_usd: usd(period.modelSpendNanoUsd), charge_usd: usd(period.chargeNanoUsd),
  };
}

/** A statement for `exactJson`; the same document as on the admin port. */
export function statementBody(accountId: string, period: string, bill: StatementResponse__Output): object {
  return {
    id: period, object: 'statement', account_id: accountId, period, status: bill.status, starts_at: whole(bill.startMs) / 1_000, ends_at: whole(bill.endMs) / 1_000, closed_at: seconds(bill.closedAtMs), currency: 'USD',
    tier: bill.tier, subscription_usd: usd(bill.subscriptionNanoUsd), included_tokens: bill.includedTokens === undefined ? null : whole(bill.includedTokens), used_tokens: whole(bill.usedTokens),
    overage_tokens: whole(bill.overageTokens), overage_usd_per_million: usd(bill.overageNanoUsdPerMillion), overage_usd: usd(bill.overageNanoUsd), model_spend_usd: usd(bill.modelSpendNanoUsd), plugins_usd: usd(bill.pluginsNanoUsd),
    adjustments_usd: usd(bill.adjustmentsNanoUsd), trial_credit_usd: usd(bill.trialCreditNanoUsd), total_usd: usd(bill.totalNanoUsd),
    lines: bill.lines.map((line) => ({
      kind: line.kind, description: line.description, model: orNull(line.model), provider: orNull(line.provider), request_id: orNull(line.requestId), tokens: whole(line.tokens), requests: whole(line.requests), amount_usd: usd(line.amountNanoUsd),
    })),
  };
}

/** A text cell: quoted if needed, and marked so that a spreadsheet does not read it as a formula. */
function cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** CSV as in RFC 4180: a header line first, the total last. */
export function statementCsv(period: string, bill: StatementResponse__Output): string {
  const rows = bill.lines.map((line) => [period, line.kind, cell(line.description), cell(line.model), cell(line.provider), cell(line.requestId), line.tokens, line.requests, formatUsd(BigInt(line.amountNanoUsd))]);
  const all = [['period', 'kind', 'description', 'model', 'provider', 'request_id', 'tokens', 'requests', 'amount_usd'], ...rows, [period, 'total', '', '', '', '', bill.usedTokens, '', formatUsd(BigInt(bill.totalNanoUsd))]];
  return all.map((row) => `${row.join(',')}\r\n`).join('');
}
