/** A whole answer of the OpenAI wire to canonical choices. */
import { failure, isObject, type Answer, type AnswerResult, type FinishReason, type JsonObject } from '../canonical.js';
import { classifyErrorFrame } from './errors.js';
import { mapFinishReason } from './finish-reason.js';
import { argumentsText, keptFields, readContent, textBytes } from './message.js';
import { readUsage } from './usage.js';

interface ReadChoice {
  readonly canonical: object;
  readonly finishReason: FinishReason;
  readonly bytes: number;
}

function readToolCalls(raw: unknown, seed: string): object[] {
  if (!Array.isArray(raw)) return [];
  const calls: object[] = [];
  for (const call of raw as readonly unknown[]) {
    if (!isObject(call)) continue;
    const fn = isObject(call['function']) ? call['function'] : {};
    const id = typeof call['id'] === 'string' && call['id'] !== '' ? call['id'] : `call_${seed}${String(calls.length)}`;
    const extra = call['extra_content'] === undefined ? {} : { extra_content: call['extra_content'] };
    calls.push({ id, type: 'function', function: { name: typeof fn['name'] === 'string' ? fn['name'] : '', arguments: argumentsText(fn['arguments']) }, ...extra });
  }
  return calls;
}

function readChoice(raw: JsonObject, position: number, seed: string): ReadChoice {
  const message = isObject(raw['message']) ? raw['message'] : {};
  const { content, reasoning } = readContent(message['content']);
  const toolCalls = readToolCalls(message['tool_calls'], seed);
  const fields = { content: toolCalls.length > 0 ? (content === '' ? null : (content ?? null)) : (content ?? null), refusal: null, ...(reasoning === '' ? {} : { reasoning_content: reasoning }), ...keptFields(message) };
  const finishReason = mapFinishReason(typeof raw['finish_reason'] === 'string' ? raw['finish_reason'] : 'stop', toolCalls.length > 0);
  return {
    canonical: {
      index: typeof raw['index'] === 'number' && Number.isInteger(raw['index']) ? raw['index'] : position,
      message: { role: 'assistant', ...fields, ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}) },
      logprobs: raw['logprobs'] ?? null,
      finish_reason: finishReason,
    },
    finishReason,
    bytes: textBytes(fields) + (toolCalls.length > 0 ? Buffer.byteLength(JSON.stringify(toolCalls)) : 0),
  };
}

/** `seed` makes ids for tool calls that came without one. Never throws. */
export function readChatAnswer(body: Uint8Array, seed: string): AnswerResult {
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.length).toString('utf8'));
  } catch {
    return { ok: false, failure: failure('GARBAGE', true, 200), usage: undefined };
  }
  if (!isObject(parsed)) return { ok: false, failure: failure('GARBAGE', true, 200), usage: undefined };
  const usage = readUsage(parsed['usage']);
  if (parsed['error'] !== undefined && parsed['error'] !== null) return { ok: false, failure: classifyErrorFrame(parsed['error']), usage };
  const choices = Array.isArray(parsed['choices']) ? (parsed['choices'] as readonly unknown[]).filter(isObject) : [];
  if (choices.length === 0) return { ok: false, failure: failure('EMPTY', true, 200), usage };
  const read = choices.map((choice, position) => readChoice(choice, position, seed));
  const first = read[0]?.finishReason ?? 'stop';
  if (read.some((choice) => choice.finishReason === 'error')) return { ok: false, failure: failure('PROVIDER_ERROR', true, 200), usage };
  const answer: Answer = {
    choices: JSON.stringify(read.map((choice) => choice.canonical)),
    systemFingerprint: typeof parsed['system_fingerprint'] === 'string' ? parsed['system_fingerprint'] : '',
    serviceTier: typeof parsed['service_tier'] === 'string' ? parsed['service_tier'] : '',
    usage,
    usageUnreadable: usage === undefined && isObject(parsed['usage']),
    finishReason: first,
    outputBytes: read.reduce((sum, choice) => sum + choice.bytes, 0),
  };
  return { ok: true, answer };
}
