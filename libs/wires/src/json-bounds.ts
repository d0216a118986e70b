/** What JSON of a provider's may hold before it is parsed: parsing cannot be left off in the middle, and holds the event loop for all others. */
import { Pieces } from '@signalbox/kernel/pieces';

export interface JsonBounds {
  /** Values at all levels. */
  readonly values: number;
  /** Members of objects: a name that no other has takes as long as twenty numbers. */
  readonly members: number;
  /** Escapes in strings: each takes as long as a dozen letters. */
  readonly escapes: number;
  /** Bytes outside of strings. */
  readonly bareBytes: number;
}

/** One event of a stream. With the probabilities of 20 tokens in the place of each, 2,000 tokens at once: no host writes as many. */
export const EVENT_BOUNDS: JsonBounds = { values: 400_000, members: 150_000, escapes: 1_000_000, bareBytes: 4_194_304 };

/** What a whole answer may hold. */
export interface AnswerBounds extends JsonBounds {
  /** Values of what stands under `logprobs` or `logprobsResult`, at any depth: clients ask for millions of them. Of them nothing else is counted but escapes. */
  readonly logprobValues: number;
}

/** A whole answer of the operator's providers: beside the probabilities of twice 20,000 tokens as much as in an event. */
export const ANSWER_BOUNDS: AnswerBounds = { values: 400_000, members: 100_000, escapes: 4_000_000, bareBytes: 8_388_608, logprobValues: 8_000_000 };

/** A whole answer from an address that an account gave: the probabilities of 5,000 tokens. */
export const STRANGERS_ANSWER_BOUNDS: AnswerBounds = { values: 400_000, members: 100_000, escapes: 1_000_000, bareBytes: 8_388_608, logprobValues: 1_000_000 };

const QUOTE = 34;
const SPACE = 32;
const COMMA = 44;
const COLON = 58;
const OPEN_ARRAY = 91;
const BACKSLASH = 92;
const CLOSE_ARRAY = 93;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;
const LOGPROBS: readonly string[] = ['logprobs', 'logprobsResult'];
const LOGPROBS_CHARS_MAX = 14;
/** Bytes of a string that are looked at one by one before the native search takes over: it costs more to start than a short loop. */
const PLAIN_BYTES = 32;

/** What is shorter holds of nothing more than it may: a member has five bytes at least. */
const EARLY_BYTES = 400_000;

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

/** From one byte up to another. */
export type Segment = readonly [from: number, to: number];

/** Of probabilities, in about as many bytes: 6 ms to read and write. */
const SEGMENT_BYTES = 262_144;

/** Counts what JSON holds as its bytes come, each looked at once. Says nothing of whether they are JSON. */
export class JsonTally {
  /** Elements of long lists of logprobs, between two commas and many at once: what may be read by itself. Ascending. */
  readonly segments: Segment[] = [];
  /** Of the list that is cut into segments; 0 = none is. */
  private cutDepth = 0;
  /** Behind the last comma at which it was cut. */
  private cutFrom: number | undefined;
  /** Bytes of earlier calls. */
  private base = 0;
  private valuesLeft: number;
  private membersLeft: number;
  private escapesLeft: number;
  private bareBytesLeft: number;
  private logprobValuesLeft: number;
  private readonly knowsLogprobs: boolean;
  private isOver = false;
  /** The bytes end within a string, of which this came before them, or its beginning. */
  private isOpen = false;
  private opening = '';
  /** And behind a backslash. */
  private isEscaping = false;
  /** What stands before: a key of LOGPROBS, or that and its colon. */
  private behind: 'key' | 'colon' | undefined;
  /** Lists and objects of logprobs that are open. */
  private depth = 0;
  private quotes = new Finder(Buffer.alloc(0), QUOTE);
  private backslashes = this.quotes;

  constructor(bounds: JsonBounds | AnswerBounds, private readonly segmentBytes = SEGMENT_BYTES) {
    // The first value stands behind nothing.
    this.valuesLeft = bounds.values - 1;
    this.membersLeft = bounds.members;
    this.escapesLeft = bounds.escapes;
    this.bareBytesLeft = bounds.bareBytes;
    this.knowsLogprobs = 'logprobValues' in bounds;
    this.logprobValuesLeft = 'logprobValues' in bounds ? bounds.logprobValues : 0;
  }

  /** False, from then on, once it is more work to parse all that was given than the bounds allow. */
  push(bytes: Buffer): boolean {
    if (this.isOver) return false;
    this.quotes = new Finder(bytes, QUOTE);
    this.backslashes = new Finder(bytes, BACKSLASH);
    let at = this.isOpen ? this.skipString(bytes, 0) : 0;
    while (at < bytes.length && !this.isOver) {
      const byte = bytes[at] as number;
      if (byte === QUOTE) at = this.skipString(bytes, at + 1);
      else {
        this.bare(byte, this.base + at);
        at += 1;
      }
    }
    this.base += bytes.length;
    return !this.isOver;
  }

