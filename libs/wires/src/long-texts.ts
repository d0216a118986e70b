/**
 * Long texts of a conversation, which wires move about and do not read: they go into the body as the bytes that stand in
 * the client's JSON, and a mark stands for each meanwhile. Decoded and encoded again they would be the same, in memory that
 * V8 asks the system for anew each time.
 */
import { decodedBytes } from './openai-chat/json-text.js';

/** Bytes between the quotes from which on a text is set apart: less costs more to take out than to read. */
export const LONG_TEXT_BYTES = 1_024;
/** Bytes of a text's end that stay in their place at least: what trims a text finds there what it would find in the whole. */
const TAIL_BYTES = 64;
const ESCAPE_BYTES_MAX = 6;
/** Of one character: a pair of surrogates may be escaped. */
const CHARACTER_BYTES_MAX = 2 * ESCAPE_BYTES_MAX;
/** Names of members that hold texts. */
const KEYS: readonly Buffer[] = [Buffer.from('"content"'), Buffer.from('"text"')];

/** What Unicode calls a private use: nobody writes it, and its escape can be written in one way only. */
const SIGN = '\u0091';
const SIGN_BYTES = Buffer.from(SIGN);
const SIGN_ESCAPE = Buffer.from('\\u0091');
const MARK = new RegExp(`${SIGN}(\\d+)${SIGN}`, 'g');

const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const LOWER_U = 0x75;
const SPACE = 0x20;
/** Bytes that are looked at one by one before the native search takes over, which costs more to start. */
const NEAR_BYTES = 32;

/** Bytes of a text that are set apart: its first character stays before them, which tells whether it may be JSON, and its end behind them. */
interface Apart {
  readonly from: number;
  readonly to: number;
}

