/** With the flag u, a surrogate pair is one character, so only lone surrogates match. */
const HALF_PAIR = /\p{Surrogate}/u;

/** False for text with a NUL character or a lone surrogate: our stores cannot hold either, and all lone surrogates would become the same character. */
export function isStorableText(text: string): boolean {
  return !text.includes('\0') && !HALF_PAIR.test(text);
}
