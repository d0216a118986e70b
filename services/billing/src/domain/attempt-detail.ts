/** The detail of an attempt row, written as text at once: booking only passes it on. */
import type { TokenCounts } from '@signalbox/kernel/tokens';
import type { AttemptMessage } from './messages.js';

/**
 * What is empty, zero or false is left out of the text: absent means that. NUL, which Postgres reads in no JSON, is
 * replaced: one such row would fail every later query over the books.
 */
const text = (value: string | undefined): string | undefined => (value === undefined || value === '' ? undefined : value.replaceAll('\0', '\uFFFD'));
const amount = (value: string): string | undefined => (value === '0' ? undefined : value);
const count = (value: number): number | undefined => (value === 0 ? undefined : value);
const flag = (value: boolean): true | undefined => value || undefined;

/** An AttemptDetail with everything else that the event tells of an attempt and no column holds. Amounts and times are whole numbers as text. */
export function attemptDetail(message: AttemptMessage, retryOf: readonly number[], tokens: TokenCounts): string {
  const { card, periods, failure } = message;
  return JSON.stringify({
    model: text(message.model), endpoint: text(message.endpointId), routed_from: text(message.routedFrom), decision: text(message.decisionId),
    tokens: {
      inputUncached: count(tokens.inputUncached), cacheRead: count(tokens.cacheRead), cacheWrite: count(tokens.cacheWrite), outputText: count(tokens.outputText),
      outputReasoning: count(tokens.outputReasoning), audio: count(tokens.audio), image: count(tokens.image),
    },
    savings: amount(message.savingsNanoUsd), byok: flag(message.byok), status: count(message.status), failure: failure === 'FAILURE_CLASS_UNSPECIFIED' ? undefined : failure,
    ttft_ms: count(message.ttftMs), total_ms: count(message.totalMs), finish_reason: text(message.finishReason), started_at_ms: amount(message.startedAtMs),
    delivered_unknown: flag(message.deliveredUnknown), retry_of: retryOf.length === 0 ? undefined : retryOf, day: text(periods?.day), week: text(periods?.week), plan: text(periods?.plan),
    card: card === null ? undefined : {
      inputUncached: amount(card.inputUncached), cacheRead: amount(card.cacheRead), cacheWrite: amount(card.cacheWrite), outputText: amount(card.outputText),
      outputReasoning: amount(card.outputReasoning), audio: amount(card.audio), image: amount(card.image), requestNanoUsd: amount(card.requestNanoUsd),
    },
  });
}
