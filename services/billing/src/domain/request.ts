/** What the ledger knows of a request: read back from its own rows, which are the only state there is. */
import { asNanoUsd } from '@signalbox/kernel/money';
import { addAttempt, addOutcome, isComplete, isWhole, NO_FACTS, type AttemptFact, type Booked, type OutcomeFact, type RequestFacts, type ToldOutcome } from '@signalbox/ledger-core/fold';
import type { ChargePeriods } from '@signalbox/ledger-core/totals';
import { completionTokens, NO_TOKENS, promptTokens, type TokenCounts } from '@signalbox/kernel/tokens';
import type { AttemptUsage } from './usage.js';

const NONE: readonly never[] = [];
const NO_PERIODS: ChargePeriods = { day: '', week: '', month: '', plan: '' };

/** What a charge row repeats of the attempt it stands for. */
export interface AttemptSource {
  readonly fact: Pick<AttemptFact, 'attempt'>;
  readonly source: string;
  readonly provider: string;
  readonly cardId: string;
  readonly endedAtMs: bigint;
  readonly usage: AttemptUsage;
}

/** Changed in place as facts are added: nearly all requests are booked as they come to be known, and die then. */
export class RequestState {
  keyId = '';
  facts = NO_FACTS;
  booked: Booked | undefined;
  /** Attempts that the latest row about the charge counts; empty while there is none. */
  bookedAttempts: readonly number[] = NONE;
  periods = NO_PERIODS;
  /** One an attempt. */
  sources: readonly AttemptSource[] = NONE;

  constructor(readonly accountId: string) {}

  /** False when the attempt is known. The first attempt's key and periods are the request's. */
  addAttempt(fact: AttemptFact, keyId: string, periods: ChargePeriods, source: AttemptSource): boolean {
    const facts = addAttempt(this.facts, fact);
    if (facts === this.facts) return false;
    this.facts = facts;
    if (this.keyId === '') this.keyId = keyId;
    if (this.periods.month === '') this.periods = periods;
    this.sources = this.sources.length === 0 ? [source] : [...this.sources, source];
    return true;
  }

  /** False when it says nothing new. */
  addOutcome(fact: OutcomeFact): boolean {
    const facts = addOutcome(this.facts, fact);
    if (facts === this.facts) return false;
    this.facts = facts;
    return true;
  }
}

/** So long a log that has another round of a charged request is waited for: one that tells nothing for as long counts as lost. */
export const ROUND_WAIT_MS = 900_000;
/** So long a round is waited for that was announced only: it may have begun nowhere. */
export const ANNOUNCED_WAIT_MS = 60_000;

/** True when counters need hold nothing more for a charged request that lives no more. Waits count from the end of its latest attempt: the next may be under way still. */
export function isSettled({ facts, sources }: Pick<RequestState, 'facts' | 'sources'>, nowMs: number): boolean {
  if (isWhole(facts)) return true;
  const waitMs = isComplete(facts) ? ANNOUNCED_WAIT_MS : ROUND_WAIT_MS;
  return sources.every(({ endedAtMs }) => nowMs - Number(endedAtMs) >= waitMs);
}

/** What is known of an attempt beside its fact; undefined = the request has no such attempt. */
export function sourceOf({ sources }: Pick<RequestState, 'sources'>, attempt: number): AttemptSource | undefined {
  for (const source of sources) if (source.fact.attempt === attempt) return source;
  return undefined;
}

/** The part of an attempt row's detail that booking needs again; what is empty or false is left out. */
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
  /** Attempt, outcome, told by edge; a fourth, true, where a later round was answered. */
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

/** Of a request whose one attempt edge reported as delivered: by far the most. */
export function plainChargeDetail(attempt: number): string {
  return attempt === 1 ? FIRST_CHARGED : detailOfPlain(attempt);
}

/** A row of the ledger; or, of kind `outcome`, outcomes that no row of the ledger tells yet. */
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
