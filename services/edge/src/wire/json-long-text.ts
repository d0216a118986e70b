/**
 * Long strings of a request's messages, checked as bytes: the parser would copy each twice, into memory that it asks the
 * system for anew, and of texts nobody reads more than the ends, of media nothing but how long they are.
 */
import { randomBytes } from 'node:crypto';

/** Bytes between the quotes from which on a string is shortened: more than both ends of a text take. */
export const LONG_STRING_BYTES = 24_576;
/** UTF-16 units that a shortened text keeps at least of its beginning and of its end. */
export const HEAD_UNITS = 8_192;
export const TAIL_UNITS = 2_048;
/** An escape is six bytes for one unit, and no unit takes more. */
const TAIL_BYTES = TAIL_UNITS * 6;

const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
/** `"`, `\`, `/`, `b`, `f`, `n`, `r` and `t`. */
const PLAIN_ESCAPES = [0x22, 0x5c, 0x2f, 0x62, 0x66, 0x6e, 0x72, 0x74];

/** Begins what stands for media that were left out: nobody outside can write it, so that no other string is taken for one. */
export const OMITTED = `data:${randomBytes(16).toString('hex')}`;

export type LongStringKind = 'text' | 'media';

export interface LongString {
  readonly kind: LongStringKind;
  /** Its bytes between the quotes. */
  readonly start: number;
  readonly end: number;
  /** What is left out of a text; of media it is all. */
  readonly headEnd: number;
  readonly tailStart: number;
  /** UTF-16 units of the whole. */
  readonly units: number;
}

/** UTF-16 units of strings that were shortened, by what was parsed in their place. */
export interface WholeLengths {
  readonly texts: ReadonlyMap<string, number>;
  readonly media: ReadonlyMap<string, number>;
}

export const ALL_WHOLE: WholeLengths = { texts: new Map(), media: new Map() };

export function lengthOf(text: string, shortened: ReadonlyMap<string, number>): number {
  return shortened.size === 0 ? text.length : (shortened.get(text) ?? text.length);
}

function isHex(byte: number): boolean {
  return (byte >= 0x30 && byte <= 0x39) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66);
}

/** One past the escape at `from`; −1 when JSON has no such. */
function skipEscape(body: Buffer, from: number): number {
  const letter = body[from + 1] ?? 0;
  if (letter !== LETTER_U) return PLAIN_ESCAPES.includes(letter) ? from + 2 : -1;
  for (let i = from + 2; i < from + 6; i += 1) if (!isHex(body[i] ?? 0)) return -1;
  return from + 6;
}

/** Whether four bytes are ASCII with neither a control character nor a backslash among them. */
function isPlain(word: number): boolean {
  // In each byte the highest bit: below a space, no ASCII, or a backslash.
  return (((word - 0x20202020) | word | ((word ^ 0x5c5c5c5c) - 0x01010101)) & 0x80808080) === 0;
}

/** Walks over what a string holds, character by character, and counts. */
class StringWalk {
  units = 0;
  private readonly view: DataView;

  constructor(private readonly body: Buffer, public at: number) {
    this.view = new DataView(body.buffer, body.byteOffset, body.length);
  }

  /** To the first character at `to` or behind it, or before which there are `unitsMax`. False when something on the way is no JSON. */
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

/** Checks a string of `body`, which is UTF-8, as JSON.parse would, its bytes between the quotes given; undefined when it is no JSON. */
export function readLongString(body: Buffer, kind: LongStringKind, start: number, end: number): LongString | undefined {
  const walk = new StringWalk(body, start);
  if (kind === 'text' && !walk.on(end, HEAD_UNITS)) return undefined;
  const headEnd = walk.at;
  // Escapes alone may make a head that long.
  if (!walk.on(kind === 'text' ? end - TAIL_BYTES : end)) return undefined;
  const tailStart = walk.at;
  return walk.on(end) ? { kind, start, end, headEnd, tailStart, units: walk.units } : undefined;
}
