/** How an attempt ended: who has seen what of it, what is paid of it, and what is told. */
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import { completionTokens } from '@signalbox/kernel/tokens';
import { failure } from '@signalbox/wires/canonical';
import type { Attempt, Ending } from './attempt.js';
import { BYTES_PER_TOKEN, type Seen } from './charge.js';
import type { Conversation } from './conversation.js';
import type { AttemptEnd } from './journal.js';

/** Of an attempt that was given up: its prompt is paid for once the answer has begun. Before that only where the client itself hung up on a provider that has the whole request, and bills it (docs/billing.md). */
function isPromptOwed({ attempt, isClientGone }: Conversation): boolean {
  return attempt.status === 0 ? isClientGone && attempt.isHandedOver : attempt.status >= 200 && attempt.status < 300;
}

/** Of an attempt that its caller cancelled: a client that was cut off pays for what was generated, for no prompt alone, and for nothing of a whole answer. */
export function isOwed(conversation: Conversation, { tokens, finishReason }: AttemptEnd, request: DispatchRequest__Output): boolean {
  return conversation.isClientGone || (!wasCutOff(conversation, request) && (completionTokens(tokens) > 0 || finishReason !== 'error'));
}

/** The caller took a whole answer from a client that waited for it. */
function wasCutOff({ isCancelled, isClientGone }: Conversation, { clientStream }: DispatchRequest__Output): boolean {
  return !clientStream && isCancelled && !isClientGone;
}

/** Whole answers are given as a whole: nobody has seen one whose caller was lost or cut its client off before its end, or that broke off while its caller was there. */
export function isUnseen(ending: Ending, conversation: Conversation, request: DispatchRequest__Output): boolean {
  const { isLost, isCancelled } = conversation;
  return !request.clientStream && (isLost || wasCutOff(conversation, request) || (!isCancelled && ending.kind === 'stream' && ending.cut !== undefined));
}

/** As the estimate of the prompt has them. */
function definitionTokens(fields: DispatchRequest__Output['fields']): number {
  return Math.ceil(fields.reduce((bytes, { name, value }) => (name === 'tools' || name === 'response_format' ? bytes + value.length : bytes), 0) / BYTES_PER_TOKEN);
}

/** `isAccountsWord`: a server of the account's own answered. */
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
 * What is told of an answer whose end the disk does not take: that it failed. A whole one may be given by another attempt, a
 * stream breaks off. No cost is told, since a kill before the disk takes it leaves the last checkpoint.
 */
export function unwritten(ending: Ending, status: number): Ending {
  if (ending.kind === 'answer') return { kind: 'failed', failure: failure('DISCONNECTED', true, status), usage: ending.answer.usage };
  return ending.kind === 'stream' ? { kind: 'failed', failure: ending.cut ?? failure('DISCONNECTED', true, status), usage: undefined } : ending;
}

export function finishReasonOf(ending: Ending, attempt: Attempt): string {
  if (ending.kind === 'answer') return ending.answer.finishReason;
  if (ending.kind === 'stream' && ending.cut === undefined) return attempt.summary()?.finishReason ?? '';
  return 'error';
}
