/** A whole answer of Converse to a canonical one. */
import { CLAUDE_THOUGHT, redactedDetail, thinkingDetails } from '../anthropic-messages/thinking.js';
import { failure, isObject, type AnswerResult, type JsonObject } from '../canonical.js';
import { argumentsOf, withoutEnd } from '../call-arguments.js';
import { answerOf, readAnswerJson, readSafely } from '../canonical-answer.js';
import { isCutShort, type CallParts } from '../choice-parts.js';
import { elementsOf, sourceOf } from '../json-source.js';
import { JSON_TOOL } from '../json-tool.js';
import { classifyConverseException } from './errors.js';
import { isModelsFault, mapStopReason } from './finish-reason.js';
import type { ConverseReading } from './stream.js';
import { readUsage } from './usage.js';

const stringOf = (object: JsonObject, name: string): string => (typeof object[name] === 'string' ? object[name] : '');

interface Gathered {
  content: string;
  reasoning: string;
  readonly calls: CallParts[];
  readonly details: JsonObject[];
}

function gatherReasoning(block: JsonObject, gathered: Gathered, isClaude: boolean): void {
  const { details } = gathered;
  if (isClaude && typeof block['redactedContent'] === 'string') details.push(redactedDetail(block['redactedContent'], details.length, CLAUDE_THOUGHT));
  const told = block['reasoningText'];
  if (!isObject(told)) return;
  gathered.reasoning += stringOf(told, 'text');
  if (isClaude) details.push(...thinkingDetails(stringOf(told, 'text'), stringOf(told, 'signature'), details.length, CLAUDE_THOUGHT));
}

/** Text with the sources it was taken from: only the text is ours to give. */
function citedText(block: JsonObject): string {
  const parts = block['content'];
  return Array.isArray(parts) ? (parts as readonly unknown[]).map((part) => (isObject(part) ? stringOf(part, 'text') : '')).join('') : '';
}

/** Never throws. */
export function readConverseAnswer(body: Uint8Array, reading: ConverseReading): AnswerResult {
  return readSafely(() => readBody(body, reading));
}

function readBody(body: Uint8Array, { seed, isUnwrapped, isClaude, names }: ConverseReading): AnswerResult {
  const json = readAnswerJson(body);
  if (json === undefined) return { ok: false, failure: failure('GARBAGE', true, 200), usage: undefined };
  const { object: parsed, text } = json;
  const usage = readUsage(parsed['usage']);
  const message = isObject(parsed['output']) ? parsed['output']['message'] : undefined;
  if (!isObject(message) || typeof parsed['stopReason'] !== 'string') {
    const isError = typeof parsed['__type'] === 'string';
    return { ok: false, failure: isError ? classifyConverseException(stringOf(parsed, '__type'), parsed) : failure('EMPTY', true, 200), usage };
  }
  const reason = mapStopReason(parsed['stopReason']);
  const gathered: Gathered = { content: '', reasoning: '', calls: [], details: [] };
  let sources: readonly string[] | undefined;
  const blocks: readonly unknown[] = Array.isArray(message['content']) ? message['content'] : [];
  blocks.forEach((block, index, { length }) => {
    if (!isObject(block)) return;
    const { toolUse, reasoningContent, citationsContent } = block;
    gathered.content += stringOf(block, 'text');
    if (isObject(citationsContent)) gathered.content += citedText(citationsContent);
    if (isObject(reasoningContent)) gatherReasoning(reasoningContent, gathered, isClaude);
    if (!isObject(toolUse)) return;
    sources ??= elementsOf(text, ['output', 'message', 'content']);
    const source = sources[index] ?? '{}';
    const whole = argumentsOf(toolUse['input'], () => sourceOf(source, ['toolUse', 'input']));
    const input = isCutShort(reason) && index === length - 1 ? withoutEnd(whole) : whole;
    const name = stringOf(toolUse, 'name');
    if (isUnwrapped && name === JSON_TOOL) gathered.content += input;
    else gathered.calls.push({ id: stringOf(toolUse, 'toolUseId'), name: names.get(name) ?? name, arguments: input });
  });
  const { content, reasoning, calls, details } = gathered;
  return answerOf(
    [{ content, reasoning, calls, images: [], reasoningDetails: details, extra: undefined, logprobs: null, reason, isModelsFault: isModelsFault(parsed['stopReason']) }],
    { usage, isUnreadable: usage === undefined && isObject(parsed['usage']) },
    seed,
  );
}
