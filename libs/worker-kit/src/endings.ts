/** How an attempt ended: who saw what of it, what is owed for it, and what the caller is told. */
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import { completionTokens } from '@signalbox/kernel/tokens';
import { failure } from '@signalbox/wires/canonical';
import type { Attempt, Ending } from './attempt.js';
import { BYTES_PER_TOKEN, type Seen } from './charge.js';
import type { Conversation } from './conversation.js';
import type { AttemptEnd } from './journal.js';

/** Whether the prompt of an abandoned attempt is owed: once the answer has begun. Before that only if the client itself hung up after the provider had the whole request, since the provider bills it (docs/billing.md). */
function isPromptOwed({ attempt, isClientGone }: Conversation): boolean {
  return attempt.status === 0 ? isClientGone && attempt.isHandedOver : attempt.status >= 200 && attempt.status < 300;
}

/** Whether an attempt that its caller cancelled is owed. A client that hung up owes what was booked. One that was cut off owes what was generated, but not a prompt alone, and nothing for a whole answer. */
export function isOwed(conversation: Conversation, { tokens, finishReason }: AttemptEnd, request: DispatchRequest__Output): boolean {
  return conversation.isClientGone || (!wasCutOff(conversation, request) && (completionTokens(tokens) > 0 || finishReason !== 'error'));
}

/** The caller cancelled a whole answer while its client was still waiting for it. */
function wasCutOff({ isCancelled, isClientGone }: Conversation, { clientStream }: DispatchRequest__Output): boolean {
  return !clientStream && isCancelled && !isClientGone;
}

/** Whether nobody has seen a whole answer. It is handed over only when complete, so this holds if the caller was lost or cut its client off before the end, or if the answer broke off while the caller was there. */
export function isUnseen(ending: Ending, conversation: Conversation, request: DispatchRequest__Output): boolean {
  const { isLost, isCancelled } = conversation;
  return !request.clientStream && (isLost || wasCutOff(conversation, request) || (!isCancelled && ending.kind === 'stream' && ending.cut !== undefined));
}

/** Tokens of tools and the response schema, counted as in the estimate of the prompt. */
function definitionTokens(fields: DispatchRequest__Output['fields']): number {
  return Math.ceil(fields.reduce((bytes, { name, value }) => (name === 'tools' || name === 'response_format' ? bytes + value.length : bytes), 0) / BYTES_PER_TOKEN);
}

/** `isAccountsWord`: the account's own server answered. */
export function seenOf(ending: Ending, conversation: Conversation, { promptTokens, mediaTokens, fields }: DispatchRequest__Output, isAccountsWord: boolean): Seen {
  const { attempt, promptUsage } = conversation;
  const summary = attempt.summary();
  const asked = { promptTokens, mediaTokens, definitionTokens: isAccountsWord ? definitionTokens(fields) : 0, isAccountsWord };
  switch (ending.kind) {
    case 'answer':
      return { usage: ending.answer.usage, usageUnreadable: ending.answer.usageUnreadable, outputBytes: ending.answer.outputBytes, thoughtBytes: ending.answer.thoughtBytes, isAnswered: true, ...asked };
    case 'failed':
      return { usage: ending.usage, usageUnreadable: false, outputBytes: 0, thoughtBytes: 0, isAnswered: false, ...asked };
    case 'stream':
    case 'abandoned':
      return {
        usage: summary?.usage,
        promptUsage,
        usageUnreadable: summary?.usageUnreadable ?? false,
        outputBytes: summary?.outputBytes ?? 0,
        thoughtBytes: summary?.thoughtBytes ?? 0,
        isAnswered: ending.kind === 'stream' || isPromptOwed(conversation),
        ...asked,
      };
  }
}

/**
 * What the caller is told when the end could not be written to disk in time: that the attempt failed. A whole answer may then
 * come from another attempt; a stream breaks off. No cost is told, since after a kill only the last checkpoint would be booked.
 */
export function unwritten(ending: Ending, status: number): Ending {
  if (ending.kind === 'answer') return { kind: 'failed', failure: failure('DISCONNECTED', true, status), usage: ending.answer.usage };
  return ending.kind === 'stream' ? { kind: 'failed', failure: ending.cut ?? failure('DISCONNECTED', true, status), usage: undefined } : ending;
}

/** Whether it is an answer of nothing, of a model that may say more when it is asked again. */
export function isNothingSaid(ending: Ending, attempt: Attempt): boolean {
  if (ending.kind === 'answer') return ending.answer.saidNothing === true;
  return ending.kind === 'stream' && ending.cut === undefined && attempt.saidNothing();
}

export function finishReasonOf(ending: Ending, attempt: Attempt): string {
  if (ending.kind === 'answer') return ending.answer.finishReason;
  if (ending.kind === 'stream' && ending.cut === undefined) return attempt.summary()?.finishReason ?? '';
  return 'error';
}
