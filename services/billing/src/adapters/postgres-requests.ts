/** Reads requests and usage from the ledger. Lists use an index of charges by time; sums come from the table of daily usage. */
import { NO_TOKENS } from '@signalbox/kernel/tokens';
import type { Database } from '@signalbox/sql/database';
import { sql, type RawBuilder } from 'kysely';
import type { AttemptView, BooksStore, Group, LatencyView, RequestsQuery, RequestView } from '../domain/books.js';
import type { LedgerRowView } from '../domain/ports.js';
import type { AttemptDetail } from '../domain/request.js';
import { percentileMs } from '../domain/latency.js';
import { dayOf, FURTHER_FLAG } from '../domain/usage.js';
import { inParts } from './days-at-once.js';

const DAY_MS = 86_400_000;
/** End of the year 9999, the last date that has an ordinary text. */
const MS_MAX = 253_402_300_799_999;
const GROUP_COLUMNS: Readonly<Record<Group, RawBuilder<string>>> = { day: sql`day`, model: sql`model`, provider: sql`provider`, key: sql`key_id`, account: sql`account_id` };

/** The part of an attempt's detail that is shown to people, as written by domain/attempt-detail.ts. */
interface ReportedDetail extends AttemptDetail {
  readonly endpoint?: string;
  readonly routed_from?: string;
  readonly decision?: string;
  readonly status?: number;
  readonly failure?: string;
  readonly finish_reason?: string;
  readonly started_at_ms?: string;
}

interface EntryRow {
  readonly seq: bigint;
  readonly at_ms: bigint;
  readonly amount_nano_usd: bigint;
  readonly tokens: bigint;
  readonly byok_tokens: bigint;
  readonly attempt: number;
  readonly kind: 'attempt' | 'charge' | 'adjustment';
  readonly account_id: string;
  readonly request_id: string;
  readonly source: string;
  readonly provider: string;
  readonly period: string;
  readonly card_id: string;
  readonly key_id: string;
  readonly applies_to: string;
  readonly flags: readonly string[];
  readonly detail: string;
  readonly hash: string;
  readonly charge_hash: string | null;
}

function attemptView(row: EntryRow, charged: boolean): AttemptView {
  const detail = JSON.parse(row.detail) as ReportedDetail;
  return {
    attempt: row.attempt, provider: row.provider, model: detail.model ?? '', endpointId: detail.endpoint ?? '', httpStatus: detail.status ?? 0, failure: detail.failure ?? '', tokens: { ...NO_TOKENS, ...detail.tokens },
    costNanoUsd: row.amount_nano_usd, savingsNanoUsd: BigInt(detail.savings ?? 0), charged, byok: detail.byok ?? false, source: row.source, flags: row.flags, cardId: row.card_id, ttftMs: detail.ttft_ms ?? 0,
    totalMs: detail.total_ms ?? 0, finishReason: detail.finish_reason ?? '', startedAtMs: Number(detail.started_at_ms ?? 0), endedAtMs: Number(row.at_ms), routedFrom: detail.routed_from ?? '', decisionId: detail.decision ?? '',
  };
}

const adjustmentView = (row: EntryRow): LedgerRowView => ({
  seq: row.seq, kind: row.kind, requestId: row.request_id, attempt: row.attempt, amountNanoUsd: row.amount_nano_usd, source: row.source, charged: row.amount_nano_usd !== 0n, flags: row.flags, provider: row.provider, period: row.period,
  atMs: row.at_ms, prevHash: '', hash: row.hash, appliesTo: row.applies_to, tokens: row.tokens, byokTokens: row.byok_tokens, cardId: row.card_id,
});

