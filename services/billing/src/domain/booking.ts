/** Turns facts into ledger rows. Pure: the same facts, in any order and any number of times, give the same sums. */
import { assert } from '@signalbox/kernel/assert';
import { feesOfAttempt } from '@signalbox/kernel/card-fees';
import { asNanoUsd } from '@signalbox/kernel/money';
import { correctionOf, fold, isWhole } from '@signalbox/ledger-core/fold';
import type { ChargePeriods } from '@signalbox/ledger-core/totals';
import type { CheckedAttempt, CheckedOutcome } from './check.js';
import { NEW_HEAD, OpenAccount, type AccountHead, type BookedAccount, type DraftEntry, type LedgerEntry } from './open-account.js';
import { chargeDetail, plainChargeDetail, RequestState, sourceOf, type AttemptSource } from './request.js';
import { FURTHER_FLAG, usageOf } from './usage.js';

export interface Booking {
  /** New outcomes that no row contains; to be stored beside the rows. */
  readonly outcomes: readonly CheckedOutcome[];
  readonly accounts: readonly BookedAccount[];
  /** Facts that name a different account than their request has. */
  readonly refused: readonly (CheckedAttempt | CheckedOutcome)[];
}

/** What a batch says about one request. */
export interface ToldRequest {
  readonly requestId: string;
  /** Taken out once they are booked. */
  attempts: readonly CheckedAttempt[];
  outcomes: readonly CheckedOutcome[];
}

export interface BookingInput {
  /** As `byRequest` gives it. */
  readonly told: readonly ToldRequest[];
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

/** Nearly all lists have one element, for which a list that grows would reserve many. */
const added = <Fact>(facts: readonly Fact[], fact: Fact): readonly Fact[] => (facts.length === 0 ? [fact] : [...facts, fact]);

/** Facts by request, in the order in which requests are named, those with attempts first. */
export function byRequest(told: readonly { readonly attempts: readonly CheckedAttempt[]; readonly outcomes: readonly CheckedOutcome[] }[]): ToldRequest[] {
  const places = new Map<string, ToldRequest>();
  const requests: ToldRequest[] = [];
  const add = (request: ToldRequest): void => {
    places.set(request.requestId, request);
    requests.push(request);
  };
  for (const { attempts } of told) {
    for (const attempt of attempts) {
      const known = places.get(attempt.requestId);
      if (known === undefined) add({ requestId: attempt.requestId, attempts: [attempt], outcomes: NONE });
      else known.attempts = added(known.attempts, attempt);
    }
  }
  for (const { outcomes } of told) {
    for (const outcome of outcomes) {
      const known = places.get(outcome.requestId);
      if (known === undefined) add({ requestId: outcome.requestId, attempts: NONE, outcomes: [outcome] });
      else known.outcomes = added(known.outcomes, outcome);
    }
  }
  return requests;
}

/** A batch while it is booked. */
class OpenBatch {
  readonly refused: (CheckedAttempt | CheckedOutcome)[] = [];
  readonly unrecorded: CheckedOutcome[] = [];
  readonly accounts = new Map<string, OpenAccount>();

  constructor(private readonly input: BookingInput) {}

  bookAll(requests: readonly ToldRequest[]): void {
    for (const request of requests) {
      this.book(request);
      // What is booked may be garbage-collected between parts.
      request.attempts = NONE;
      request.outcomes = NONE;
    }
  }

  /** One attempt row for each new attempt, then the charge row or an adjustment. */
  private book({ requestId, attempts, outcomes }: ToldRequest): void {
    const { requests, nowMs, books } = this.input;
    const known = requests.get(requestId);
    const [only] = attempts;
    if (known === undefined && only !== undefined && attempts.length === 1 && isPlain(only, outcomes)) {
      bookPlain(this.accountOf(only.accountId), only, books);
      return;
    }
    const state = known ?? new RequestState((attempts[0] ?? outcomes[0])?.accountId ?? '');
    let ended: readonly CheckedAttempt[] = NONE;
    let told: readonly CheckedOutcome[] = NONE;
    for (const attempt of attempts) if (this.isOf(state, attempt) && state.addAttempt(attempt.fact, attempt.keyId, attempt.periods, attempt)) ended = added(ended, attempt);
    for (const outcome of outcomes) if (this.isOf(state, outcome) && state.addOutcome(outcome.fact)) told = added(told, outcome);
    if (ended.length + told.length === 0) return;
    const account = this.accountOf(state.accountId);
    for (const attempt of ended) account.attempt(attemptRow(attempt, books), attempt.fact.byok);
    if (!charge(account, requestId, state, nowMs, books)) this.unrecorded.push(...told);
    // After the charge: an ordinary charge is packed into the row of the attempt right before it.
    for (const attempt of ended) learn(account, attempt, books);
  }

