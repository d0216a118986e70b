/** Text that shows nothing. */

/** U+2800 is the pattern of Braille without a dot. */
const SEEN = /[^\p{White_Space}\p{Default_Ignorable_Code_Point}\p{C}\u2800]/u;

/** True for text without a character that anybody sees: of blanks, of marks of direction and width, of control characters; also for none at all. */
export function isBlank(text: string): boolean {
  return !SEEN.test(text);
}
