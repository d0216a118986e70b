/** `reasoning_details` as a stream tells them: pieces of one thought under one index, its signature last. */
import { isObject, type JsonObject } from './canonical.js';

const TEXT = 'reasoning.text';

/** A piece goes on with the thought before it, unless that one is signed: nothing may follow a signature. */
function goesOn(before: JsonObject, piece: JsonObject): boolean {
  const isSigned = typeof before['signature'] === 'string' && before['signature'] !== '';
  return before['type'] === TEXT && piece['type'] === TEXT && before['index'] !== undefined && before['index'] === piece['index'] && before['format'] === piece['format'] && !isSigned;
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The details with each thought whole; what is no object is left out. */
export function joinReasoningDetails(pieces: readonly unknown[]): readonly JsonObject[] {
  const whole: Record<string, unknown>[] = [];
  for (const piece of pieces.filter(isObject)) {
    const before = whole.at(-1);
    if (before === undefined || !goesOn(before, piece)) whole.push({ ...piece });
    else Object.assign(before, piece, { text: textOf(before['text']) + textOf(piece['text']) });
  }
  return whole;
}
