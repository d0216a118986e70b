/** The text of an attempt: one repeated capital letter, so that a client's text shows its attempt. No name in a chunk contains capital letters. */

const FIRST = 'A'.charCodeAt(0);

export const letterOf = (attempt: number): string => String.fromCharCode(FIRST + attempt - 1);
export const attemptOf = (letter: string): number => letter.charCodeAt(0) - FIRST + 1;

const OPENING = '{"k":"';
const CLOSING = '"}';

/** `bytes` bytes of an answer; with `json`, of an object that the first piece opens and the last one closes. */
export function wordsOf(letter: string, bytes: number, json: { readonly isFirst: boolean; readonly isLast: boolean } | undefined): string {
  const opening = json?.isFirst === true ? OPENING : '';
  const closing = json?.isLast === true ? CLOSING : '';
  return `${opening}${letter.repeat(Math.max(1, bytes - opening.length - closing.length))}${closing}`;
}
