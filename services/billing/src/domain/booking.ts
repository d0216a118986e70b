/** Turns facts into ledger rows. Pure: the same facts, in any order and any number of times, give the same sums. */
import { assert } from '@signalbox/kernel/assert';
import { feesOfAttempt } from '@signalbox/kernel/card-fees';
import { asNanoUsd } from '@signalbox/kernel/money';
import { correctionOf, fold, isWhole } from '@signalbox/ledger-core/fold';
import type { ChargePeriods } from '@signalbox/ledger-core/totals';
import type { CheckedAttempt, CheckedOutcome } from './check.js';
import { NEW_HEAD, OpenAccount, type AccountHead, type BookedAccount, type DraftEntry, type LedgerEntry } from './open-account.js';
import { chargeDetail, RequestState, sourceOf, type AttemptSource } from './request.js';
import { FURTHER_FLAG, usageOf } from './usage.js';

export interface Booking {
  /** New outcomes that no row contains; to be stored beside the rows. */
  readonly outcomes: readonly CheckedOutcome[];
  readonly accounts: readonly BookedAccount[];
  /** Facts that name a different account than their request has. */
  readonly refused: readonly (CheckedAttempt | CheckedOutcome)[];
}

export interface BookingInput {
  readonly attempts: readonly CheckedAttempt[];
  readonly outcomes: readonly CheckedOutcome[];
  /** States of all requests that are named and exist; changed by the booking. */
  readonly requests: ReadonlyMap<string, RequestState>;
  /** Heads of all accounts that are named and exist. */
  readonly heads: ReadonlyMap<string, AccountHead>;
  readonly nowMs: number;
  /** Periods that are closed; absent = none. */
  readonly books?: Books | undefined;
  /** Called with each row of the ledger; those of an account come in the order of its chain. */
  addRow(row: LedgerEntry): void;
}

/** Closed periods, and the open one that late facts are booked to. */
export interface Books {
  readonly closed: ReadonlySet<string>;
  readonly open: string;
}

const LATE_FLAG = 'late';

/** The periods that a row is booked to: facts of a closed month go to the open one. */
function bookedTo(periods: ChargePeriods, books: Books | undefined): ChargePeriods {
  if (books === undefined || !books.closed.has(periods.month)) return periods;
  return { ...periods, month: books.open };
}

/** Gives a reason, like the operator's own corrections. */
const TOLD_DETAIL = JSON.stringify({ reason: 'told by the provider' });
const NO_FLAGS: readonly string[] = [];
const LATE_FLAGS: readonly string[] = [LATE_FLAG];
const FURTHER_FLAGS: readonly string[] = [FURTHER_FLAG];

const NONE: readonly never[] = [];

interface OpenRequest {
  readonly state: RequestState;
  /** New attempts in this batch. */
  attempts: readonly CheckedAttempt[];
  told: readonly CheckedOutcome[];
}

/** Requests booked in one part; takes half a millisecond. */
const PART_REQUESTS = 128;

/** Books all facts, request by request: one attempt row for each new attempt, then its charge row or an adjustment. Yields after each part. */
export function* bookInParts({ attempts, outcomes, requests, heads, nowMs, books, addRow }: BookingInput): Generator<undefined, Booking, undefined> {
  const refused: (CheckedAttempt | CheckedOutcome)[] = [];
  const unrecorded: CheckedOutcome[] = [];
  const touched = new Map<string, OpenRequest>();
  const accounts = new Map<string, OpenAccount>();

  /** Undefined if the fact names a different account than its request has. */
  const stateOf = ({ requestId, accountId }: CheckedAttempt | CheckedOutcome, open: OpenRequest | undefined): RequestState | undefined => {
    const state = open?.state ?? requests.get(requestId) ?? new RequestState(accountId);
    return state.accountId === accountId ? state : undefined;
  };

  for (const attempt of attempts) {
    const open = touched.get(attempt.requestId);
    const state = stateOf(attempt, open);
    if (state === undefined) refused.push(attempt);
    else if (state.addAttempt(attempt.fact, attempt.keyId, attempt.periods, attempt)) {
      if (open === undefined) touched.set(attempt.requestId, { state, attempts: [attempt], told: NONE });
      else open.attempts = [...open.attempts, attempt];
    }
  }
  for (const outcome of outcomes) {
    const open = touched.get(outcome.requestId);
    const state = stateOf(outcome, open);
    if (state === undefined) refused.push(outcome);
    else if (state.addOutcome(outcome.fact)) {
      if (open === undefined) touched.set(outcome.requestId, { state, attempts: NONE, told: [outcome] });
      else open.told = open.told.length === 0 ? [outcome] : [...open.told, outcome];
    }
  }

  let inPart = 0;
  for (const [requestId, { state, attempts: ended, told }] of touched) {
    if (inPart === PART_REQUESTS) {
      inPart = 0;
      yield;
    }
    inPart += 1;
    let account = accounts.get(state.accountId);
    if (account === undefined) accounts.set(state.accountId, (account = new OpenAccount(state.accountId, heads.get(state.accountId) ?? NEW_HEAD, addRow)));
    for (const attempt of ended) account.attempt(attemptRow(attempt, books), attempt.fact.byok);
    if (!charge(account, requestId, state, nowMs, books)) unrecorded.push(...told);
    // After the charge: an ordinary charge is packed into the row of the attempt right before it.
    for (const attempt of ended) learn(account, attempt, books);
    // What is booked may be garbage-collected between parts.
    touched.delete(requestId);
  }
  return { outcomes: unrecorded, accounts: [...accounts.values()].map((account) => account.booked()), refused };
}

