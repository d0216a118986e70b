/**
 * Long strings in a request's messages are checked as bytes and not parsed (ADR 88): the parser would copy each twice, into
 * newly allocated memory, although only both ends of a text, and the length of media, are needed.
 */
import { randomBytes } from 'node:crypto';

/** Longer strings are shortened (bytes between the quotes). More than both ends of a text take. */
export const LONG_STRING_BYTES = 24_576;
/** UTF-16 units that a shortened text keeps at least, of its beginning and of its end. */
export const HEAD_UNITS = 8_192;
export const TAIL_UNITS = 2_048;
/** A unit takes at most six bytes, as an escape. */
const TAIL_BYTES = TAIL_UNITS * 6;

const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
/** `"`, `\`, `/`, `b`, `f`, `n`, `r` and `t`. */
const PLAIN_ESCAPES = [0x22, 0x5c, 0x2f, 0x62, 0x66, 0x6e, 0x72, 0x74];

/** Prefix of the text that replaces media, before a number, a semicolon and their beginning. Random, so that no client can write it. */
export const OMITTED = `data:${randomBytes(16).toString('hex')}`;

/** Of media: their beginning, which may tell what they are. */
export const MEDIA_HEAD_CHARS = 256;

export type LongStringKind = 'text' | 'media';

export interface LongString {
  readonly kind: LongStringKind;
  /** The range of its bytes between the quotes. */
  readonly start: number;
  readonly end: number;
  /** The range of a text that is left out; unused for media, which are left out whole. */
  readonly headEnd: number;
  readonly tailStart: number;
  /** UTF-16 units of the whole string. */
  readonly units: number;
}

/** UTF-16 units of strings that were shortened, by the text that replaces them. */
export interface WholeLengths {
  readonly texts: ReadonlyMap<string, number>;
  readonly media: ReadonlyMap<string, number>;
}

export const ALL_WHOLE: WholeLengths = { texts: new Map(), media: new Map() };

export function lengthOf(text: string, shortened: ReadonlyMap<string, number>): number {
  return shortened.size === 0 ? text.length : (shortened.get(text) ?? text.length);
}

/** The beginning of media, also of those that were left out: 256 characters, fewer where an escape stands among them. */
export function headOf(text: string): string {
  return text.startsWith(OMITTED) ? text.slice(text.indexOf(';') + 1) : text.slice(0, MEDIA_HEAD_CHARS);
}

function isHex(byte: number): boolean {
  return (byte >= 0x30 && byte <= 0x39) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66);
}

/** One past the escape at `from`; −1 when it is not valid JSON. */
function skipEscape(body: Buffer, from: number): number {
  const letter = body[from + 1] ?? 0;
  if (letter !== LETTER_U) return PLAIN_ESCAPES.includes(letter) ? from + 2 : -1;
  for (let i = from + 2; i < from + 6; i += 1) if (!isHex(body[i] ?? 0)) return -1;
  return from + 6;
}

/** Whether four bytes are ASCII, without control characters and backslashes. */
function isPlain(word: number): boolean {
  // The highest bit of each byte is set if it is below a space, not ASCII, or a backslash.
  return (((word - 0x20202020) | word | ((word ^ 0x5c5c5c5c) - 0x01010101)) & 0x80808080) === 0;
}

/** Checks the content of a string character by character and counts its units. */
class StringWalk {
  units = 0;
  private readonly view: DataView;

  constructor(private readonly body: Buffer, public at: number) {
    this.view = new DataView(body.buffer, body.byteOffset, body.length);
  }

  /** Moves on to the first character at or after `to`, or until there were `unitsMax` units. False when the content is not valid JSON. */
  on(to: number, unitsMax = Infinity): boolean {
    const { body, view } = this;
    let { at, units } = this;
    while (at < to && units < unitsMax) {
      if (at + 4 <= to && isPlain(view.getInt32(at))) {
        at += 4;
        units += 4;
        continue;
      }
      const byte = body[at] ?? 0;
      if (byte < 0x20) return false;
      units += 1;
      if (byte === BACKSLASH) {
        at = skipEscape(body, at);
        if (at === -1) return false;
      } else if (byte < 0x80) at += 1;
      else if (byte < 0xe0) at += 2;
      else if (byte < 0xf0) at += 3;
      else {
        at += 4;
        units += 1;
      }
    }
    this.at = at;
    this.units = units;
    return true;
  }
}

/** Checks the string with the bytes from `start` to `end` (between its quotes) of `body`, which is UTF-8, as JSON.parse would; undefined when it is invalid. */
export function readLongString(body: Buffer, kind: LongStringKind, start: number, end: number): LongString | undefined {
  const walk = new StringWalk(body, start);
  if (kind === 'text' && !walk.on(end, HEAD_UNITS)) return undefined;
  const headEnd = walk.at;
  // With escapes, the head may already reach beyond this point.
  if (!walk.on(kind === 'text' ? end - TAIL_BYTES : end)) return undefined;
  const tailStart = walk.at;
  return walk.on(end) ? { kind, start, end, headEnd, tailStart, units: walk.units } : undefined;
}