const bufferOf = (bytes: Uint8Array): Buffer => (Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
const holdsSign = (bytes: Buffer): boolean => bytes.includes(SIGN_BYTES) || bytes.includes(SIGN_ESCAPE);
const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

function escapeBytes(bytes: Buffer, at: number): number {
  return bytes[at + 1] === LOWER_U ? ESCAPE_BYTES_MAX : 2;
}

/** Whether an escape at `at` is half of a character: the first one or the second, as `half` says. */
function isSurrogate(bytes: Buffer, at: number, half: RegExp): boolean {
  return bytes[at] === BACKSLASH && bytes[at + 1] === LOWER_U && half.test(bytes.toString('latin1', at + 2, at + 4));
}

/** Where the string that `from` is inside of has its quote; -1 = it has none. */
function endOfString(bytes: Buffer, from: number): number {
  /** The first quote behind `at`, once it was searched for: of each backslash anew, that would take the square of their number. */
  let quote = -1;
  for (let at = from; at < bytes.length; ) {
    const far = Math.min(at + NEAR_BYTES, bytes.length);
    while (at < far && bytes[at] !== QUOTE && bytes[at] !== BACKSLASH) at += 1;
    if (at === far) {
      if (quote < at) quote = bytes.indexOf(QUOTE, at);
      if (quote === -1) return -1;
      const backslash = bytes.subarray(at, quote).indexOf(BACKSLASH);
      at = backslash === -1 ? quote : at + backslash;
    }
    if (bytes[at] === QUOTE) return at;
    at += 2;
  }
  return -1;
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

/** What of a string may be set apart; undefined where that would not be sure to change nothing. */
function apartOf(bytes: Buffer, start: number, end: number): Apart | undefined {
  const first = bytes[start] ?? QUOTE;
  // What no JSON begins with need not stay.
  const from = first >= 0x80 || isSurrogate(bytes, start, /^d[89ab]/i) ? start : start + (first === BACKSLASH ? escapeBytes(bytes, start) : 1);
  for (let to = end - TAIL_BYTES; to > end - TAIL_BYTES - CHARACTER_BYTES_MAX; to -= 1) {
    if (isBetweenCharacters(bytes, to, start)) return isBlank(bytes, to, end) ? undefined : { from, to };
  }
  return undefined;
}

/** Behind the quote that opens the string which is the value of the key that ends before `at`; -1 = it is no key, or its value no string. */
function stringBehind(bytes: Buffer, at: number): number {
  let next = at;
  for (const wanted of [COLON, QUOTE]) {
    while ((bytes[next] ?? QUOTE) <= SPACE) next += 1;
    if (bytes[next] !== wanted) return -1;
    next += 1;
  }
  return next;
}

/** Where the keys stand that name texts, asked for ever later places. None stands inside of a string: there a quote has a backslash before it. */
class KeySearch {
  private readonly places = KEYS.map(() => -1);

  constructor(private readonly bytes: Buffer) {}

  /** Behind the first key at `from` or later; Infinity = there is none. */
  behindNext(from: number): number {
    let behind = Infinity;
    for (let which = 0; which < KEYS.length; which += 1) {
      const key = KEYS[which] as Buffer;
      let place = this.places[which] as number;
      if (place < from) {
        const found = this.bytes.indexOf(key, from);
        this.places[which] = place = found === -1 ? Infinity : found;
      }
      behind = Math.min(behind, place + key.length);
    }
    return behind;
  }
}

function longTextsIn(bytes: Buffer): readonly Apart[] {
  const found: Apart[] = [];
  const keys = new KeySearch(bytes);
  let next = keys.behindNext(0);
  while (next !== Infinity) {
    const start = stringBehind(bytes, next);
    next = keys.behindNext(next);
    // The end of most is not looked for.
    if (start === -1 || Math.min(next, bytes.length) - start < LONG_TEXT_BYTES) continue;
    const end = endOfString(bytes, start);
    const apart = end - start < LONG_TEXT_BYTES ? undefined : apartOf(bytes, start, end);
    if (apart !== undefined) found.push(apart);
  }
  return found;
}

export class LongTexts {
  private readonly apart: readonly Apart[];
  private readonly bytes: Buffer;

  /** `messages` is valid JSON in UTF-8. `beside`: JSON whose texts come into the same body. */
  constructor(messages: Uint8Array, beside: readonly Uint8Array[] = []) {
    this.bytes = bufferOf(messages);
    this.apart = this.bytes.length < LONG_TEXT_BYTES || [messages, ...beside].some((told) => holdsSign(bufferOf(told))) ? [] : longTextsIn(this.bytes);
  }

  /** The messages, with a mark for what is set apart of each long text. */
  parse(): unknown {
    const { bytes, apart } = this;
    let json = '';
    let at = 0;
    apart.forEach(({ from, to }, index) => {
      json += `${bytes.toString('utf8', at, from)}${SIGN}${String(index)}${SIGN}`;
      at = to;
    });
    return JSON.parse(json + bytes.toString('utf8', at)) as unknown;
  }

  /** A text of those messages as it was before any of it was set apart. */
  whole(text: string): string {
    return this.apart.length === 0 ? text : text.replace(MARK, (mark, index: string) => {
      const apart = this.apart[Number(index)];
      return apart === undefined ? mark : (JSON.parse(`"${this.bytes.toString('utf8', apart.from, apart.to)}"`) as string);
    });
  }

  /** Bytes in UTF-8 of the whole of a text. */
  byteLength(text: string): number {
    let length = Buffer.byteLength(text);
    if (this.apart.length === 0) return length;
    for (const [mark, index] of text.matchAll(MARK)) {
      const apart = this.apart[Number(index)];
      if (apart !== undefined) length += decodedBytes(this.bytes.subarray(apart.from, apart.to), 0, apart.to - apart.from) - Buffer.byteLength(mark);
    }
    return length;
  }

  /** JSON text made of those messages, in UTF-8, with all that was set apart in its places. */
  write(json: string): Buffer {
    const written = Buffer.from(json);
    if (this.apart.length === 0) return written;
    const pieces: Buffer[] = [];
    let end = 0;
    for (let at = written.indexOf(SIGN_BYTES); at !== -1; at = written.indexOf(SIGN_BYTES, end)) {
      const close = written.indexOf(SIGN_BYTES, at + SIGN_BYTES.length);
      const apart = this.apart[Number(written.toString('latin1', at + SIGN_BYTES.length, close))];
      if (apart !== undefined) pieces.push(written.subarray(end, at), this.bytes.subarray(apart.from, apart.to));
      end = close + SIGN_BYTES.length;
    }
    return Buffer.concat([...pieces, written.subarray(end)]);
  }
}
