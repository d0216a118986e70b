/** Who speaks, for models whose messages have no `name`: it stands before the user's words, so that several people can be told apart. */
import { isObject } from './canonical.js';

interface Part {
  readonly type?: unknown;
  readonly text?: unknown;
}

const isSaid = ({ type, text }: Part): boolean => type !== 'text' || (typeof text === 'string' && text.trim() !== '');

/** Parts of a user's content; of such as say nothing nobody is told to be the speaker. `textPart` makes one of text. */
export function namedParts<Of extends Part>(parts: readonly Of[], name: unknown, textPart: (text: string) => Of): readonly Of[] {
  const [first, ...rest] = parts;
  if (typeof name !== 'string' || name.trim() === '' || first === undefined || !parts.some(isSaid)) return parts;
  return first.type === 'text' && isSaid(first) ? [{ ...first, text: `${name}: ${String(first.text)}` }, ...rest] : [textPart(`${name}:`), ...parts];
}

/** A user's content as it came. */
export function namedContent(content: unknown, name: unknown): unknown {
  const textPart = (text: string): Part => ({ type: 'text', text });
  if (typeof content === 'string') return namedParts([textPart(content)], name, textPart)[0]?.text;
  return Array.isArray(content) && content.every(isObject) ? namedParts<Part>(content, name, textPart) : content;
}
