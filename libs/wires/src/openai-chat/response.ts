/** A whole answer of the OpenAI wire to canonical choices. */
import { CALLS_MAX, createArgumentsCount, emptiedByPolicy, failure, Garbage, isObject, labelOf, modelsFault, type Answer, type AnswerResult, type CountArguments, type FinishReason, type JsonObject, type Usage } from '../canonical.js';
import { isObjectText } from '../call-arguments.js';
import { readAnswerJson, readSafely, type AnswerJson } from '../canonical-answer.js';
import { INSTEAD_OF_CONTENT, isCutShort } from '../choice-parts.js';
import { elementsOf, sourceOf } from '../json-source.js';
import { classifyErrorFrame, errorIn } from './errors.js';
import { isFinishReason, isModelsFault, mapFinishReason } from './finish-reason.js';
import { argumentsText, keptFields, readContent, textBytes, thoughtBytes, toldCallBytes, withArgumentTexts, type ToldCall } from './message.js';
import { readPlainAnswer } from './plain-answer.js';
import { sourcesOf } from './sources.js';
import { readUsage } from './usage.js';

interface ReadChoice {
  readonly canonical: object;
  readonly finishReason: FinishReason;
  readonly bytes: number;
  /** Bytes of those that are thoughts. */
  readonly thoughts: number;
  /** Calls that nobody can answer, and nothing else. */
  readonly isNameless: boolean;
}

/** Of those of an answer that was cut off the last one may be half told. */
function readToolCalls(raw: unknown, seed: string, isCut: boolean, countArguments: CountArguments): ToldCall[] {
  if (!Array.isArray(raw)) return [];
  const calls: ToldCall[] = [];
  const ids = new Set<string>();
  for (const [at, call] of (raw as readonly unknown[]).entries()) {
    const fn = isObject(call) && isObject(call['function']) ? call['function'] : {};
    const { name } = fn;
    // Nobody can answer a call without a name.
    if (!isObject(call) || typeof name !== 'string' || name === '') continue;
    const id = typeof call['id'] === 'string' && call['id'] !== '' && !ids.has(call['id']) ? call['id'] : `call_${seed}${String(calls.length)}`;
    ids.add(id);
    if (calls.length >= CALLS_MAX) throw new Garbage('More calls than an answer may hold.');
    const extra = call['extra_content'] === undefined ? {} : { extra_content: call['extra_content'] };
    const args = argumentsText(fn['arguments']);
    countArguments(args.length);
    const isOpen = isCut && at === raw.length - 1;
    calls.push({ id, type: 'function', function: { name, arguments: args.trim() === '' && !isOpen ? '{}' : args }, ...extra });
  }
  return calls;
}

const hasItems = (value: unknown): boolean => Array.isArray(value) && value.length > 0;

function readChoice(raw: JsonObject, position: number, seed: string, sources: readonly JsonObject[] | undefined, countArguments: CountArguments): ReadChoice {
  const message = isObject(raw['message']) ? raw['message'] : {};
  const { content, reasoning } = readContent(message['content']);
  const toldReason = isFinishReason(raw['finish_reason']) ? raw['finish_reason'] : 'stop';
  const toolCalls = readToolCalls(message['tool_calls'], seed, isCutShort(mapFinishReason(toldReason, false)), countArguments);
  const kept = keptFields(message);
  const isSaidElsewhere = toolCalls.length > 0 || INSTEAD_OF_CONTENT.some((name) => kept[name] !== undefined);
  const told = toolCalls.length > 0 && content === '' ? null : (content ?? (isSaidElsewhere ? null : ''));
  const isAnnotated = hasItems(kept['annotations']);
  const fields = { content: told, refusal: null, ...(reasoning === '' ? {} : { reasoning_content: reasoning }), ...kept, ...(sources === undefined || position > 0 || isAnnotated ? {} : { annotations: sources }) };
  const bytes = textBytes(fields) + thoughtBytes(fields) + toldCallBytes(toolCalls);
  const finishReason = mapFinishReason(toldReason, toolCalls.length > 0);
  return {
    canonical: {
      index: typeof raw['index'] === 'number' && Number.isInteger(raw['index']) ? raw['index'] : position,
      message: { role: 'assistant', ...fields, ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}) },
      logprobs: raw['logprobs'] ?? null,
      finish_reason: finishReason,
    },
    finishReason,
    thoughts: thoughtBytes(fields),
    bytes,
    isNameless: bytes === 0 && !isSaidElsewhere && kept['images'] === undefined && hasItems(message['tool_calls']) && finishReason !== 'content_filter',
  };
}

function answerOf(fields: JsonObject, usage: Usage | undefined, said: Pick<Answer, 'choices' | 'finishReason' | 'outputBytes' | 'thoughtBytes'>): AnswerResult {
  if (said.finishReason === 'content_filter' && said.outputBytes === 0) return { ok: false, failure: emptiedByPolicy(), usage };
  const answer: Answer = {
    choices: said.choices,
    systemFingerprint: labelOf(fields['system_fingerprint']),
    serviceTier: labelOf(fields['service_tier']),
    usage,
    usageUnreadable: usage === undefined && isObject(fields['usage']),
    finishReason: said.finishReason,
    outputBytes: said.outputBytes,
    thoughtBytes: said.thoughtBytes,
  };
  return { ok: true, answer };
}

