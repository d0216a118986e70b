/** What may be booked: a fact that breaks a bound or its price card is refused by itself and holds nobody else up. */
import type { AttemptFact, OutcomeFact } from '@signalbox/ledger-core/fold';
import type { ChargePeriods } from '@signalbox/ledger-core/totals';
import { asNanoUsd, asPrice } from '@signalbox/kernel/money';
import { costOf, NO_TOKENS, totalTokens, type PriceCard, type TokenCounts } from '@signalbox/kernel/tokens';

/** The parts of an ended attempt that billing reads; numbers of 64 bits as decimal text, as on the wire. */
export interface AttemptMessage {
  readonly requestId: string;
  readonly attempt: number;
  readonly retryOf: readonly number[];
  readonly accountId: string;
  readonly keyId: string;
  readonly model: string;
  readonly provider: string;
  readonly endpointId: string;
  readonly card: Readonly<Record<'id' | 'inputUncached' | 'cacheRead' | 'cacheWrite' | 'outputText' | 'outputReasoning' | 'audio' | 'image' | 'requestNanoUsd', string>> | null;
  readonly tokens: TokenCounts | null;
  readonly costNanoUsd: string;
  readonly savingsNanoUsd: string;
  readonly source: string;
  readonly flags: readonly string[];
  readonly byok: boolean;
  readonly periods: ChargePeriods | null;
  readonly status: number;
  readonly failure: string;
  readonly ttftMs: number;
  readonly totalMs: number;
  readonly finishReason: string;
  readonly routedFrom: string;
  readonly decisionId: string;
  readonly startedAtMs: string;
  readonly endedAtMs: string;
  readonly deliveredUnknown: boolean;
}

export interface OutcomeMessage {
  readonly requestId: string;
  readonly attempt: number;
  readonly accountId: string;
  readonly outcome: string;
  readonly toldByEdge: boolean;
}

export interface CheckedAttempt {
  readonly requestId: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly fact: AttemptFact;
  readonly source: string;
  readonly provider: string;
  readonly flags: readonly string[];
  readonly cardId: string;
  readonly periods: ChargePeriods;
  readonly endedAtMs: bigint;
  /** For people and reports; not part of the hash. */
  readonly detail: Readonly<Record<string, unknown>>;
}

export interface CheckedOutcome {
  readonly requestId: string;
  readonly accountId: string;
  readonly fact: OutcomeFact;
}

export const REFUSALS = ['no_identity', 'absurd_tokens', 'absurd_cost', 'no_card', 'cost_mismatch', 'unknown_source', 'unknown_outcome', 'account_mismatch', 'undecodable', 'bad_range', 'not_bookable'] as const;
export type Refusal = (typeof REFUSALS)[number];

/** 10^9 tokens in one bucket of one attempt: a thousand times the longest context on offer. */
const TOKENS_MAX = 1_000_000_000;
/** 10^6 USD for one attempt. */
const COST_MAX = 1_000_000_000_000_000n;
const ATTEMPT_MAX = 1_000;
const SOURCES: Readonly<Record<string, string>> = { PROVIDER: 'provider', ESTIMATED: 'estimated', ORPHAN: 'orphan' };

function cardOf(message: NonNullable<AttemptMessage['card']>): PriceCard {
  return {
    id: message.id,
    inputUncached: asPrice(message.inputUncached),
    cacheRead: asPrice(message.cacheRead),
    cacheWrite: asPrice(message.cacheWrite),
    outputText: asPrice(message.outputText),
    outputReasoning: asPrice(message.outputReasoning),
    audio: asPrice(message.audio),
    image: asPrice(message.image),
    requestNanoUsd: asNanoUsd(message.requestNanoUsd),
  };
}

function isAttemptNumber(attempt: number): boolean {
  return Number.isInteger(attempt) && attempt >= 1 && attempt <= ATTEMPT_MAX;
}

/** The attempt, or why it is refused. The cost is computed again from the card that stands in the event. */
export function checkAttempt(message: AttemptMessage): CheckedAttempt | Refusal {
  if (message.requestId === '' || message.accountId === '' || !isAttemptNumber(message.attempt)) return 'no_identity';
  const tokens: TokenCounts = message.tokens ?? NO_TOKENS;
  for (const count of Object.values(tokens)) if (!Number.isInteger(count) || count < 0 || count > TOKENS_MAX) return 'absurd_tokens';
  const cost = BigInt(message.costNanoUsd);
  if (cost < 0n || cost > COST_MAX) return 'absurd_cost';
  const source = SOURCES[message.source];
  if (source === undefined) return 'unknown_source';
  const hasTokens = totalTokens(tokens) > 0;
  if (message.card === null || message.card.id === '') {
    if (cost > 0n || hasTokens) return 'no_card';
  } else {
    const { card } = message;
    for (const price of Object.entries(card)) if (price[0] !== 'id' && BigInt(price[1]) < 0n) return 'absurd_cost';
    // An attempt that failed before the provider did any work costs nothing, whatever the card's fee per request is.
    if (costOf(tokens, cardOf(card)) !== cost && (hasTokens || cost !== 0n)) return 'cost_mismatch';
  }
  return {
    requestId: message.requestId,
    accountId: message.accountId,
    keyId: message.keyId,
    fact: { attempt: message.attempt, retryOf: message.retryOf.filter((earlier) => earlier !== message.attempt), costNanoUsd: asNanoUsd(cost), tokens: totalTokens(tokens), byok: message.byok },
    source,
    provider: message.provider,
    flags: message.flags,
    cardId: message.card?.id ?? '',
    periods: { day: message.periods?.day ?? '', week: message.periods?.week ?? '', month: message.periods?.month ?? '', plan: message.periods?.plan ?? '' },
    endedAtMs: BigInt(message.endedAtMs),
    detail: {
      model: message.model, endpoint: message.endpointId, routed_from: message.routedFrom, decision: message.decisionId, tokens,
      savings: message.savingsNanoUsd, byok: message.byok, status: message.status, failure: message.failure, ttft_ms: message.ttftMs,
      total_ms: message.totalMs, finish_reason: message.finishReason, started_at_ms: message.startedAtMs, delivered_unknown: message.deliveredUnknown, card: message.card,
    },
  };
}

export function checkOutcome(message: OutcomeMessage): CheckedOutcome | Refusal {
  if (message.requestId === '' || message.accountId === '' || !isAttemptNumber(message.attempt)) return 'no_identity';
  const { outcome } = message;
  if (outcome !== 'DELIVERED' && outcome !== 'SUPERSEDED' && outcome !== 'DISCARDED') return 'unknown_outcome';
  return { requestId: message.requestId, accountId: message.accountId, fact: { attempt: message.attempt, outcome, toldByEdge: message.toldByEdge } };
}