/** A request from its rows, which ascend by sequence; undefined while it has no charge row. */
function requestView(rows: readonly EntryRow[]): RequestView | undefined {
  const charge = rows.find(({ kind, charge_hash }) => kind === 'charge' || charge_hash !== null);
  if (charge === undefined) return undefined;
  const adjustments = rows.filter(({ kind, applies_to }) => kind === 'adjustment' && applies_to === 'charge');
  const last = adjustments.at(-1) ?? charge;
  const charged = last.kind === 'attempt' ? [last.attempt] : (JSON.parse(last.detail) as { readonly charged: readonly number[] }).charged;
  return {
    id: charge.request_id, accountId: charge.account_id, atMs: Number(charge.at_ms), keyId: charge.key_id, period: charge.period, chargeNanoUsd: adjustments.reduce((sum, row) => sum + row.amount_nano_usd, charge.amount_nano_usd),
    attempts: rows.filter(({ kind }) => kind === 'attempt').map((row) => attemptView(row, charged.includes(row.attempt))).sort((a, b) => a.attempt - b.attempt),
    adjustments: adjustments.filter(({ flags }) => !flags.includes(FURTHER_FLAG)).map(adjustmentView),
  };
}

interface Durations {
  readonly total: number[];
  readonly firstToken: number[];
}

interface GroupSums {
  readonly name: string;
  readonly requests: bigint;
  readonly prompt: bigint;
  readonly completion: bigint;
  readonly cost: bigint;
  readonly charge: bigint;
  readonly savings: bigint;
}

const added = (known: GroupSums | undefined, more: GroupSums): GroupSums =>
  known === undefined ? more : { name: more.name, requests: known.requests + more.requests, prompt: known.prompt + more.prompt, completion: known.completion + more.completion, cost: known.cost + more.cost, charge: known.charge + more.charge, savings: known.savings + more.savings };

const latencyOf = ({ total, firstToken }: Durations = { total: [], firstToken: [] }): LatencyView => ({ totalMsP50: percentileMs(total, 0.5), totalMsP95: percentileMs(total, 0.95), ttftMsP50: percentileMs(firstToken, 0.5), ttftMsP95: percentileMs(firstToken, 0.95) });

const allOf = (conditions: readonly RawBuilder<unknown>[]): RawBuilder<unknown> => sql.join(conditions, sql` and `);

