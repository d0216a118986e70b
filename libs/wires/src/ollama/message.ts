/** What one message of Ollama's adds to an answer. */
import { isObject, type JsonObject } from '../canonical.js';
import { argumentsOf } from '../call-arguments.js';
import type { CallParts } from '../choice-parts.js';
import { elementsOf, sourceOf } from '../json-source.js';

export interface MessageParts {
  readonly content: string;
  readonly reasoning: string;
  readonly calls: readonly CallParts[];
  /** Canonical `logprobs`; null = none. */
  readonly logprobs: unknown;
}

const stringOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** `textOf` gives the call's JSON text. */
function callOf(call: unknown, textOf: () => string): readonly CallParts[] {
  const called = isObject(call) ? call['function'] : undefined;
  if (!isObject(call) || !isObject(called)) return [];
  return [{ id: stringOf(call['id']), name: stringOf(called['name']), arguments: argumentsOf(called['arguments'], () => sourceOf(textOf(), ['function', 'arguments'])) }];
}

/** `text` is the JSON that `frame` was read from. */
export function readMessage(frame: JsonObject, text: string): MessageParts {
  const message = isObject(frame['message']) ? frame['message'] : {};
  let sources: readonly string[] | undefined;
  const textOf = (at: number): string => (sources ??= elementsOf(text, ['message', 'tool_calls']))[at] ?? '{}';
  const calls = Array.isArray(message['tool_calls']) ? (message['tool_calls'] as readonly unknown[]).flatMap((call, at) => callOf(call, () => textOf(at))) : [];
  const logprobs = frame['logprobs'];
  return {
    content: stringOf(message['content']),
    reasoning: stringOf(message['thinking']) || stringOf(message['reasoning_content']),
    calls,
    logprobs: Array.isArray(logprobs) && logprobs.length > 0 ? { content: logprobs, refusal: null } : null,
  };
}