/** Books all facts in one go and also returns the rows. */
export function book(input: Omit<BookingInput, 'addRow'>): Booking & { readonly rows: readonly LedgerEntry[] } {
  const rows: LedgerEntry[] = [];
  const parts = bookInParts({ ...input, addRow: (row) => rows.push(row) });
  for (;;) {
    const part = parts.next();
    if (part.done === true) return { ...part.value, rows };
  }
}

function attemptRow(attempt: CheckedAttempt, books: Books | undefined): DraftEntry {
  const { fact } = attempt;
  const { month } = bookedTo(attempt.periods, books);
  const tokens = BigInt(fact.tokens);
  return {
    accountId: attempt.accountId, seq: 0n, kind: 'attempt', requestId: attempt.requestId, attempt: fact.attempt, amountNanoUsd: fact.costNanoUsd, tokens: fact.byok ? 0n : tokens, byokTokens: fact.byok ? tokens : 0n, source: attempt.source,
    flags: month === attempt.periods.month ? attempt.flags : [...attempt.flags, LATE_FLAG], provider: attempt.provider, period: month, atMs: attempt.endedAtMs, appliesTo: '', cardId: attempt.cardId, keyId: attempt.keyId, detail: attempt.detail, hash: '',
  };
}

/** The amount that the provider says it charged becomes the operator's cost (ADR 77); the charge to the account stays as the client was told. */
function learn(account: OpenAccount, attempt: CheckedAttempt, books: Books | undefined): void {
  const { toldNanoUsd, fact } = attempt;
  if (toldNanoUsd === undefined) return;
  const amountNanoUsd = asNanoUsd(toldNanoUsd + feesOfAttempt(fact.costNanoUsd, attempt.cardId).feeNanoUsd - fact.costNanoUsd);
  if (amountNanoUsd === 0n) return;
  const row = attemptRow(attempt, books);
  account.cost({ ...row, kind: 'adjustment', amountNanoUsd, tokens: 0n, byokTokens: 0n, source: 'provider', flags: row.period === attempt.periods.month ? NO_FLAGS : [LATE_FLAG], appliesTo: 'cost', detail: TOLD_DETAIL });
}

/**
 * Nothing that was charged is taken back, and what is added may count where the charge does. It may not where the charge names an attempt
 * that nobody pays for and another model or provider answered: that is a correction.
 */
function isFurther({ bookedAttempts, countedAs, sources }: RequestState, charged: readonly number[], latest: AttemptSource | undefined): boolean {
  if (!bookedAttempts.every((attempt) => charged.includes(attempt))) return false;
  const counted = sourceOf({ sources }, countedAs);
  return (countedAs !== undefined && charged.includes(countedAs)) || (counted?.provider === latest?.provider && counted?.usage.model === latest?.usage.model);
}

/** Adds the charge row or adjustment that the request's facts require. False = none is required. */
function charge(account: OpenAccount, requestId: string, state: RequestState, nowMs: number, books: Books | undefined): boolean {
  const right = fold(state.facts);
  const correction = correctionOf(state.booked, right);
  if (correction === undefined) {
    if (state.booked !== undefined && isWhole(state.facts)) account.settledAsBooked(requestId, state.keyId, bookedTo(state.periods, books));
    return false;
  }
  assert((state.booked?.chargeNanoUsd ?? 0n) + correction.amountNanoUsd >= 0n, 'A charge is never below 0.');
  const charged = right?.chargedAttempts ?? [];
  const isCharge = correction.kind === 'charge';
  const tokens = BigInt(correction.tokens);
  const byokTokens = BigInt(correction.byokTokens);
  const periods = bookedTo(state.periods, books);
  const latest = sourceOf(state, charged.at(-1) ?? state.facts.attempts.at(-1)?.attempt);
  let flags = NO_FLAGS;
  let source = latest;
  if (!isCharge && periods !== state.periods) flags = LATE_FLAGS;
  else if (!isCharge && isFurther(state, charged, latest)) {
    flags = FURTHER_FLAGS;
    source = sourceOf(state, state.countedAs);
  }
  const row: DraftEntry = {
    accountId: state.accountId, seq: 0n, kind: correction.kind, requestId, attempt: source?.fact.attempt ?? 0, amountNanoUsd: correction.amountNanoUsd, tokens, byokTokens, source: source?.source ?? '', flags, provider: source?.provider ?? '',
    period: periods.month, atMs: (isCharge || flags === FURTHER_FLAGS ? source?.endedAtMs : undefined) ?? BigInt(nowMs), appliesTo: isCharge ? '' : 'charge', cardId: source?.cardId ?? '', keyId: state.keyId,
    detail: chargeDetail(state.facts, charged), hash: '',
  };
  account.append(row);
  account.charge(row, periods, correction, source?.usage.model ?? '', usageOf(state, correction, charged, flags));
  if (isWhole(state.facts)) account.settled(requestId);
  return true;
}
