/** A whole answer of Cohere's v2 chat to a canonical choice. */
import { failure, isObject, type AnswerResult } from '../canonical.js';
import { toldArguments } from '../call-arguments.js';
import { answerOf, readAnswerJson, readSafely } from '../canonical-answer.js';
import { isCutShort } from '../choice-parts.js';
import { elementsOf } from '../json-source.js';
import { readCall, readLogprobs, readText } from './content.js';
import { classifyErrorFrame } from './errors.js';
import { mapFinishReason } from './finish-reason.js';
import { readUsage } from './usage.js';

/** `seed` makes ids for tool calls that came without one. Never throws. */
export function readCohereAnswer(body: Uint8Array, seed: string): AnswerResult {
  return readSafely(() => readBody(body, seed));
}

function readBody(body: Uint8Array, seed: string): AnswerResult {
  const json = readAnswerJson(body);
  if (json === undefined) return { ok: false, failure: failure('GARBAGE', true, 200), usage: undefined };
  const { object: parsed, text } = json;
  const usage = readUsage(parsed['usage']);
  const { message } = parsed;
  if (!isObject(message)) return { ok: false, failure: typeof message === 'string' || parsed['error'] !== undefined ? classifyErrorFrame(parsed) : failure('EMPTY', true, 200), usage };
  const { content, reasoning } = readText(message['content']);
  const plan = typeof message['tool_plan'] === 'string' ? message['tool_plan'] : '';
  const reason = mapFinishReason(parsed['finish_reason']);
  let elements: readonly string[] | undefined;
  const textOf = (at: number): string | undefined => (elements ??= elementsOf(text, ['message', 'tool_calls']))[at];
  const calls = (Array.isArray(message['tool_calls']) ? (message['tool_calls'] as readonly unknown[]) : [])
    .map((call, at) => readCall(call, () => textOf(at)))
    .map((call, at, all) => ({ ...call, arguments: toldArguments(call.arguments, isCutShort(reason) && at === all.length - 1) }));
  const choice = { content, reasoning: plan + reasoning, calls, images: [], extra: undefined, logprobs: readLogprobs(parsed['logprobs']) ?? null, reason };
  return answerOf([choice], { usage, isUnreadable: usage === undefined && isObject(parsed['usage']) }, seed);
}
