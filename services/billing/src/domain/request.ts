/** What the ledger knows about a request. It is read back from the ledger's own rows; there is no other state. */
import { asNanoUsd } from '@signalbox/kernel/money';
import { addAttempt, addOutcome, isComplete, isWhole, NO_FACTS, type AttemptFact, type Booked, type OutcomeFact, type RequestFacts, type ToldOutcome } from '@signalbox/ledger-core/fold';
import type { ChargePeriods } from '@signalbox/ledger-core/totals';
import { completionTokens, NO_TOKENS, promptTokens, type TokenCounts } from '@signalbox/kernel/tokens';
import type { AttemptUsage } from './usage.js';

const NONE: readonly never[] = [];
const NO_PERIODS: ChargePeriods = { day: '', week: '', month: '', plan: '' };

/** The columns of an attempt that its charge row repeats. */
export interface AttemptSource {
  readonly fact: Pick<AttemptFact, 'attempt'>;
  readonly source: string;
  readonly provider: string;
  readonly cardId: string;
  readonly endedAtMs: bigint;
  readonly usage: AttemptUsage;
}

/** Changed in place as facts are added, since nearly all requests are booked as soon as they are known and then discarded. */
export class RequestState {
  keyId = '';
  facts = NO_FACTS;
  booked: Booked | undefined;
  /** Attempts that the latest charge or adjustment row includes; empty while there is none. */
  bookedAttempts: readonly number[] = NONE;
  /** The attempt that the charge row names: the request counts on the day of its end, for its model and provider. Undefined while there is no charge row. */
  countedAs: number | undefined;
  periods = NO_PERIODS;
  /** One for each attempt. */
  sources: readonly AttemptSource[] = NONE;

  constructor(readonly accountId: string) {}

  /** False if the attempt is already known. The first attempt's key and periods apply to the request. */
  addAttempt(fact: AttemptFact, keyId: string, periods: ChargePeriods, source: AttemptSource): boolean {
    const facts = addAttempt(this.facts, fact);
    if (facts === this.facts) return false;
    this.facts = facts;
    if (this.keyId === '') this.keyId = keyId;
    if (this.periods.month === '') this.periods = periods;
    this.sources = this.sources.length === 0 ? [source] : [...this.sources, source];
    return true;
  }

  /** False if the outcome is not new. */
  addOutcome(fact: OutcomeFact): boolean {
    const facts = addOutcome(this.facts, fact);
    if (facts === this.facts) return false;
    this.facts = facts;
    return true;
  }
}

/** How long to wait for a log that has another round of a charged request; a writer that is silent for this long counts as lost. */
export const ROUND_WAIT_MS = 900_000;
/** How long to wait for a round that was only announced: it may never have begun. */
export const ANNOUNCED_WAIT_MS = 60_000;

/** True if quota need not hold anything more for a charged request that is no longer running. Waits count from the end of its latest attempt, since the next may still be under way. */
export function isSettled({ facts, sources }: Pick<RequestState, 'facts' | 'sources'>, nowMs: number): boolean {
  if (isWhole(facts)) return true;
  const waitMs = isComplete(facts) ? ANNOUNCED_WAIT_MS : ROUND_WAIT_MS;
  return sources.every(({ endedAtMs }) => nowMs - Number(endedAtMs) >= waitMs);
}

/** The source of an attempt; undefined = the request has no such attempt. */
export function sourceOf({ sources }: Pick<RequestState, 'sources'>, attempt: number | undefined): AttemptSource | undefined {
  for (const source of sources) if (source.fact.attempt === attempt) return source;
  return undefined;
}

/** The part of an attempt row's detail that booking reads again; empty or false members are left out. */
export interface AttemptDetail {
  readonly retry_of?: readonly number[];
  readonly rests_on_calls?: boolean;
  readonly byok?: boolean;
  readonly day?: string;
  readonly week?: string;
  readonly plan?: string;
  readonly model?: string;
  readonly tokens?: Partial<TokenCounts>;
  /** Nano-USD as text, signed. */
  readonly savings?: string;
  readonly ttft_ms?: number;
  readonly total_ms?: number;
}

/** Detail of a charge or an adjustment: what it was computed from. */
export interface ChargeDetail {
  /** Attempts that are charged, ascending. */
  readonly charged: readonly number[];
  /** The fourth element, true, is present if a later round was answered. */
  readonly outcomes: readonly (readonly [attempt: number, outcome: ToldOutcome, toldByEdge: boolean, isFollowed?: true])[];
}