  /** A byte outside of strings, that many bytes from the beginning. */
  private bare(byte: number, at: number): void {
    const isOpening = byte === OPEN_ARRAY || byte === OPEN_OBJECT;
    // A value is the first of its list or object, or stands behind a comma.
    const isValue = isOpening || byte === COMMA;
    if (this.depth > 0) {
      if (isOpening) this.open(byte);
      else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) this.shut();
      else if (byte === COMMA && this.depth === this.cutDepth) this.cut(at);
      if (isValue) this.logprobValuesLeft -= 1;
      this.isOver = this.logprobValuesLeft < 0;
      return;
    }
    if (isValue) this.valuesLeft -= 1;
    else if (byte === COLON) this.membersLeft -= 1;
    this.bareBytesLeft -= 1;
    this.isOver = this.valuesLeft < 0 || this.membersLeft < 0 || this.bareBytesLeft < 0;
    if (this.behind === undefined || byte <= SPACE) return;
    if (this.behind === 'colon' && isOpening) this.open(byte);
    this.behind = this.behind === 'key' && byte === COLON ? 'colon' : undefined;
  }

  private open(byte: number): void {
    this.depth += 1;
    // `[…]`, or `{"content":[…]}`.
    if (this.cutDepth > 0 || this.depth > 2 || byte !== OPEN_ARRAY) return;
    this.cutDepth = this.depth;
    this.cutFrom = undefined;
  }

  private shut(): void {
    this.depth -= 1;
    if (this.depth < this.cutDepth) this.cutDepth = 0;
  }

  private cut(comma: number): void {
    if (this.cutFrom === undefined) this.cutFrom = comma + 1;
    else if (comma - this.cutFrom >= this.segmentBytes) {
      this.segments.push([this.cutFrom, comma]);
      this.cutFrom = comma + 1;
    }
  }

  /** From inside a string to one past its closing quote, or to the end of the bytes. */
  private skipString(bytes: Buffer, from: number): number {
    let plain = 0;
    let at = this.isEscaping ? from + 1 : from;
    while (at < bytes.length) {
      const byte = bytes[at] as number;
      if (byte === QUOTE) {
        this.close(bytes, from, at);
        return at + 1;
      }
      if (byte === BACKSLASH) {
        this.escapesLeft -= 1;
        if (this.escapesLeft < 0) {
          this.isOver = true;
          return bytes.length;
        }
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
    this.isOpen = true;
    this.isEscaping = at === bytes.length + 1;
    // One too long is no key of LOGPROBS, whatever follows.
    if (this.opening.length <= LOGPROBS_CHARS_MAX) this.opening += bytes.toString('latin1', from, Math.min(bytes.length, from + LOGPROBS_CHARS_MAX + 1));
    return bytes.length;
  }

  private close(bytes: Buffer, from: number, to: number): void {
    this.behind = this.knowsLogprobs && this.depth === 0 && this.isLogprobs(bytes, from, to) ? 'key' : undefined;
    this.isOpen = false;
    this.isEscaping = false;
    this.opening = '';
  }

  private isLogprobs(bytes: Buffer, from: number, to: number): boolean {
    const length = this.opening.length + to - from;
    return LOGPROBS.some((key) => key.length === length && key === this.opening + bytes.toString('latin1', from, to));
  }
}

/** True where it is little work to parse `bytes` from `from` up to `to`. Says nothing of whether they are JSON. */
export function isWithin(bytes: Buffer, from: number, to: number, bounds: JsonBounds): boolean {
  // No value and no escape is shorter than a byte: nearly every event is too short to be looked at.
  return to - from <= bounds.values || new JsonTally(bounds).push(bytes.subarray(from, to));
}

/** A whole answer, counted as it comes: one that is too short to be much work is not looked at. */
export class AnswerTally {
  private readonly early = new Pieces();
  private tally: JsonTally | undefined;

  constructor(private readonly bounds: AnswerBounds) {}

  /** As of JsonTally. */
  get segments(): readonly Segment[] {
    return this.tally?.segments ?? [];
  }

  /** As of JsonTally. */
  push(bytes: Buffer): boolean {
    if (this.tally !== undefined) return this.tally.push(bytes);
    this.early.push(bytes);
    if (this.early.bytes <= EARLY_BYTES) return true;
    this.tally = new JsonTally(this.bounds);
    return this.tally.push(this.early.take());
  }
}