/** `seed` makes ids for tool calls that came without one. `tellsCost`: of the host. Never throws. */
export function readChatAnswer(bytes: Uint8Array, seed: string, tellsCost = false): AnswerResult {
  return readSafely(() => readBody(bytes, seed, tellsCost));
}

function readBody(bytes: Uint8Array, seed: string, tellsCost: boolean): AnswerResult {
  const body = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const plain = readPlainAnswer(body);
  const json = plain === undefined ? readAnswerJson(body) : undefined;
  const fields = plain?.fields ?? json?.object;
  if (fields === undefined) return { ok: false, failure: failure('GARBAGE', true, 200), usage: undefined };
  const usage = readUsage(fields['usage'], tellsCost);
  const error = errorIn(fields);
  const failing = error === undefined ? undefined : hasModelsFault(fields) ? modelsFault() : classifyErrorFrame(error);
  if (failing !== undefined && failing.class !== 'CONTENT_POLICY') return { ok: false, failure: failing, usage };
  const sources = sourcesOf(fields);
  if (plain !== undefined && sources === undefined && failing === undefined) return answerOf(fields, usage, plain);
  const said = saidChoices(json ?? readAnswerJson(body));
  if (failing === undefined) return readChoices(fields, said, usage, seed, sources);
  // A policy stopped it in the middle: what there is of it, unless a call is only half told.
  const filtered = readChoices(fields, said.map((choice) => ({ ...choice, finish_reason: 'content_filter' })), usage, seed, sources);
  return filtered.ok && said.every(areCallsWhole) ? filtered : { ok: false, failure: failing, usage };
}

/** Whether each choice that ended in an error did so by the model's fault. */
function hasModelsFault({ choices }: JsonObject): boolean {
  const broken = Array.isArray(choices) ? (choices as readonly unknown[]).filter(isObject).filter((choice) => isFinishReason(choice['finish_reason']) && mapFinishReason(choice['finish_reason'], false) === 'error') : [];
  return broken.length > 0 && broken.every(isModelsFault);
}

function saidChoices(json: AnswerJson | undefined): readonly JsonObject[] {
  const choices = json?.object['choices'];
  if (json === undefined || !Array.isArray(choices)) return [];
  let elements: readonly string[] | undefined;
  const textOf = (at: number): string => (elements ??= elementsOf(json.text, ['choices']))[at] ?? '{}';
  return (choices as readonly unknown[]).flatMap((choice, at) => {
    if (!isObject(choice) || !isObject(choice['message'])) return isObject(choice) ? [choice] : [];
    const { message } = choice;
    const calls = withArgumentTexts(message['tool_calls'], () => sourceOf(textOf(at), ['message', 'tool_calls']));
    return [calls === message['tool_calls'] ? choice : { ...choice, message: { ...message, tool_calls: calls } }];
  });
}

function areCallsWhole({ message }: JsonObject): boolean {
  const calls = isObject(message) && Array.isArray(message['tool_calls']) ? (message['tool_calls'] as readonly unknown[]) : [];
  return calls.every((call) => isObject(call) && isObject(call['function']) && isObjectText(argumentsText(call['function']['arguments'])));
}

function readChoices(fields: JsonObject, choices: readonly JsonObject[], usage: Usage | undefined, seed: string, sources: readonly JsonObject[] | undefined): AnswerResult {
  if (choices.length === 0) return { ok: false, failure: failure('EMPTY', true, 200), usage };
  const countArguments = createArgumentsCount();
  const read = choices.map((choice, position) => readChoice(choice, position, seed, sources, countArguments));
  if (read.some((choice) => choice.isNameless)) return { ok: false, failure: failure('GARBAGE', true, 200), usage };
  if (read.some((choice) => choice.finishReason === 'error')) return { ok: false, failure: hasModelsFault(fields) ? modelsFault() : failure('PROVIDER_ERROR', true, 200), usage };
  // Without a message, or a policy that left none, it is no answer of nothing.
  if (!choices.some(({ message }) => isObject(message)) && read[0]?.finishReason !== 'content_filter') return { ok: false, failure: failure('EMPTY', true, 200), usage };
  // The host never says that it had come to an end.
  if (!choices.some((choice) => isFinishReason(choice['finish_reason']))) return { ok: false, failure: failure('DISCONNECTED', true, 200), usage };
  return answerOf(fields, usage, {
    choices: Buffer.from(JSON.stringify(read.map((choice) => choice.canonical))),
    finishReason: read[0]?.finishReason ?? 'stop',
    outputBytes: read.reduce((sum, choice) => sum + choice.bytes, 0),
    thoughtBytes: read.reduce((sum, choice) => sum + choice.thoughts, 0),
  });
}
