/**
 * Interns short strings that are read from messages. Names, ids and periods repeat all the time, and requests in progress
 * hold theirs for seconds: a separate string each time would have to be decoded, and would outlive the young heap.
 */

const LENGTH_MAX = 40;
/** A power of two. */
const TEXTS = 1_024;

/** ASCII only. A hash of the length and a few characters selects the slot; a later string replaces the one in it. */
const texts: string[] = Array.from({ length: TEXTS }, () => '');

/** Same result as `bytes.toString('utf8', start, end)`, for `0 <= start <= end <= bytes.length`. */
export function knownText(bytes: Buffer, start: number, end: number): string {
  const length = end - start;
  if (length === 0) return '';
  if (length > LENGTH_MAX) return bytes.toString('utf8', start, end);
  const slot = ((bytes[end - 1] ?? 0) * 131 + (bytes[end - 2] ?? 0) * 31 + (bytes[start + (length >> 1)] ?? 0) * 7 + length) & (TEXTS - 1);
  const known = texts[slot] ?? '';
  if (known.length === length) {
    let i = 0;
    while (i < length && bytes[start + i] === known.charCodeAt(i)) i += 1;
    if (i === length) return known;
  }
  for (let i = start; i < end; i += 1) if ((bytes[i] ?? 0) > 0x7f) return bytes.toString('utf8', start, end);
  const text = bytes.toString('latin1', start, end);
  texts[slot] = text;
  return text;
}
