/** The words of an attempt: one capital letter, so that whoever got them knows whose they are. No name in a chunk has one. */

const FIRST = 'A'.charCodeAt(0);

export const letterOf = (attempt: number): string => String.fromCharCode(FIRST + attempt - 1);
export const attemptOf = (letter: string): number => letter.charCodeAt(0) - FIRST + 1;

const OPENING = '{"k":"';
const CLOSING = '"}';

/** So many bytes of an answer; `json`: of an object, which the first piece opens and the last one closes. */
export function wordsOf(letter: string, bytes: number, json: { readonly isFirst: boolean; readonly isLast: boolean } | undefined): string {
  const opening = json?.isFirst === true ? OPENING : '';
  const closing = json?.isLast === true ? CLOSING : '';
  return `${opening}${letter.repeat(Math.max(1, bytes - opening.length - closing.length))}${closing}`;
}
