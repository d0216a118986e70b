/** From journal records to the events that billing books, and what is concluded when a process died. */
import type { AttemptEnded, OutcomeTold } from '@signalbox/contracts/events';
import type { PriceCard as CardMessage } from '@signalbox/contracts/common';
import { asNanoUsd, asPrice } from '@signalbox/kernel/money';
import { completionTokens, costOf, NO_TOKENS, totalTokens, type PriceCard, type TokenCounts } from '@signalbox/kernel/tokens';
import type { AttemptEnd, AttemptStart } from './journal.js';
import type { StartedFacts } from './wal-segment.js';

/** What is known of an attempt between its start and its outcome. */
export interface LiveAttempt {
  readonly base: StartedFacts;
  readonly promptTokens: number;
  checkpoint: TokenCounts | undefined;
  end: AttemptEnded | undefined;
}

function cardMessage(card: PriceCard): CardMessage {
  return {
    id: card.id,
    inputUncached: String(card.inputUncached),
    cacheRead: String(card.cacheRead),
    cacheWrite: String(card.cacheWrite),
    outputText: String(card.outputText),
    outputReasoning: String(card.outputReasoning),
    audio: String(card.audio),
    image: String(card.image),
    requestNanoUsd: String(card.requestNanoUsd),
  };
}

function cardOf(message: CardMessage | null | undefined): PriceCard | undefined {
  if (message === null || message === undefined) return undefined;
  const price = (value: unknown) => asPrice(String(value ?? 0));
  return {
    id: message.id ?? '',
    inputUncached: price(message.inputUncached),
    cacheRead: price(message.cacheRead),
    cacheWrite: price(message.cacheWrite),
    outputText: price(message.outputText),
    outputReasoning: price(message.outputReasoning),
    audio: price(message.audio),
    image: price(message.image),
    requestNanoUsd: asNanoUsd(String(message.requestNanoUsd ?? 0)),
  };
}

function tokensOf(event: AttemptEnded): TokenCounts {
  return { ...NO_TOKENS, ...event.tokens };
}

/** The part of an event that is known at the start: repeated in the end, so that an end can be read by itself. */
export function startedFacts(record: AttemptStart): StartedFacts {
  return {
    requestId: record.requestId,
    attempt: record.attempt,
    retryOf: [...record.retryOf],
    accountId: record.accountId,
    keyId: record.keyId,
    model: record.model,
    provider: record.provider,
    endpointId: record.endpointId,
    card: cardMessage(record.card),
    ...(record.referenceCard === undefined ? {} : { referenceCard: cardMessage(record.referenceCard) }),
    periods: { ...record.periods, reservedAtMs: String(record.periods.reservedAtMs ?? 0) },
    byok: record.byok,
    routedFrom: record.routedFrom,
    decisionId: record.decisionId,
    startedAtMs: String(record.startedAtMs),
  };
}

export function endedEvent(base: StartedFacts, end: AttemptEnd): AttemptEnded {
  return {
    ...base,
    tokens: end.tokens,
    costNanoUsd: String(end.costNanoUsd),
    savingsNanoUsd: String(end.savingsNanoUsd),
    source: end.source,
    flags: [...end.flags],
    status: end.status,
    failure: end.failure,
    ttftMs: Math.round(end.ttftMs),
    totalMs: Math.round(end.totalMs),
    finishReason: end.finishReason,
    endedAtMs: String(end.endedAtMs),
  };
}

/**
 * The end of an attempt whose process died: what the last checkpoint says was delivered, with the estimated prompt when
 * the checkpoint has none; nothing delivered costs nothing (BILLING, section 5).
 */
export function orphanEvent(attempt: LiveAttempt, nowMs: number): AttemptEnded {
  const delivered = attempt.checkpoint;
  const hasOutput = delivered !== undefined && completionTokens(delivered) > 0;
  const tokens = !hasOutput ? NO_TOKENS : totalTokens(delivered) > completionTokens(delivered) ? delivered : { ...delivered, inputUncached: attempt.promptTokens };
  const card = cardOf(attempt.base.card);
  const reference = cardOf(attempt.base.referenceCard);
  const cost = hasOutput && card !== undefined ? costOf(tokens, card) : asNanoUsd(0n);
  return {
    ...attempt.base,
    tokens,
    costNanoUsd: String(cost),
    savingsNanoUsd: hasOutput && reference !== undefined && reference.id !== '' ? String(costOf(tokens, reference) - cost) : '0',
    source: 'ORPHAN',
    flags: ['orphan'],
    status: 0,
    failure: 'FAILURE_CLASS_UNSPECIFIED',
    ttftMs: 0,
    totalMs: 0,
    finishReason: 'error',
    endedAtMs: String(nowMs),
    deliveredUnknown: true,
  };
}

export function outcomeEvent(base: StartedFacts, outcome: 'DELIVERED' | 'SUPERSEDED' | 'DISCARDED', toldByEdge: boolean): OutcomeTold {
  return { requestId: base.requestId ?? '', attempt: base.attempt ?? 0, accountId: base.accountId ?? '', outcome, toldByEdge };
}

/** What the worker takes for the outcome when edge never told one: delivered when there was output or a whole answer. */
export function concludedOutcome(end: AttemptEnded): 'DELIVERED' | 'DISCARDED' {
  const isWhole = end.finishReason !== undefined && end.finishReason !== '' && end.finishReason !== 'error';
  return completionTokens(tokensOf(end)) > 0 || isWhole ? 'DELIVERED' : 'DISCARDED';
}

/** What quota is told at once; undefined when another attempt answers. */
export function settledCharge(attempt: LiveAttempt, outcome: 'DELIVERED' | 'SUPERSEDED' | 'DISCARDED') {
  const { base, end } = attempt;
  if (outcome === 'SUPERSEDED' || end === undefined) return undefined;
  const isDelivered = outcome === 'DELIVERED';
  const byok = base.byok ?? false;
  return {
    accountId: base.accountId ?? '',
    keyId: base.keyId ?? '',
    requestId: base.requestId ?? '',
    chargeNanoUsd: isDelivered && !byok ? BigInt(String(end.costNanoUsd ?? 0)) : 0n,
    tokens: isDelivered ? totalTokens(tokensOf(end)) : 0,
    byok,
    periods: base.periods ?? undefined,
  };
}
