/** From facts to ledger rows: pure, so that the same facts in any order and any number of times give the same sums. */
import { assert } from '@signalbox/kernel/assert';
import { asNanoUsd } from '@signalbox/kernel/money';
import { addAttempt, addOutcome, correctionOf, fold, NO_FACTS, type Booked, type RequestFacts } from '@signalbox/ledger-core/fold';
import { chainHash, CHAIN_START, type ChainedRow } from '@signalbox/ledger-core/hash-chain';
import { sumDeltas, totalDeltas, type ChargePeriods, type TotalDelta } from '@signalbox/ledger-core/totals';
import type { CheckedAttempt, CheckedOutcome } from './check.js';

/** What the ledger remembers of a request between batches. */
export interface RequestState {
  readonly requestId: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly facts: RequestFacts;
  readonly booked: Booked | undefined;
  readonly chargedAttempts: readonly number[];
  readonly periods: ChargePeriods;
  /** By attempt: what its charge row repeats. */
  readonly sources: Readonly<Record<string, { readonly source: string; readonly provider: string; readonly cardId: string; readonly endedAtMs: string }>>;
}

/** The end of an account's chain. */
export interface AccountHead {
  readonly seq: bigint;
  readonly hash: string;
}

export const NEW_HEAD: AccountHead = { seq: 0n, hash: CHAIN_START };

export interface LedgerEntry extends ChainedRow {
  readonly keyId: string;
  readonly prevHash: string;
  readonly hash: string;
  readonly detail: Readonly<Record<string, unknown>>;
}

export interface Booking {
  readonly rows: readonly LedgerEntry[];
  /** Requests whose state changed. */
  readonly requests: readonly RequestState[];
  readonly accounts: readonly { readonly accountId: string; readonly head: AccountHead; readonly deltas: readonly TotalDelta[]; readonly chargedRequestIds: readonly string[] }[];
  /** Facts that name another account than the request has. */
  readonly refused: readonly (CheckedAttempt | CheckedOutcome)[];
}

export interface BookingInput {
  readonly attempts: readonly CheckedAttempt[];
  readonly outcomes: readonly CheckedOutcome[];
  /** States of all requests named, as far as they exist. */
  readonly requests: ReadonlyMap<string, RequestState>;
  /** Heads of all accounts named, as far as they exist. */
  readonly heads: ReadonlyMap<string, AccountHead>;
  readonly nowMs: number;
}

const NO_PERIODS: ChargePeriods = { day: '', week: '', month: '', plan: '' };

interface OpenAccount {
  head: AccountHead;
  readonly deltas: TotalDelta[];
  readonly charged: string[];
}