/** A ChargeDetail as text. */
export function chargeDetail({ outcomes }: RequestFacts, charged: readonly number[]): string {
  const [only] = outcomes;
  if (only !== undefined && outcomes.length === 1 && charged.length === 1 && only.attempt === charged[0] && only.outcome === 'DELIVERED' && only.toldByEdge && only.isFollowed !== true) return plainChargeDetail(only.attempt);
  const told = outcomes.map(({ attempt, outcome, toldByEdge, isFollowed }) => `[${attempt},"${outcome}",${toldByEdge}${isFollowed === true ? ',true' : ''}]`);
  return `{"charged":[${charged.join(',')}],"outcomes":[${told.join(',')}]}`;
}

const detailOfPlain = (attempt: number): string => `{"charged":[${attempt}],"outcomes":[[${attempt},"DELIVERED",true]]}`;
const FIRST_CHARGED = detailOfPlain(1);

/** Detail of a request whose only attempt edge reported as delivered, which is by far the most frequent kind. */
export function plainChargeDetail(attempt: number): string {
  return attempt === 1 ? FIRST_CHARGED : detailOfPlain(attempt);
}

/** A row of the ledger; or, with kind `outcome`, an outcome that no row of the ledger contains yet. */
export type StoredRow = {
  readonly requestId: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly attempt: number;
  readonly amountNanoUsd: bigint;
  readonly tokens: bigint;
  readonly byokTokens: bigint;
  readonly source: string;
  readonly provider: string;
  readonly cardId: string;
  readonly period: string;
  readonly atMs: bigint;
  /** Of a packed charge, those of its attempt. */
  readonly flags: readonly string[];
} & ({ readonly kind: 'attempt'; readonly detail: AttemptDetail } | { readonly kind: 'charge' | 'adjustment' | 'outcome'; readonly detail: ChargeDetail });

function usageOfDetail({ model = '', tokens = {}, savings = '0', total_ms: totalMs = 0, ttft_ms: ttftMs = 0 }: AttemptDetail): AttemptUsage {
  const counts = { ...NO_TOKENS, ...tokens };
  return { model, promptTokens: promptTokens(counts), completionTokens: completionTokens(counts), savingsNanoUsd: BigInt(savings), totalMs, ttftMs };
}

function addRow(state: RequestState, row: StoredRow): void {
  if (row.kind === 'attempt') {
    const { retry_of: retryOf = [], rests_on_calls: restsOnCalls = false, byok = false, day = '', week = '', plan = '' } = row.detail;
    const known: AttemptFact = { attempt: row.attempt, retryOf, costNanoUsd: asNanoUsd(row.amountNanoUsd), tokens: Number(byok ? row.byokTokens : row.tokens), byok };
    const fact = restsOnCalls ? { ...known, restsOnCalls } : known;
    const source = { fact, source: row.source, provider: row.provider, cardId: row.cardId, endedAtMs: row.atMs, usage: usageOfDetail(row.detail) };
    state.addAttempt(fact, row.keyId, { day, week, month: row.period, plan }, source);
    return;
  }
  for (const [attempt, outcome, toldByEdge, isFollowed] of row.detail.outcomes) state.addOutcome(isFollowed === true ? { attempt, outcome, toldByEdge, isFollowed } : { attempt, outcome, toldByEdge });
  if (row.kind === 'outcome') return;
  const before = state.booked ?? { chargeNanoUsd: 0n, tokens: 0, byokTokens: 0 };
  state.booked = {
    chargeNanoUsd: asNanoUsd(before.chargeNanoUsd + row.amountNanoUsd),
    tokens: before.tokens + Number(row.tokens),
    byokTokens: before.byokTokens + Number(row.byokTokens),
  };
  state.bookedAttempts = row.detail.charged;
  if (row.kind === 'charge') state.countedAs = row.attempt;
}

/** States by request id. Rows of one request ascend by sequence. */
export function requestsOf(rows: readonly StoredRow[]): Map<string, RequestState> {
  const states = new Map<string, RequestState>();
  for (const row of rows) {
    let state = states.get(row.requestId);
    if (state === undefined) states.set(row.requestId, (state = new RequestState(row.accountId)));
    addRow(state, row);
  }
  return states;
}
