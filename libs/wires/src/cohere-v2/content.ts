/** Parts that whole answers and events share. */
import { argumentsPiece } from '../call-arguments.js';
import { sourceOf } from '../json-source.js';
import { isObject, type JsonObject } from '../canonical.js';

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

export interface Text {
  readonly content: string;
  readonly reasoning: string;
}

/** Text and thoughts of a content block, a list of them or a delta. */
export function readText(raw: unknown): Text {
  if (typeof raw === 'string') return { content: raw, reasoning: '' };
  if (Array.isArray(raw)) {
    const parts = (raw as readonly unknown[]).map(readText);
    return { content: parts.map((part) => part.content).join(''), reasoning: parts.map((part) => part.reasoning).join('') };
  }
  return isObject(raw) ? { content: textOf(raw['text']), reasoning: textOf(raw['thinking']) } : { content: '', reasoning: '' };
}

export interface Call {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** Fields of a call that are there; all may be missing in a delta. `source` gives its JSON text. */
export function readCall(raw: unknown, source: () => string | undefined): Call {
  const call = isObject(raw) ? raw : {};
  const fn = isObject(call['function']) ? call['function'] : {};
  return { id: textOf(call['id']), name: textOf(fn['name']), arguments: argumentsPiece(fn['arguments'], () => sourceOf(source() ?? '{}', ['function', 'arguments'])) };
}

function logprobOf(raw: unknown): object | undefined {
  if (!isObject(raw) || !Array.isArray(raw['logprobs'])) return undefined;
  const token = textOf(raw['text']);
  // A piece of several tokens is as likely as all of them together.
  const logprob = (raw['logprobs'] as readonly unknown[]).reduce<number>((sum, value) => sum + (typeof value === 'number' ? value : 0), 0);
  return { token, logprob, bytes: [...Buffer.from(token)], top_logprobs: [] };
}

/** Canonical `logprobs` of one item or a list; undefined = none. */
export function readLogprobs(raw: unknown): object | undefined {
  const content = (Array.isArray(raw) ? (raw as readonly unknown[]) : [raw]).map(logprobOf).filter((item) => item !== undefined);
  return content.length === 0 ? undefined : { content, refusal: null };
}

/** `delta.message` of an event. */
export function messageOf(frame: JsonObject): JsonObject {
  const delta = isObject(frame['delta']) ? frame['delta'] : {};
  return isObject(delta['message']) ? delta['message'] : {};
}
