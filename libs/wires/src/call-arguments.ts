/** Arguments of calls, which clients read as a JSON object. */
import { parsedObject } from './canonical.js';
import { EVENT_BOUNDS, isWithin } from './json-bounds.js';

const NOTHING: ReadonlySet<string> = new Set(['', 'null']);

/** Text that is read only to see what it is: more than one event could hold is not. */
function isReadable(text: string): boolean {
  const bytes = Buffer.from(text);
  return isWithin(bytes, 0, bytes.length, EVENT_BOUNDS);
}

/** Whole: nothing of it is missing. */
export function isObjectText(text: string): boolean {
  return isReadable(text) && parsedObject(text) !== undefined;
}

/** JSON of something else, which no repair makes an object. What is no JSON may be a model's slip, or cut short. */
export function isOtherJson(text: string): boolean {
  const told = text.trim();
  if (told === '' || told.startsWith('{')) return false;
  if (!isReadable(told)) return true;
  try {
    JSON.parse(told);
    return true;
  } catch {
    return false;
  }
}

/** Some hosts write nothing in words, or as the list that their language takes for an empty object. */
function isNothing(value: unknown): boolean {
  return value === undefined || value === null || (typeof value === 'string' && NOTHING.has(value.trim())) || (Array.isArray(value) && value.length === 0);
}

/** Of a call whose provider tells them as a value; some hosts write that as text. `source` gives its JSON text, every digit of it. What is no object is told as it came: it is refused where the answer is put together. */
export function argumentsOf(value: unknown, source: () => string | undefined): string {
  if (isNothing(value)) return '{}';
  return typeof value === 'string' && isObjectText(value) ? value : (source() ?? JSON.stringify(value));
}

/** Nothing stands in it. */
export function isBareObject(text: string): boolean {
  return /^\s*\{\s*\}\s*$/.test(text);
}

/** Of a call whose provider tells them as text, all of it: what its model wrote. `isOpen`: where that is nothing, it need not be all. */
export function toldArguments(text: string, isOpen: boolean): string {
  if (!isNothing(text)) return text;
  return isOpen ? '' : '{}';
}

/** Of the last call of an answer that was cut off, whose provider makes an object of what came: that it ends is the provider's word, not the model's. */
export function withoutEnd(text: string): string {
  const told = text.trim();
  if (!told.startsWith('{') || !told.endsWith('}')) return text;
  return isBareObject(told) ? '' : told.slice(0, -1).trimEnd();
}

/** A piece of them, which is text by rights. Of what is none `source` gives the JSON text. */
export function argumentsPiece(value: unknown, source: () => string | undefined): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : (source() ?? JSON.stringify(value));
}
