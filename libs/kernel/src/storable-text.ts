/** With the flag u a pair is one character: only halves are left to match. */
const HALF_PAIR = /\p{Surrogate}/u;

/** False of a text with a NUL character or half a surrogate pair: no store of ours holds either, and every half becomes the same character on its way there. */
export function isStorableText(text: string): boolean {
  return !text.includes('\0') && !HALF_PAIR.test(text);
}
