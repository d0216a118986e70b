/** Parts that answers and deltas share: text, kept fields, tool calls. */
import { isObject, type JsonObject } from '../canonical.js';
import { callBytes } from '../choice-parts.js';
import { elementsOf, sourceOf } from '../json-source.js';

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

/** Calls as a host tells them, with arguments that are an object as its own text, every digit of it. `listOf` gives the JSON text of the calls: it is not asked for where all are texts. */
export function withArgumentTexts(calls: unknown, listOf: () => string | undefined): unknown {
  const functionOf = (call: unknown): JsonObject | undefined => (isObject(call) && isObject(call['function']) && isObject(call['function']['arguments']) ? call['function'] : undefined);
  if (!Array.isArray(calls) || !calls.some((call) => functionOf(call) !== undefined)) return calls;
  const sources = elementsOf(listOf() ?? '[]', []);
  return (calls as readonly unknown[]).map((call, at): unknown => {
    const fn = functionOf(call);
    const args = fn === undefined ? undefined : sourceOf(sources[at] ?? '{}', ['function', 'arguments']);
    return args === undefined || !isObject(call) ? call : { ...call, function: { ...fn, arguments: args } };
  });
}

function bytesIn(fields: JsonObject, name: string): number {
  const value = fields[name];
  return typeof value === 'string' ? Buffer.byteLength(value) : 0;
}

/** UTF-8 bytes of generated text in a delta's or message's fields, thoughts apart. */
export function textBytes(fields: JsonObject): number {
  return bytesIn(fields, 'content') + bytesIn(fields, 'refusal');
}

/** UTF-8 bytes of thoughts in a delta's or message's fields: hosts that send them under both names send the same twice. */
export function thoughtBytes(fields: JsonObject): number {
  return Math.max(bytesIn(fields, 'reasoning'), bytesIn(fields, 'reasoning_content'));
}

/** A call, or a piece of one, as it is told. */
export interface ToldCall {
  /** In streams. */
  readonly index?: number;
  readonly id?: string;
  readonly type?: 'function';
  readonly function: { readonly name?: string; readonly arguments: string };
  readonly extra_content?: unknown;
}

/** UTF-8 bytes of generated text in calls: what stands around it would count anew with each piece. */
export function toldCallBytes(calls: readonly ToldCall[]): number {
  return calls.reduce((sum, { function: { name = '', arguments: text } }) => sum + callBytes({ id: '', name, arguments: text }), 0);
}
