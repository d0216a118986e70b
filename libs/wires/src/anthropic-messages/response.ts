/** A whole answer of the Messages API to a canonical one. */
import { createArgumentsCount, failure, isObject, type AnswerResult, type JsonObject } from '../canonical.js';
import { argumentsOf, withoutEnd } from '../call-arguments.js';
import { answerOf, readAnswerJson, readSafely } from '../canonical-answer.js';
import { isCutShort, type CallParts } from '../choice-parts.js';
import { elementsOf, sourceOf } from '../json-source.js';
import { JSON_TOOL } from '../json-tool.js';
import { classifyMessagesError } from './errors.js';
import { mapStopReason, REFUSAL } from './finish-reason.js';
import { CLAUDE_THOUGHT, redactedDetail, thinkingDetails, type ThoughtFormat } from './thinking.js';
import { readFigures, usageOf } from './usage.js';

const stringOf = (block: JsonObject, name: string): string => (typeof block[name] === 'string' ? block[name] : '');

/** `format`: whose thought the model's is. `isUnwrapped`: the input of `JSON_TOOL` is the content. `refusesForFree`: of the host. `seed` makes ids for calls without one. `names`: those of functions that were sent under another, by it. Never throws. */
export function readMessagesAnswer(body: Uint8Array, seed: string, isUnwrapped: boolean, format = CLAUDE_THOUGHT, refusesForFree = false, names: ReadonlyMap<string, string> = new Map()): AnswerResult {
  return readSafely(() => readBody(body, seed, isUnwrapped, format, refusesForFree, names));
}

function isRefusedAtOnce({ content, stop_reason: reason }: JsonObject): boolean {
  return reason === REFUSAL && Array.isArray(content) && content.length === 0;
}

function readBody(body: Uint8Array, seed: string, isUnwrapped: boolean, format: ThoughtFormat, refusesForFree: boolean, names: ReadonlyMap<string, string>): AnswerResult {
  const json = readAnswerJson(body);
  if (json === undefined) return { ok: false, failure: failure('GARBAGE', true, 200), usage: undefined };
  const { object: message, text } = json;
  const figures = readFigures(message['usage']);
  const usage = refusesForFree && isRefusedAtOnce(message) ? undefined : usageOf(figures);
  if (message['type'] === 'error' || isObject(message['error'])) return { ok: false, failure: classifyMessagesError(message['error']), usage };
  if (!Array.isArray(message['content']) || typeof message['stop_reason'] !== 'string') return { ok: false, failure: failure('EMPTY', true, 200), usage };
  const reason = mapStopReason(message['stop_reason']);
  let content = '';
  let reasoning = '';
  const calls: CallParts[] = [];
  const countArguments = createArgumentsCount();
  const details: JsonObject[] = [];
  let sources: readonly string[] | undefined;
  (message['content'] as readonly unknown[]).forEach((block, index, { length }) => {
    if (!isObject(block)) return;
    switch (block['type']) {
      case 'text':
        content += stringOf(block, 'text');
        break;
      case 'thinking':
        reasoning += stringOf(block, 'thinking');
        details.push(...thinkingDetails(stringOf(block, 'thinking'), stringOf(block, 'signature'), details.length, format));
        break;
      case 'redacted_thinking':
        details.push(redactedDetail(stringOf(block, 'data'), details.length, format));
        break;
      case 'tool_use': {
        sources ??= elementsOf(text, ['content']);
        const source = sources[index] ?? '{}';
        countArguments(source.length);
        const whole = argumentsOf(block['input'], () => sourceOf(source, ['input']));
        const input = isCutShort(reason) && index === length - 1 ? withoutEnd(whole) : whole;
        const name = stringOf(block, 'name');
        if (isUnwrapped && name === JSON_TOOL) content += input;
        else calls.push({ id: stringOf(block, 'id'), name: names.get(name) ?? name, arguments: input });
        break;
      }
    }
  });
  return answerOf(
    [{ content, reasoning, calls, images: [], reasoningDetails: details, extra: undefined, logprobs: null, reason }],
    { usage, isUnreadable: usage === undefined && isObject(message['usage']) },
    seed,
  );
}
