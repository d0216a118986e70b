/**
 * A call that must be made: Ollama has no setting for it, but holds an answer to a schema. The model is made to write
 * the call as JSON, which is then told as the call that it is.
 */
import { isObject, parsedObject, type JsonObject } from '../canonical.js';
import type { Chat, Tool } from '../chat-request.js';
import type { CallParts } from '../choice-parts.js';
import { EVENT_BOUNDS, isWithin } from '../json-bounds.js';
import { sourceOf } from '../json-source.js';

/** Tools of which one must be called; empty when the choice is free. */
export function forcedTools({ tools, toolChoice }: Pick<Chat, 'tools' | 'toolChoice'>): readonly Tool[] {
  if (toolChoice.kind === 'required') return tools;
  return toolChoice.kind === 'named' ? tools.filter((tool) => tool.name === toolChoice.name) : [];
}

function callSchema({ name, parameters = { type: 'object' } }: Tool): JsonObject {
  return { type: 'object', properties: { name: { type: 'string', enum: [name] }, arguments: parameters }, required: ['name', 'arguments'] };
}

/** Schema of one call of one of the tools. */
export function forcedSchema(tools: readonly Tool[]): JsonObject {
  const [only, ...others] = tools.map(callSchema);
  return only !== undefined && others.length === 0 ? only : { anyOf: tools.map(callSchema) };
}

export const FORCED_INSTRUCTION = 'Call one of the given functions now. Write nothing but the call, as one JSON object: {"name": the function’s name, "arguments": an object}.';

/** The call that `content` is; undefined when it is none, or more than one event could hold. */
export function readForcedCall(content: string): CallParts | undefined {
  const bytes = Buffer.from(content);
  const call = isWithin(bytes, 0, bytes.length, EVENT_BOUNDS) ? parsedObject(content) : undefined;
  if (call === undefined || typeof call['name'] !== 'string' || call['name'] === '' || !isObject(call['arguments'])) return undefined;
  return { id: '', name: call['name'], arguments: sourceOf(content, ['arguments']) ?? '{}' };
}
