/** Writes the detail of an attempt row directly as JSON text, since booking only passes it on. */
import type { TokenCounts } from '@signalbox/kernel/tokens';
import { JsonText } from './json-text.js';
import type { AttemptMessage } from './messages.js';

const detail = new JsonText();

/**
 * Members that are empty, zero or false are left out. NUL is replaced, since Postgres does not accept it in JSON: one such row
 * would fail every later query that reads the detail.
 */
function text(name: string, value: string | undefined): void {
  if (value !== undefined && value !== '') detail.text(name, value.includes('\0') ? value.replaceAll('\0', '\uFFFD') : value);
}
function amount(name: string, value: string): void {
  if (value !== '0') detail.text(name, value);
}
function count(name: string, value: number): void {
  if (value !== 0) detail.plain(name, value);
}
function flag(name: string, value: boolean): void {
  if (value) detail.plain(name, true);
}

/** An AttemptDetail and everything else that the event says about an attempt and that has no column. Amounts and times are integers as text. */
export function attemptDetail(message: AttemptMessage, retryOf: readonly number[], tokens: TokenCounts, restsOnCalls = false): string {
  const { card, periods, failure } = message;
  detail.begin();
  text('model', message.model);
  text('endpoint', message.endpointId);
  text('routed_from', message.routedFrom);
  text('decision', message.decisionId);
  detail.open('tokens');
  count('inputUncached', tokens.inputUncached);
  count('cacheRead', tokens.cacheRead);
  count('cacheWrite', tokens.cacheWrite);
  count('outputText', tokens.outputText);
  count('outputReasoning', tokens.outputReasoning);
  count('audio', tokens.audio);
  count('image', tokens.image);
  detail.close();
  amount('savings', message.savingsNanoUsd);
  flag('byok', message.byok);
  count('status', message.status);
  if (failure !== 'FAILURE_CLASS_UNSPECIFIED') detail.text('failure', failure);
  count('ttft_ms', message.ttftMs);
  count('total_ms', message.totalMs);
  text('finish_reason', message.finishReason);
  amount('started_at_ms', message.startedAtMs);
  flag('delivered_unknown', message.deliveredUnknown);
  if (retryOf.length > 0) detail.numbers('retry_of', retryOf);
  flag('rests_on_calls', restsOnCalls);
  text('day', periods?.day);
  text('week', periods?.week);
  text('plan', periods?.plan);
  if (card !== null) {
    detail.open('card');
    amount('inputUncached', card.inputUncached);
    amount('cacheRead', card.cacheRead);
    amount('cacheWrite', card.cacheWrite);
    amount('outputText', card.outputText);
    amount('outputReasoning', card.outputReasoning);
    amount('audio', card.audio);
    amount('image', card.image);
    amount('requestNanoUsd', card.requestNanoUsd);
    detail.close();
  }
  return detail.end();
}