export function createRequestReads({ db }: Pick<Database<unknown>, 'db'>): Pick<BooksStore, 'usage' | 'requests' | 'request'> {
  /** All rows of these requests, found by the indexes on the request id. Only those of the account, unless it is ''. */
  async function rowsOf(accountId: string, requestIds: readonly string[]): Promise<Map<string, EntryRow[]>> {
    const { rows } = await sql<EntryRow>`select e.* from (
        select account_id, seq, request_id from ledger_entries where kind = 'attempt' and request_id = any(${requestIds}::text[])
        union select account_id, seq, request_id from ledger_entries where (kind = 'charge' or charge_hash is not null) and request_id = any(${requestIds}::text[])
        union select account_id, seq, request_id from ledger_entries where kind = 'adjustment' and request_id = any(${requestIds}::text[])
      ) k join ledger_entries e on e.account_id = k.account_id and e.seq = k.seq and e.request_id = k.request_id${accountId === '' ? sql`` : sql` where k.account_id = ${accountId}`} order by e.seq`.execute(db);
    const found = new Map<string, EntryRow[]>();
    for (const row of rows) {
      const known = found.get(row.request_id);
      if (known === undefined) found.set(row.request_id, [row]);
      else known.push(row);
    }
    return found;
  }

  /** Spans of time that contain a match, newest first, so that a filter does not scan days without one. */
  async function spansOf({ accountId, fromMs, model, provider, keyId, status }: RequestsQuery, beforeMs: number): Promise<readonly (readonly [number, number])[]> {
    if (status === 'failed' || (model === '' && provider === '' && keyId === '')) return [[fromMs, beforeMs]];
    const conditions = [sql`account_id = ${accountId}`, sql`requests > 0`];
    if (model !== '') conditions.push(sql`model = ${model}`);
    if (provider !== '') conditions.push(sql`provider = ${provider}`);
    if (keyId !== '') conditions.push(sql`key_id = ${keyId}`);
    if (fromMs > 0) conditions.push(sql`day >= ${dayOf(BigInt(fromMs))}`);
    if (beforeMs < MS_MAX) conditions.push(sql`day <= ${dayOf(BigInt(beforeMs))}`);
    const { rows } = await sql<{ day: string }>`select distinct day from usage_days where ${allOf(conditions)} order by day desc`.execute(db);
    return rows.map(({ day }) => [Math.max(Date.parse(day), fromMs), Math.min(Date.parse(day) + DAY_MS, beforeMs)]);
  }

  /** Counts of durations by group. */
  async function durationsOf(column: RawBuilder<string>, names: readonly string[], spans: readonly (readonly RawBuilder<unknown>[])[], signal?: AbortSignal): Promise<Map<string, Durations>> {
    const found = new Map<string, Durations>();
    for (const conditions of spans) {
      signal?.throwIfAborted();
      await addDurations(found, column, names, conditions);
    }
    return found;
  }

  async function addDurations(found: Map<string, Durations>, column: RawBuilder<string>, names: readonly string[], conditions: readonly RawBuilder<unknown>[]): Promise<void> {
    const { rows } = await sql<{ name: string; step: bigint; total: bigint; first: bigint }>`select ${column} as name, step, sum(total)::bigint as total, sum(first)::bigint as first
      from usage_days cross join lateral unnest(total_counts, first_token_counts) with ordinality as u(total, first, step)
      where ${allOf([...conditions, sql`${column} = any(${names}::text[])`, sql`(total > 0 or first > 0)`])} group by 1, 2`.execute(db);
    for (const { name, step, total, first } of rows) {
      let known = found.get(name);
      if (known === undefined) found.set(name, (known = { total: [], firstToken: [] }));
      const place = Number(step) - 1;
      known.total[place] = (known.total[place] ?? 0) + Number(total);
      known.firstToken[place] = (known.firstToken[place] ?? 0) + Number(first);
    }
  }

  /** Conditions that together let each day of the span pass once: those of one account at once, those of all in parts. */
  async function daySpans(accountId: string, fromDay: string, toDay: string): Promise<readonly (readonly RawBuilder<unknown>[])[]> {
    const bounds = [...(fromDay === '' ? [] : [sql`day >= ${fromDay}`]), ...(toDay === '' ? [] : [sql`day <= ${toDay}`])];
    if (accountId !== '') return [[sql`account_id = ${accountId}`, ...bounds]];
    const within = allOf([sql`true`, ...bounds]);
    // Only days that have rows, as they are ordered: a clock that was wrong may have put one into 1970, or behind the year 9999.
    const { rows } = await sql<{ day: string }>`with recursive d as (
        (select day from usage_days where ${within} order by day limit 1)
        union all select (select day from usage_days where ${within} and day > d.day order by day limit 1) from d where d.day is not null)
      select day from d where day is not null`.execute(db);
    return inParts(rows.map(({ day }) => day)).map((part) => [sql`day >= ${part[0]}`, sql`day <= ${part.at(-1)}`]);
  }

  return {
    usage: async ({ accountId, fromDay, toDay, groupBy, model, provider, keyId, after, limit, dearestFirst, signal }) => {
      const column = GROUP_COLUMNS[groupBy];
      const isNewestFirst = groupBy === 'day';
      const conditions: RawBuilder<unknown>[] = [];
      if (model !== '') conditions.push(sql`model = ${model}`);
      if (provider !== '') conditions.push(sql`provider = ${provider}`);
      if (keyId !== '') conditions.push(sql`key_id = ${keyId}`);
      if (after !== '') conditions.push(isNewestFirst ? sql`${column} < ${after}` : sql`${column} > ${after}`);
      const spans = (await daySpans(accountId, fromDay, toDay)).map((span) => [...span, ...conditions]);
      const sums = new Map<string, GroupSums>();
      // What a page by name shows is among the first names of each week: no more is read of 100,000 keys.
      const most = dearestFirst ? sql`` : sql`order by ${isNewestFirst ? sql`1 desc` : sql`1`} limit ${limit + 1}`;
      for (const span of spans) {
        signal?.throwIfAborted();
        const { rows } = await sql<GroupSums>`select ${column} as name, sum(requests)::bigint as requests,
            sum(prompt_tokens)::bigint as prompt, sum(completion_tokens)::bigint as completion, sum(cost_nano_usd)::bigint as cost, sum(charge_nano_usd + adjusted_nano_usd)::bigint as charge, sum(savings_nano_usd)::bigint as savings
          from usage_days where ${allOf(span)} group by 1 ${most}`.execute(db);
        for (const row of rows) sums.set(row.name, added(sums.get(row.name), row));
      }
      // In the order of the database, by which the next page begins.
      const order = dearestFirst ? sql`cost desc, name` : isNewestFirst ? sql`name desc` : sql`name`;
      const { rows: shown } = await sql<{ name: string }>`select name from unnest(${[...sums.keys()]}::text[], ${[...sums.values()].map(({ cost }) => cost)}::bigint[]) as s(name, cost) order by ${order} limit ${limit + 1}`.execute(db);
      const names = shown.slice(0, limit).map(({ name }) => name);
      const durations = await durationsOf(column, names, spans, signal);
      return {
        rows: names.flatMap((name) => {
          const row = sums.get(name);
          return row === undefined ? [] : [{
            group: row.name, requests: row.requests, promptTokens: row.prompt, completionTokens: row.completion, costNanoUsd: row.cost, chargeNanoUsd: row.charge, savingsNanoUsd: row.savings, ...latencyOf(durations.get(row.name)),
          }];
        }),
        hasMore: shown.length > limit,
      };
    },

    requests: async (query) => {
      const { accountId, toMs, model, provider, keyId, status, after, limit, signal } = query;
      const conditions = [sql`e.account_id = ${accountId}`, sql`(e.kind = 'charge' or e.charge_hash is not null)`];
      let beforeMs = toMs === 0 ? MS_MAX : toMs;
      if (after !== '') {
        const { rows } = await sql<{ at_ms: bigint; seq: bigint }>`select at_ms, seq from ledger_entries where request_id = ${after} and account_id = ${accountId} and (kind = 'charge' or charge_hash is not null)`.execute(db);
        const [last] = rows;
        if (last === undefined) return undefined;
        conditions.push(sql`(e.at_ms, e.seq) < (${last.at_ms}::bigint, ${last.seq}::bigint)`);
        beforeMs = Math.min(beforeMs, Number(last.at_ms) + 1);
      }
      if (provider !== '') conditions.push(sql`e.provider = ${provider}`);
      if (keyId !== '') conditions.push(sql`e.key_id = ${keyId}`);
      if (status === 'failed') conditions.push(sql`e.kind = 'charge'`, sql`e.detail like '{"charged":[]%'`);
      if (status === 'completed') conditions.push(sql`(e.charge_hash is not null or e.detail not like '{"charged":[]%')`);
      // The detail of an attempt always begins with its model.
      const begins = `{"model":${JSON.stringify(model)},`;
      if (model !== '') conditions.push(sql`starts_with(case when e.kind = 'attempt' then e.detail else (select a.detail from ledger_entries a where a.kind = 'attempt' and a.request_id = e.request_id and a.attempt = e.attempt) end, ${begins})`);
      const ids: string[] = [];
      for (const [spanFrom, spanTo] of await spansOf(query, beforeMs)) {
        signal?.throwIfAborted();
        const span = [sql`e.at_ms >= ${spanFrom}::bigint`, sql`e.at_ms < ${spanTo}::bigint`];
        const { rows } = await sql<{ request_id: string }>`select e.request_id from ledger_entries e where ${allOf([...conditions, ...span])} order by e.at_ms desc, e.seq desc limit ${limit + 1 - ids.length}`.execute(db);
        ids.push(...rows.map(({ request_id }) => request_id));
        if (ids.length > limit) break;
      }
      const shown = ids.slice(0, limit);
      const found = await rowsOf(accountId, shown);
      return { requests: shown.flatMap((id) => requestView(found.get(id) ?? []) ?? []), hasMore: ids.length > limit };
    },

    request: async (accountId, requestId) => requestView((await rowsOf(accountId, [requestId])).get(requestId) ?? []),
  };
}
