/** Parses a scanned body: a large one in pieces, and with its long strings shortened (ADR 88). */
import { MEDIA_HEAD_CHARS, OMITTED, type LongString, type WholeLengths } from './json-long-text.js';

/**
 * Bytes of messages after which the next message begins another piece: V8 allocates a string of more than 128 kB on a page
 * of its own, which it requests from the system each time.
 */
export const PIECE_BYTES = 49_152;

/** No escape, nor part of one. */
const PLAIN = /^[\w:;,+/=-]*/;

export interface ByteRange {
  /** First byte of the value. */
  readonly start: number;
  /** One past its last byte. */
  readonly end: number;
}

/** Positions within a body. */
export interface BodyParts {
  readonly fields: ReadonlyMap<string, ByteRange>;
  /** Strings to be shortened, in order. */
  readonly longStrings: readonly LongString[];
  /** Commas between messages at which a large body is cut, in order. */
  readonly messageBreaks: readonly number[];
}

/** A body within the bounds. It may still be invalid JSON, since the content of strings is checked by the parser. */
export interface ScannedJson extends BodyParts {
  readonly kind: 'scanned';
  readonly body: Buffer;
  readonly encoding: 'latin1' | 'utf8';
}

const QUOTED_NOTHING = '""';

/** Reads the text of a scanned body from front to back. */
class Reader {
  readonly texts = new Map<string, number>();
  readonly media = new Map<string, number>();
  private nextLong = 0;

  constructor(private readonly body: Buffer, private readonly encoding: 'latin1' | 'utf8', private readonly longStrings: readonly LongString[]) {}

  /** The text between two bytes, with its long strings shortened. */
  text(from: number, to: number): string {
    let json = '';
    let at = from;
    for (let long = this.longStrings[this.nextLong]; long !== undefined && long.start < to; long = this.longStrings[this.nextLong]) {
      json += this.raw(at, long.start) + this.shortened(long);
      at = long.end;
      this.nextLong += 1;
    }
    return json + this.raw(at, to);
  }

  private raw(from: number, to: number): string {
    return this.body.toString(this.encoding, from, to);
  }

  private shortened({ kind, start, end, headEnd, tailStart, units }: LongString): string {
    if (kind === 'media') {
      const head = this.raw(start, start + MEDIA_HEAD_CHARS);
      const omitted = `${OMITTED}${String(this.media.size)};${PLAIN.exec(head)?.[0] ?? ''}`;
      this.media.set(omitted, units);
      return omitted;
    }
    const ends = this.raw(start, headEnd) + this.raw(tailStart, end);
    this.texts.set(String(JSON.parse(`"${ends}"`)), units);
    return ends;
  }
}

/** Throws SyntaxError if the body is not valid JSON. */
export function parseInPieces({ body, encoding, fields, longStrings, messageBreaks }: ScannedJson): { readonly object: Readonly<Record<string, unknown>>; readonly wholeLengths: WholeLengths } {
  const reader = new Reader(body, encoding, longStrings);
  const messages = fields.get('messages');
  if (messageBreaks.length === 0 || messages === undefined) return { object: JSON.parse(reader.text(0, body.length)) as Readonly<Record<string, unknown>>, wholeLengths: reader };
  const object = JSON.parse(`${reader.text(0, messages.start)}${QUOTED_NOTHING}${body.toString(encoding, messages.end)}`) as Record<string, unknown>;
  object['messages'] = itemsOf(reader, messages, messageBreaks);
  return { object, wholeLengths: reader };
}

/** The items of an array, parsed in pieces that end at the commas `breaks`. */
function itemsOf(reader: Reader, { start, end }: ByteRange, breaks: readonly number[]): readonly unknown[] {
  const items: unknown[] = [];
  let from = start + 1;
  for (const to of [...breaks, end - 1]) {
    for (const item of JSON.parse(`[${reader.text(from, to)}]`) as readonly unknown[]) items.push(item);
    from = to + 1;
  }
  return items;
}
