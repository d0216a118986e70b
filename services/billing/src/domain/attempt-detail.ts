/** The detail of an attempt row, written as text at once: booking only passes it on. */
import type { TokenCounts } from '@signalbox/kernel/tokens';
import { quoted } from '@signalbox/ledger-core/json-text';
import type { AttemptMessage } from './messages.js';

/** What is empty, zero or false is left out: absent means that. Names need no escapes. */
const text = (name: string, value: string): string => (value === '' ? '' : `,"${name}":${quoted(value)}`);
const amount = (name: string, value: string): string => (value === '0' ? '' : `,"${name}":"${value}"`);
const count = (name: string, value: number): string => (value === 0 ? '' : `,"${name}":${value}`);
const flag = (name: string, value: boolean): string => (value ? `,"${name}":true` : '');
const object = (fields: string): string => `{${fields.slice(1)}}`;

function tokensText(tokens: TokenCounts): string {
  return object(
    count('inputUncached', tokens.inputUncached) + count('cacheRead', tokens.cacheRead) + count('cacheWrite', tokens.cacheWrite) + count('outputText', tokens.outputText)
      + count('outputReasoning', tokens.outputReasoning) + count('audio', tokens.audio) + count('image', tokens.image),
  );
}

function cardText(card: NonNullable<AttemptMessage['card']>): string {
  return object(
    amount('inputUncached', card.inputUncached) + amount('cacheRead', card.cacheRead) + amount('cacheWrite', card.cacheWrite) + amount('outputText', card.outputText)
      + amount('outputReasoning', card.outputReasoning) + amount('audio', card.audio) + amount('image', card.image) + amount('requestNanoUsd', card.requestNanoUsd),
  );
}

/** An AttemptDetail with everything else that the event tells of an attempt and no column holds. Amounts and times are whole numbers as text. */
export function attemptDetail(message: AttemptMessage, retryOf: readonly number[], tokens: TokenCounts): string {
  const { card, periods } = message;
  const fields = text('model', message.model) + text('endpoint', message.endpointId) + text('routed_from', message.routedFrom) + text('decision', message.decisionId)
    + `,"tokens":${tokensText(tokens)}` + amount('savings', message.savingsNanoUsd) + flag('byok', message.byok) + count('status', message.status)
    + (message.failure === 'FAILURE_CLASS_UNSPECIFIED' ? '' : text('failure', message.failure)) + count('ttft_ms', message.ttftMs) + count('total_ms', message.totalMs)
    + text('finish_reason', message.finishReason) + amount('started_at_ms', message.startedAtMs) + flag('delivered_unknown', message.deliveredUnknown)
    + (retryOf.length === 0 ? '' : `,"retry_of":[${retryOf.join(',')}]`) + (card === null ? '' : `,"card":${cardText(card)}`)
    + (periods === null ? '' : text('day', periods.day) + text('week', periods.week) + text('plan', periods.plan));
  return object(fields);
}