  /** False if the fact names a different account than its request has: it is refused. */
  private isOf({ accountId }: RequestState, fact: CheckedAttempt | CheckedOutcome): boolean {
    if (fact.accountId === accountId) return true;
    this.refused.push(fact);
    return false;
  }

  private accountOf(accountId: string): OpenAccount {
    let account = this.accounts.get(accountId);
    if (account === undefined) this.accounts.set(accountId, (account = new OpenAccount(accountId, this.input.heads.get(accountId) ?? NEW_HEAD, this.input.addRow)));
    return account;
  }
}

/** Requests booked in one part; takes half a millisecond. */
const PART_REQUESTS = 128;

/** Books all facts, request by request, and yields after each part. */
export function* bookInParts(input: BookingInput): Generator<undefined, Booking, undefined> {
  const batch = new OpenBatch(input);
  for (let from = 0; from < input.told.length; from += PART_REQUESTS) {
    if (from > 0) yield;
    batch.bookAll(input.told.slice(from, from + PART_REQUESTS));
  }
  return { outcomes: batch.unrecorded, accounts: [...batch.accounts.values()].map((account) => account.booked()), refused: batch.refused };
}

/** Books all facts in one go and also returns the rows. */
export function book({ attempts, outcomes, ...input }: Omit<BookingInput, 'addRow' | 'told'> & { readonly attempts: readonly CheckedAttempt[]; readonly outcomes: readonly CheckedOutcome[] }): Booking & { readonly rows: readonly LedgerEntry[] } {
  const rows: LedgerEntry[] = [];
  const parts = bookInParts({ ...input, told: byRequest([{ attempts, outcomes }]), addRow: (row) => rows.push(row) });
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

/** Whether these facts are a whole request, charged for its one attempt, as nearly all are. */
function isPlain({ accountId, fact }: CheckedAttempt, outcomes: readonly CheckedOutcome[]): boolean {
  const [told] = outcomes;
  return told !== undefined && outcomes.length === 1 && told.accountId === accountId && fact.attempt === 1 && fact.retryOf.length === 0 && told.fact.attempt === 1 && told.fact.outcome === 'DELIVERED' && told.fact.toldByEdge && told.fact.isFollowed !== true;
}

/** Books a plain request of which nothing is known yet: the same rows and sums that its state would give, without making one. */
function bookPlain(account: OpenAccount, attempt: CheckedAttempt, books: Books | undefined): void {
  const { requestId, fact, usage } = attempt;
  const { byok, costNanoUsd, tokens } = fact;
  const row = attemptRow(attempt, books);
  account.attempt(row, byok);
  const charged = { ...row, kind: 'charge' as const, amountNanoUsd: byok ? 0n : costNanoUsd, flags: NO_FLAGS, detail: plainChargeDetail(fact.attempt) };
  account.append(charged);
  account.charge(charged, bookedTo(attempt.periods, books), usage.model, {
    requests: 1, tokens: byok ? 0 : tokens, byokTokens: byok ? tokens : 0, promptTokens: usage.promptTokens, completionTokens: usage.completionTokens, costNanoUsd, chargeNanoUsd: charged.amountNanoUsd,
    feesNanoUsd: byok ? 0n : feesOfAttempt(costNanoUsd, attempt.cardId).feeNanoUsd, adjustedNanoUsd: 0n, savingsNanoUsd: usage.savingsNanoUsd, totalMs: usage.totalMs, ttftMs: usage.ttftMs,
  });
  account.settled(requestId);
  learn(account, attempt, books);
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
  account.charge(row, periods, source?.usage.model ?? '', usageOf(state, correction, charged, flags));
  if (isWhole(state.facts)) account.settled(requestId);
  return true;
}
