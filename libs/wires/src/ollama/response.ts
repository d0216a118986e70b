/** A whole answer of Ollama's to a canonical one. */
import { failure, isError, isObject, type AnswerResult } from '../canonical.js';
import { answerOf, readAnswerJson, readSafely } from '../canonical-answer.js';
import { classifyOllamaError } from './errors.js';
import { isNoAnswer, mapDoneReason } from './finish-reason.js';
import { readForcedCall } from './forced-call.js';
import { readMessage } from './message.js';
import { isUsageUnreadable, readUsage } from './usage.js';

/** `isForced`: the content is a call that had to be made. `seed` makes ids for calls without one. Never throws. */
export function readOllamaAnswer(body: Uint8Array, seed: string, isForced: boolean): AnswerResult {
  return readSafely(() => readBody(body, seed, isForced));
}

function readBody(body: Uint8Array, seed: string, isForced: boolean): AnswerResult {
  const json = readAnswerJson(body);
  if (json === undefined) return { ok: false, failure: failure('GARBAGE', true, 200), usage: undefined };
  const { object: frame, text } = json;
  const usage = readUsage(frame);
  if (isError(frame['error'])) return { ok: false, failure: classifyOllamaError(frame['error']), usage };
  const reason = typeof frame['done_reason'] === 'string' ? frame['done_reason'] : '';
  if (!isObject(frame['message']) || isNoAnswer(reason)) return { ok: false, failure: failure('EMPTY', true, 200), usage };
  // The first line of a stream that nobody asked for, and that broke off.
  if (frame['done'] === false) return { ok: false, failure: failure('DISCONNECTED', true, 200), usage };
  const parts = readMessage(frame, text);
  const forced = isForced && parts.calls.length === 0 ? readForcedCall(parts.content) : undefined;
  const told = forced === undefined ? parts : { ...parts, content: '', calls: [forced] };
  return answerOf([{ ...told, images: [], extra: undefined, reason: mapDoneReason(reason) }], { usage, isUnreadable: isUsageUnreadable(frame) }, seed);
}
