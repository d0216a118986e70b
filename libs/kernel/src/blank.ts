/** Tests for text without visible characters. */

/** U+2800 is the Braille pattern without dots. */
const SEEN = /[^\p{White_Space}\p{Default_Ignorable_Code_Point}\p{C}\u2800]/u;

/** True for text without visible characters: only blanks, direction and width marks, or control characters; also for empty text. */
export function isBlank(text: string): boolean {
  return !SEEN.test(text);
}
