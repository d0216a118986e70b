/**
 * Long strings of a conversation, which wires move about and do not read: they go into the body as the bytes that stand in
 * the client's JSON, and a mark stands for each meanwhile. Decoded and encoded again they would be the same, in memory that
 * V8 asks the system for anew each time.
 */
import { markExactNumbers, restoreExactNumbers } from '@signalbox/kernel/exact-numbers';
import { decodedBytes } from './openai-chat/json-text.js';
import { RawJson } from './raw-json.js';
import { apartOfMedia, apartOfText, type Apart } from './string-cuts.js';

/** Bytes between the quotes from which on a string is set apart: less costs more to take out than to read. */
export const LONG_STRING_BYTES = 1_024;

interface Key {
  readonly bytes: Buffer;
  apartOf(bytes: Buffer, start: number, end: number): Apart | undefined;
}

const key = (name: string, apartOf: Key['apartOf']): Key => ({ bytes: Buffer.from(`"${name}"`), apartOf });
/** Members that hold texts, and media. */
const KEYS: readonly Key[] = [
  key('content', apartOfText),
  key('text', apartOfText),
  key('url', apartOfMedia),
  key('file_data', apartOfMedia),
  key('data', apartOfMedia),
];

/** What Unicode calls a private use: nobody writes it, and its escape can be written in one way only. */
const SIGN = '\u0091';
const SIGN_BYTES = Buffer.from(SIGN);
const SIGN_ESCAPE = Buffer.from('\\u0091');
const MARK = new RegExp(`${SIGN}(\\d+)${SIGN}`, 'g');
const BASE64_AROUND_MARK = new RegExp(`^[A-Za-z0-9+/]+${SIGN}\\d+${SIGN}[A-Za-z0-9+/]*={0,2}$`);

const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
/** Bytes that are looked at one by one before the native search takes over, which costs more to start. */
const NEAR_BYTES = 32;

const bufferOf = (bytes: Uint8Array): Buffer => (Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
const holdsSign = (bytes: Buffer): boolean => bytes.includes(SIGN_BYTES) || bytes.includes(SIGN_ESCAPE);

/** Base64 of which the middle is set apart: all of it was seen to be padded, and of the standard alphabet. */
export function isBase64SetApart(text: string): boolean {
  return BASE64_AROUND_MARK.test(text);
}

/** JSON of a text that stood in no message, such as that of a file: its signs are written as escapes, so that nothing in it is taken for a mark. */
export function unmarkedText(text: string): RawJson {
  return new RawJson(JSON.stringify(text).replaceAll(SIGN, SIGN_ESCAPE.toString()));
}

/** Where the string that `from` is inside of has its quote; -1 = it has none. */
export function endOfString(bytes: Buffer, from: number): number {
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

/** Where keys stand, asked for ever later places. None stands inside of a string: there a quote has a backslash before it. */
class KeySearch {
  /** The one that was found last. */
  found = KEYS[0] as Key;
  private readonly places = KEYS.map(() => -1);

  constructor(private readonly bytes: Buffer) {}

  /** Where the first key at `from` or later ends; Infinity = there is none. */
  next(from: number): number {
    let nearest = Infinity;
    for (let which = 0; which < KEYS.length; which += 1) {
      let place = this.places[which] as number;
      if (place < from) {
        const found = this.bytes.indexOf((KEYS[which] as Key).bytes, from);
        this.places[which] = place = found === -1 ? Infinity : found;
      }
      if (place >= nearest) continue;
      nearest = place;
      this.found = KEYS[which] as Key;
    }
    return nearest + this.found.bytes.length;
  }
}

function longStringsIn(bytes: Buffer): readonly Apart[] {
  const found: Apart[] = [];
  const keys = new KeySearch(bytes);
  let next = keys.next(0);
  while (next !== Infinity) {
    const { apartOf } = keys.found;
    const start = stringBehind(bytes, next);
    next = keys.next(next);
    // The end of most is not looked for.
    if (start === -1 || Math.min(next, bytes.length) - start < LONG_STRING_BYTES) continue;
    const end = endOfString(bytes, start);
    const apart = end - start < LONG_STRING_BYTES ? undefined : apartOf(bytes, start, end);
    if (apart !== undefined) found.push(apart);
  }
  return found;
}

export class LongStrings {
  private readonly apart: readonly Apart[];
  private readonly bytes: Buffer;
  /** The sign stands in what is told: nothing can be marked with it. */
  private readonly isSignTold: boolean;
  /** Of JSON beside the messages: some were marked, to keep their digits. */
  private hasNumbers = false;

  /** `messages` is valid JSON in UTF-8. `beside`: JSON whose strings come into the same body. */
  constructor(messages: Uint8Array, beside: readonly Uint8Array[] = []) {
    this.bytes = bufferOf(messages);
    this.isSignTold = [messages, ...beside].some((told) => holdsSign(bufferOf(told)));
    this.apart = this.bytes.length < LONG_STRING_BYTES || this.isSignTold ? [] : longStringsIn(this.bytes);
  }

  /** JSON that stood beside the messages. `write` gives numbers beyond 2^53 in it back with all their digits. */
  parseBeside(value: Uint8Array): unknown {
    const json = bufferOf(value).toString('utf8');
    const marked = this.isSignTold ? json : markExactNumbers(json);
    if (marked !== json) this.hasNumbers = true;
    return JSON.parse(marked) as unknown;
  }

  /** The messages, with a mark for what is set apart of each long string. */
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

  /** A string of those messages as it was before any of it was set apart. */
  whole(text: string): string {
    return this.apart.length === 0 ? text : text.replace(MARK, (mark, index: string) => {
      const apart = this.apart[Number(index)];
      return apart === undefined ? mark : (JSON.parse(`"${this.bytes.toString('utf8', apart.from, apart.to)}"`) as string);
    });
  }

  /** Bytes in UTF-8 of the whole of a string. */
  byteLength(text: string): number {
    let length = Buffer.byteLength(text);
    if (this.apart.length === 0) return length;
    for (const [mark, index] of text.matchAll(MARK)) {
      const apart = this.apart[Number(index)];
      if (apart !== undefined) length += decodedBytes(this.bytes.subarray(apart.from, apart.to), 0, apart.to - apart.from) - Buffer.byteLength(mark);
    }
    return length;
  }

  /** JSON text made of those messages and of what was beside them, in UTF-8, with all that was set apart in its places. Other texts in it are to be of `unmarkedText`. */
  write(json: string): Buffer {
    const written = Buffer.from(this.hasNumbers ? restoreExactNumbers(json) : json);
    if (this.apart.length === 0) return written;
    const pieces: Buffer[] = [];
    let end = 0;
    for (let at = written.indexOf(SIGN_BYTES); at !== -1; at = written.indexOf(SIGN_BYTES, end)) {
      const close = written.indexOf(SIGN_BYTES, at + SIGN_BYTES.length);
      if (close === -1) break;
      const apart = this.apart[Number(written.toString('latin1', at + SIGN_BYTES.length, close))];
      if (apart !== undefined) pieces.push(written.subarray(end, at), this.bytes.subarray(apart.from, apart.to));
      end = close + SIGN_BYTES.length;
    }
    return Buffer.concat([...pieces, written.subarray(end)]);
  }
}
