/** The event of an attempt from its start to its outcome, and what is concluded if nobody tells the outcome. */
import type { Draw__Output } from '@signalbox/contracts/common';
import type { AttemptEnded, AttemptEnded__Output, OutcomeTold, OutcomeTold__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import { ZERO_NANO_USD } from '@signalbox/kernel/money';
import { priceCardOf } from '@signalbox/kernel/price-cards';
import { completionTokens, costOf, NO_TOKENS, totalTokens, type TokenCounts } from '@signalbox/kernel/tokens';
import type { AttemptEnd, AttemptStart, EarlierRounds, ToldOutcome } from './journal.js';
import type { FinishedHold } from './settlement.js';

export const endedCodec = messageCodec<AttemptEnded, AttemptEnded__Output>('signalbox.events.v1.AttemptEnded');
export const outcomeCodec = messageCodec<OutcomeTold, OutcomeTold__Output>('signalbox.events.v1.OutcomeTold');

/** The event of an attempt; changed in place as more becomes known, so that it is built once. */
export type AttemptEvent = AttemptEnded__Output;

/** The event as known before the provider is called; its tokens are the estimated prompt. */
export function startedEvent(record: AttemptStart): AttemptEvent {
  const { periods } = record;
  return {
    seq: '0',
    requestId: record.requestId,
    attempt: record.attempt,
    retryOf: record.retryOf,
    accountId: record.accountId,
    keyId: record.keyId,
    model: record.model,
    provider: record.provider,
    endpointId: record.endpointId,
    card: record.card,
    tokens: promptOnly(record.promptTokens),
    costNanoUsd: '0',
    savingsNanoUsd: '0',
    source: 'USAGE_SOURCE_UNSPECIFIED',
    flags: [],
    byok: record.byok,
    periods,
    status: 0,
    failure: 'FAILURE_CLASS_UNSPECIFIED',
    ttftMs: 0,
    totalMs: 0,
    finishReason: '',
    routedFrom: record.routedFrom,
    decisionId: record.decisionId,
    startedAtMs: String(record.startedAtMs),
    endedAtMs: '0',
    referenceCard: record.referenceCard,
    deliveredUnknown: false,
    traceparent: record.traceparent ?? '',
    callsOnly: false,
    undelivered: false,
    rounds: record.rounds !== undefined,
    earlierNanoUsd: String(record.rounds?.earlierNanoUsd ?? 0),
    earlierTokens: String(record.rounds?.earlierTokens ?? 0),
    clientLeft: false,
  };
}

/** The earlier rounds, as in its start record; undefined for a request that is not asked in rounds. */
export function roundsOf({ rounds, earlierNanoUsd, earlierTokens }: AttemptEvent): EarlierRounds | undefined {
  return rounds ? { earlierNanoUsd: BigInt(earlierNanoUsd), earlierTokens: BigInt(earlierTokens) } : undefined;
}

function promptOnly(promptTokens: number): TokenCounts {
  return { inputUncached: promptTokens, cacheRead: 0, cacheWrite: 0, outputText: 0, outputReasoning: 0, audio: 0, image: 0 };
}

export function completeEvent(event: AttemptEvent, end: AttemptEnd): void {
  if (end.cards !== undefined) {
    event.card = end.cards.card;
    event.referenceCard = end.cards.referenceCard;
  }
  event.tokens = end.tokens;
  event.costNanoUsd = String(end.costNanoUsd);
  event.savingsNanoUsd = String(end.savingsNanoUsd);
  if (end.toldNanoUsd !== undefined) event.toldNanoUsd = String(end.toldNanoUsd);
  event.source = end.source;
  event.flags = end.flags;
  event.status = end.status;
  event.failure = end.failure;
  event.ttftMs = Math.round(end.ttftMs);
  event.totalMs = Math.round(end.totalMs);
  event.finishReason = end.finishReason;
  event.callsOnly = end.callsOnly === true;
  event.undelivered = end.undelivered === true;
  event.clientLeft = end.clientLeft === true;
  event.endedAtMs = String(end.endedAtMs);
}

/** The fields that do not change from start to end, encoded once. Must be called on the event as `startedEvent` made it. */
export function encodedHead(event: AttemptEvent): Buffer {
  const { seq, tokens } = event;
  event.seq = '0';
  event.tokens = null;
  const head = endedCodec.encode(event);
  event.seq = seq;
  event.tokens = tokens;
  return head;
}

/** The record of a start; `head` is from `encodedHead`. */
export function encodedStart({ seq, tokens }: AttemptEvent, head: Buffer): Buffer {
  return endedCodec.encodeBehind(head, { seq, tokens });
}

/** The record of an end; without a `head` the whole event is encoded. */
export function encodedEnd(event: AttemptEvent, head: Buffer | undefined): Buffer {
  if (head === undefined) return endedCodec.encode(event);
  const { seq, tokens, costNanoUsd, savingsNanoUsd, toldNanoUsd, source, flags, status, failure, ttftMs, totalMs, finishReason, endedAtMs, deliveredUnknown, callsOnly, undelivered, clientLeft } = event;
  return endedCodec.encodeBehind(head, { seq, tokens, costNanoUsd, savingsNanoUsd, source, flags, status, failure, ttftMs, totalMs, finishReason, endedAtMs, deliveredUnknown, callsOnly, undelivered, clientLeft, ...(toldNanoUsd === undefined ? {} : { toldNanoUsd }) });
}

/** `delivered`, with the estimated prompt if it has no prompt tokens. */
export function withPrompt(delivered: TokenCounts, promptTokens: number): TokenCounts {
  return totalTokens(delivered) > completionTokens(delivered) ? delivered : { ...delivered, inputUncached: promptTokens };
}

/**
 * Ends an attempt whose process died, with the tokens of its last checkpoint. If nothing was delivered it costs nothing.
 */
export function orphanEvent(event: AttemptEvent, nowMs: number): void {
  const delivered = event.tokens ?? NO_TOKENS;
  const hasOutput = completionTokens(delivered) > 0;
  const card = event.card === null || !hasOutput ? undefined : priceCardOf(event.card);
  const reference = event.referenceCard === null || event.referenceCard.id === '' || card === undefined ? undefined : priceCardOf(event.referenceCard);
  const cost = card === undefined ? ZERO_NANO_USD : costOf(delivered, card);
  event.tokens = hasOutput ? delivered : NO_TOKENS;
  event.costNanoUsd = String(cost);
  event.savingsNanoUsd = reference === undefined ? '0' : String(costOf(delivered, reference) - cost);
  event.source = 'ORPHAN';
  event.flags = ['orphan'];
  event.finishReason = 'error';
  event.endedAtMs = String(nowMs);
  event.deliveredUnknown = true;
}

/** The client hung up, as edge said when the end was written, and owes what is booked. Records older than the field `client_left` show it by an estimate without a status, which has no other cause (`isPromptOwed` in endings.ts). */
function isOwed({ clientLeft, status, flags }: AttemptEvent): boolean {
  return clientLeft || (status === 0 && flags.includes('estimated'));
}

/** A round of tool calls only, whose client did not leave: nobody saw it unless a later round answered. */
export function restsOnCalls({ callsOnly, clientLeft }: AttemptEvent): boolean {
  return callsOnly && !clientLeft;
}

/** The provider ended the answer by itself. */
export const isWhole = ({ finishReason }: AttemptEvent): boolean => finishReason !== '' && finishReason !== 'error';

/** The outcome that the worker concludes if edge never told one: delivered if there was output or a complete answer that could be handed over, or if the client left and owes it. */
export function concludedOutcome(event: AttemptEvent): 'DELIVERED' | 'DISCARDED' {
  if (event.undelivered) return 'DISCARDED';
  return completionTokens(event.tokens ?? NO_TOKENS) > 0 || isWhole(event) || isOwed(event) ? 'DELIVERED' : 'DISCARDED';
}

/** What quota is told at once; undefined if another attempt answers instead. A delivered charge includes the earlier rounds. */
export function finishedHold(event: AttemptEvent, outcome: ToldOutcome, rounds?: EarlierRounds, draw: Draw__Output | null = null): FinishedHold | undefined {
  if (outcome === 'SUPERSEDED') return undefined;
  const isDelivered = outcome === 'DELIVERED';
  return {
    accountId: event.accountId,
    keyId: event.keyId,
    requestId: event.requestId,
    chargeNanoUsd: !isDelivered || event.byok ? '0' : rounds === undefined ? event.costNanoUsd : String(BigInt(event.costNanoUsd) + rounds.earlierNanoUsd),
    tokens: String(isDelivered ? BigInt(totalTokens(event.tokens ?? NO_TOKENS)) + (rounds?.earlierTokens ?? 0n) : 0),
    byok: event.byok,
    periods: event.periods,
    draw,
  };
}
