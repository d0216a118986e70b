/** Which bytes of a JSON string may be set apart, so that whoever looks at what stays finds in it all that he looks for. */

/** Bytes of a string: what stands before and behind them stays in its place. */
export interface Apart {
  readonly from: number;
  readonly to: number;
}

/** Bytes of a string's end that stay at least: what trims a text finds there what it would find in the whole. */
const TAIL_BYTES = 64;
const ESCAPE_BYTES_MAX = 6;
/** Of one character: a pair of surrogates may be escaped. */
const CHARACTER_BYTES_MAX = 2 * ESCAPE_BYTES_MAX;
/** Bytes of base64 that stay at its beginning: what a file is, is told by its first kilobyte. */
const SIGNATURE_BYTES = 1_368;
/** Of a data URL, to the comma. Other media than these are read as texts by some. */
const DATA_URL = /^data:(?:image\/|audio\/|application\/pdf)[^,;\\"]*;base64,/i;
const DATA_URL_BYTES_MAX = 128;

const BACKSLASH = 0x5c;
const LOWER_U = 0x75;
const PAD = 0x3d;
const PADS_MAX = 2;
/** By byte: 1 = it is of base64's standard alphabet. */
const ALPHABET = new Uint8Array(256);
for (const symbol of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/') ALPHABET[symbol.charCodeAt(0)] = 1;

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

function escapeBytes(bytes: Buffer, at: number): number {
  return bytes[at + 1] === LOWER_U ? ESCAPE_BYTES_MAX : 2;
}

/** Whether an escape at `at` is half of a character: the first one or the second, as `half` says. */
function isSurrogate(bytes: Buffer, at: number, half: RegExp): boolean {
  return bytes[at] === BACKSLASH && bytes[at + 1] === LOWER_U && half.test(bytes.toString('latin1', at + 2, at + 4));
}

/** Whether neither an escape nor a character nor a pair of surrogates goes over `at` in the string that begins at `start`. */
function isBetweenCharacters(bytes: Buffer, at: number, start: number): boolean {
  if (isContinuation(bytes[at])) return false;
  if (isSurrogate(bytes, at, /^d[c-f]/i)) return false;
  let backslash = at - 1;
  while (backslash > at - ESCAPE_BYTES_MAX && bytes[backslash] !== BACKSLASH) backslash -= 1;
  if (bytes[backslash] !== BACKSLASH || backslash < start) return true;
  let first = backslash;
  while (first > start && bytes[first - 1] === BACKSLASH) first -= 1;
  const beginsEscape = (backslash - first) % 2 === 0;
  return !beginsEscape || backslash + escapeBytes(bytes, backslash) <= at;
}

function isBlank(bytes: Buffer, from: number, to: number): boolean {
  return (JSON.parse(`"${bytes.toString('utf8', from, to)}"`) as string).trim() === '';
}

/**
 * Of a text between its quotes: its first character stays, which tells whether it may be JSON, and its end. undefined
 * where the end is blank: who trims it has to see what is before.
 */
export function apartOfText(bytes: Buffer, start: number, end: number): Apart | undefined {
  const first = bytes[start] ?? 0;
  // What no JSON begins with need not stay.
  const from = first >= 0x80 || isSurrogate(bytes, start, /^d[89ab]/i) ? start : start + (first === BACKSLASH ? escapeBytes(bytes, start) : 1);
  for (let to = end - TAIL_BYTES; to > end - TAIL_BYTES - CHARACTER_BYTES_MAX; to -= 1) {
    if (isBetweenCharacters(bytes, to, start)) return isBlank(bytes, to, end) ? undefined : { from, to };
  }
  return undefined;
}

/** Padded, of the standard alphabet, and nothing else. */
function isBase64(bytes: Buffer, start: number, end: number): boolean {
  if ((end - start) % 4 !== 0) return false;
  let at = start;
  while (at < end && ALPHABET[bytes[at] as number] === 1) at += 1;
  return end - at <= PADS_MAX && bytes.subarray(at, end).every((byte) => byte === PAD);
}

/** Of a picture, sound or PDF in base64 between its quotes, as a data URL or by itself; undefined for anything else, and what is not written as wires write it. */
export function apartOfMedia(bytes: Buffer, start: number, end: number): Apart | undefined {
  const lead = DATA_URL.exec(bytes.toString('latin1', start, Math.min(end, start + DATA_URL_BYTES_MAX)));
  const data = start + (lead?.[0].length ?? 0);
  const [from, to] = [data + SIGNATURE_BYTES, end - TAIL_BYTES];
  return from < to && isBase64(bytes, data, end) ? { from, to } : undefined;
}
