/** A whole answer of generateContent to canonical choices. */
import { failure, isObject, type AnswerResult } from '../canonical.js';
import { answerOf, readAnswerJson, readSafely } from '../canonical-answer.js';
import { candidatesOf, isNothing, isPromptBlocked, type Candidate } from './candidate.js';
import { classifyErrorFrame, promptBlocked } from './errors.js';
import { readUsage } from './usage.js';

/** `seed` makes ids for tool calls that came without one. `names`: those of functions that were sent under another, by it. Never throws. */
export function readGenerateContentAnswer(body: Uint8Array, seed: string, names: ReadonlyMap<string, string> = new Map()): AnswerResult {
  return readSafely(() => readBody(body, seed, names));
}

function isSaid({ content, reasoning, calls, images }: Candidate): boolean {
  return content !== '' || reasoning !== '' || calls.length > 0 || images.length > 0;
}

function readBody(body: Uint8Array, seed: string, names: ReadonlyMap<string, string>): AnswerResult {
  const json = readAnswerJson(body);
  if (json === undefined) return { ok: false, failure: failure('GARBAGE', true, 200), usage: undefined };
  const { object: parsed, text } = json;
  const usage = readUsage(parsed['usageMetadata']);
  if (isObject(parsed['error'])) return { ok: false, failure: classifyErrorFrame(parsed), usage };
  const candidates = candidatesOf(parsed, text, names);
  if (candidates.length === 0 && isPromptBlocked(parsed)) return { ok: false, failure: promptBlocked(), usage };
  // Neither words nor a reason for there being none.
  if (candidates.every((candidate) => candidate.reason === undefined && !isSaid(candidate))) return { ok: false, failure: failure('EMPTY', true, 200), usage };
  const choices = candidates.map((candidate) => ({ ...candidate, logprobs: candidate.logprobs ?? null, reason: candidate.reason ?? 'stop' }));
  const result = answerOf(choices, { usage, isUnreadable: usage === undefined && isObject(parsed['usageMetadata']) }, seed);
  return result.ok && candidates.every((candidate) => isNothing(isSaid(candidate), candidate.reason, usage)) ? { ok: true, answer: { ...result.answer, saidNothing: true } } : result;
}
