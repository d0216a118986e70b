/** Parts that answers and deltas share: text, kept fields, tool calls. */
import { isObject, type JsonObject } from '../canonical.js';

/** Fields of a message or delta that pass as they are when present and not null. */
const KEPT_FIELDS = ['refusal', 'annotations', 'audio', 'images', 'reasoning', 'reasoning_content', 'reasoning_details', 'function_call'] as const;

export function keptFields(source: JsonObject): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  for (const name of KEPT_FIELDS) if (source[name] !== undefined && source[name] !== null) kept[name] = source[name];
  return kept;
}

export interface Text {
  readonly content: string | null | undefined;
  /** Thinking parts of Mistral's lists. */
  readonly reasoning: string;
}

/** Content as a string: lists of parts are joined, thinking apart. undefined = absent. */
export function readContent(raw: unknown): Text {
  if (typeof raw === 'string' || raw === null || raw === undefined) return { content: raw, reasoning: '' };
  if (!Array.isArray(raw)) return { content: undefined, reasoning: '' };
  let content = '';
  let reasoning = '';
  for (const part of raw as readonly unknown[]) {
    if (!isObject(part)) continue;
    if (typeof part['text'] === 'string') content += part['text'];
    else if (part['thinking'] !== undefined) reasoning += typeof part['thinking'] === 'string' ? part['thinking'] : (readContent(part['thinking']).content ?? '');
  }
  return { content, reasoning };
}

/** Arguments as text: some hosts send an object. */
export function argumentsText(raw: unknown): string {
  if (typeof raw === 'string') return raw;
  return raw === undefined || raw === null ? '' : JSON.stringify(raw);
}

/** UTF-8 bytes of generated text in a delta's or message's fields. */
export function textBytes(fields: JsonObject): number {
  let bytes = 0;
  for (const name of ['content', 'refusal', 'reasoning', 'reasoning_content'] as const) {
    const value = fields[name];
    if (typeof value === 'string') bytes += Buffer.byteLength(value);
  }
  return bytes;
}
