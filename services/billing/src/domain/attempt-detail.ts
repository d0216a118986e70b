/** The detail of an attempt row as JSON text. It is kept as bytes, since booking only passes it on. */
import { NO_TOKENS } from '@signalbox/kernel/tokens';
import type { JsonTexts, KeptText } from './json-text.js';
import type { AttemptMessage } from './messages.js';

/**
 * Members that are empty, zero or false are left out. NUL is replaced, since Postgres does not accept it in JSON: one such row
 * would fail every later query that reads the detail.
 */
function text(detail: JsonTexts, name: string, value: string | undefined): void {
  if (value !== undefined && value !== '') detail.text(name, value.includes('\0') ? value.replaceAll('\0', '\uFFFD') : value);
}
function amount(detail: JsonTexts, name: string, value: string): void {
  if (value !== '0') detail.text(name, value);
}
function count(detail: JsonTexts, name: string, value: number): void {
  if (value !== 0) detail.plain(name, value);
}
function flag(detail: JsonTexts, name: string, value: boolean): void {
  if (value) detail.plain(name, true);
}

/** An AttemptDetail and everything else that the event says about an attempt and that has no column. Amounts and times are integers as text. */
export function attemptDetail(message: AttemptMessage, retryOf: readonly number[], restsOnCalls: boolean, details: JsonTexts): KeptText {
  const { card, periods, failure } = message;
  const tokens = message.tokens ?? NO_TOKENS;
  details.begin();
  text(details, 'model', message.model);
  text(details, 'endpoint', message.endpointId);
  text(details, 'routed_from', message.routedFrom);
  text(details, 'decision', message.decisionId);
  details.open('tokens');
  count(details, 'inputUncached', tokens.inputUncached);
  count(details, 'cacheRead', tokens.cacheRead);
  count(details, 'cacheWrite', tokens.cacheWrite);
  count(details, 'outputText', tokens.outputText);
  count(details, 'outputReasoning', tokens.outputReasoning);
  count(details, 'audio', tokens.audio);
  count(details, 'image', tokens.image);
  details.close();
  amount(details, 'savings', message.savingsNanoUsd);
  flag(details, 'byok', message.byok);
  count(details, 'status', message.status);
  if (failure !== 'FAILURE_CLASS_UNSPECIFIED') details.text('failure', failure);
  count(details, 'ttft_ms', message.ttftMs);
  count(details, 'total_ms', message.totalMs);
  text(details, 'finish_reason', message.finishReason);
  amount(details, 'started_at_ms', message.startedAtMs);
  flag(details, 'delivered_unknown', message.deliveredUnknown);
  if (retryOf.length > 0) details.numbers('retry_of', retryOf);
  flag(details, 'rests_on_calls', restsOnCalls);
  text(details, 'day', periods?.day);
  text(details, 'week', periods?.week);
  text(details, 'plan', periods?.plan);
  if (card !== null) {
    details.open('card');
    amount(details, 'inputUncached', card.inputUncached);
    amount(details, 'cacheRead', card.cacheRead);
    amount(details, 'cacheWrite', card.cacheWrite);
    amount(details, 'outputText', card.outputText);
    amount(details, 'outputReasoning', card.outputReasoning);
    amount(details, 'audio', card.audio);
    amount(details, 'image', card.image);
    amount(details, 'requestNanoUsd', card.requestNanoUsd);
    details.close();
  }
  return details.end();
}