/** Books all facts: one attempt row for each new attempt, then for each request touched its charge row or an adjustment. */
export function book({ attempts, outcomes, requests, heads, nowMs }: BookingInput): Booking {
  const rows: LedgerEntry[] = [];
  const refused: (CheckedAttempt | CheckedOutcome)[] = [];
  const touched = new Map<string, RequestState>();
  const accounts = new Map<string, OpenAccount>();

  const accountOf = (accountId: string): OpenAccount => {
    let account = accounts.get(accountId);
    if (account === undefined) {
      account = { head: heads.get(accountId) ?? NEW_HEAD, deltas: [], charged: [] };
      accounts.set(accountId, account);
    }
    return account;
  };
  const append = (row: Omit<LedgerEntry, 'seq' | 'prevHash' | 'hash'>): void => {
    const account = accountOf(row.accountId);
    const prevHash = account.head.hash;
    const numbered = { ...row, seq: account.head.seq + 1n };
    const hash = chainHash(prevHash, numbered);
    rows.push({ ...numbered, prevHash, hash });
    account.head = { seq: numbered.seq, hash };
  };
  const stateOf = (requestId: string, accountId: string): RequestState | undefined => {
    const state = touched.get(requestId) ?? requests.get(requestId);
    if (state === undefined) return { requestId, accountId, keyId: '', facts: NO_FACTS, booked: undefined, chargedAttempts: [], periods: NO_PERIODS, sources: {} };
    return state.accountId === accountId ? state : undefined;
  };

  for (const attempt of attempts) {
    const state = stateOf(attempt.requestId, attempt.accountId);
    if (state === undefined) {
      refused.push(attempt);
      continue;
    }
    const facts = addAttempt(state.facts, attempt.fact);
    if (facts === state.facts) continue;
    touched.set(state.requestId, {
      ...state,
      facts,
      keyId: state.keyId === '' ? attempt.keyId : state.keyId,
      periods: state.periods === NO_PERIODS || state.periods.month === '' ? attempt.periods : state.periods,
      sources: { ...state.sources, [attempt.fact.attempt]: { source: attempt.source, provider: attempt.provider, cardId: attempt.cardId, endedAtMs: String(attempt.endedAtMs) } },
    });
    append({
      accountId: attempt.accountId, kind: 'attempt', requestId: attempt.requestId, attempt: attempt.fact.attempt, amountNanoUsd: attempt.fact.costNanoUsd,
      tokens: attempt.fact.byok ? 0n : BigInt(attempt.fact.tokens), byokTokens: attempt.fact.byok ? BigInt(attempt.fact.tokens) : 0n,
      source: attempt.source, flags: attempt.flags, provider: attempt.provider, period: attempt.periods.month, atMs: attempt.endedAtMs, appliesTo: '', cardId: attempt.cardId,
      keyId: attempt.keyId, detail: attempt.detail,
    });
  }
  for (const outcome of outcomes) {
    const state = stateOf(outcome.requestId, outcome.accountId);
    if (state === undefined) {
      refused.push(outcome);
      continue;
    }
    const facts = addOutcome(state.facts, outcome.fact);
    if (facts !== state.facts) touched.set(state.requestId, { ...state, facts });
  }

  for (const state of [...touched.values()]) {
    const right = fold(state.facts);
    const correction = correctionOf(state.booked, right);
    if (correction === undefined) continue;
    const chargedAttempts = right?.chargedAttempts ?? [];
    const attempt = chargedAttempts.at(-1) ?? state.facts.attempts.at(-1)?.attempt ?? 0;
    const source = state.sources[attempt];
    append({
      accountId: state.accountId, kind: correction.kind, requestId: state.requestId, attempt, amountNanoUsd: correction.amountNanoUsd,
      tokens: BigInt(correction.tokens), byokTokens: BigInt(correction.byokTokens), source: source?.source ?? '', flags: [], provider: source?.provider ?? '',
      period: state.periods.month, atMs: correction.kind === 'charge' ? BigInt(source?.endedAtMs ?? nowMs) : BigInt(nowMs),
      appliesTo: correction.kind === 'adjustment' ? 'charge' : '', cardId: source?.cardId ?? '', keyId: state.keyId, detail: {},
    });
    const booked: Booked = {
      chargeNanoUsd: asNanoUsd((state.booked?.chargeNanoUsd ?? 0n) + correction.amountNanoUsd),
      tokens: (state.booked?.tokens ?? 0) + correction.tokens,
      byokTokens: (state.booked?.byokTokens ?? 0) + correction.byokTokens,
    };
    assert(booked.chargeNanoUsd >= 0n, 'A charge is never below 0.');
    touched.set(state.requestId, { ...state, booked, chargedAttempts });
    const account = accountOf(state.accountId);
    account.charged.push(state.requestId);
    account.deltas.push(...totalDeltas({ keyId: state.keyId, periods: state.periods, chargeNanoUsd: correction.amountNanoUsd, tokens: BigInt(correction.tokens), byokTokens: BigInt(correction.byokTokens) }));
  }
  return {
    rows,
    requests: [...touched.values()],
    accounts: [...accounts].map(([accountId, account]) => ({ accountId, head: account.head, deltas: sumDeltas(account.deltas), chargedRequestIds: account.charged })),
    refused,
  };
}
