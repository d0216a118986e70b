/** What JSON of a provider's may hold before it is parsed: parsing cannot be left off in the middle, and holds the event loop for all others. */

export interface JsonBounds {
  /** Values at all levels. */
  readonly values: number;
  /** Escapes in strings: each takes as long as a dozen letters. */
  readonly escapes: number;
  /** Bytes outside of strings. */
  readonly bareBytes: number;
}

/** One event of a stream. With the probabilities of 20 tokens in the place of each, 2,000 tokens at once: no host writes as many. */
export const EVENT_BOUNDS: JsonBounds = { values: 400_000, escapes: 1_000_000, bareBytes: 4_194_304 };

/** A whole answer from an address that an account gave: 5,000 tokens with such probabilities. */
export const STRANGERS_ANSWER_BOUNDS: JsonBounds = { values: 1_000_000, escapes: 1_000_000, bareBytes: 16_777_216 };

/** A whole answer of the operator's providers: twice 20,000 tokens with such probabilities. Twenty million lists, which 64 MiB hold, would take a small process all its memory. */
export const ANSWER_BOUNDS: JsonBounds = { values: 8_000_000, escapes: Infinity, bareBytes: Infinity };

const QUOTE = 34;
const COMMA = 44;
const OPEN_ARRAY = 91;
const BACKSLASH = 92;
const OPEN_OBJECT = 123;
/** Bytes of a string that are looked at one by one before the native search takes over: it costs more to start than a short loop. */
const PLAIN_BYTES = 32;

/** Where one byte stands next; no byte is searched through twice, however often that is asked. */
class Finder {
  private found = -1;

  constructor(
    private readonly bytes: Buffer,
    private readonly byte: number,
  ) {}

  /** From `at` on; Infinity = nowhere. Asked for ever later places. */
  next(at: number): number {
    if (this.found < at) {
      const found = this.bytes.indexOf(this.byte, at);
      this.found = found === -1 ? Infinity : found;
    }
    return this.found;
  }
}

/** Strings of a text, and the escapes in them. */
class Strings {
  escapes = 0;
  private readonly quotes: Finder;
  private readonly backslashes: Finder;

  constructor(
    private readonly bytes: Buffer,
    private readonly escapesMax: number,
  ) {
    this.quotes = new Finder(bytes, QUOTE);
    this.backslashes = new Finder(bytes, BACKSLASH);
  }

  /** One past the closing quote of the string whose opening quote is at `from`; `to` or beyond where there is none, or there are too many escapes. */
  skip(from: number, to: number): number {
    const { bytes } = this;
    let plain = 0;
    let at = from + 1;
    while (at < to) {
      const byte = bytes[at] as number;
      if (byte === QUOTE) return at + 1;
      if (byte === BACKSLASH) {
        this.escapes += 1;
        if (this.escapes > this.escapesMax) return to;
        at += 2;
        plain = 0;
      } else if (plain === PLAIN_BYTES) {
        at = Math.min(this.quotes.next(at), this.backslashes.next(at));
        plain = 0;
      } else {
        at += 1;
        plain += 1;
      }
    }
    return at;
  }
}

/** True where it is little work to parse `bytes` from `from` up to `to`. Says nothing of whether they are JSON. */
export function isWithin(bytes: Buffer, from: number, to: number, { values, escapes, bareBytes }: JsonBounds): boolean {
  // No value and no escape is shorter than a byte: nearly every event is too short to be looked at.
  if (to - from <= values) return true;
  const strings = new Strings(bytes, escapes);
  let valuesLeft = values - 1;
  let bareLeft = bareBytes;
  for (let at = from; at < to; ) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) at = strings.skip(at, to);
    else {
      // A value is the first of its list or object, or stands behind a comma.
      if (byte === COMMA || byte === OPEN_ARRAY || byte === OPEN_OBJECT) valuesLeft -= 1;
      bareLeft -= 1;
      if (valuesLeft < 0 || bareLeft < 0) return false;
      at += 1;
    }
  }
  return strings.escapes <= escapes;
}
