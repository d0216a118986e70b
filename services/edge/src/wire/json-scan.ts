/** A client's JSON: one pass for bounds, duplicate keys and where each top-level value lies, and only then the parser. */
import { isAscii, isUtf8 } from 'node:buffer';
import { secretHash } from './secret-hash.js';

/** Nesting allowed, the outermost object counted; at most 32, a bit a level. Deeper input could overflow recursive code behind us. */
export const JSON_DEPTH_MAX = 32;
/** Values allowed in one body, at all levels. */
export const JSON_NODES_MAX = 100_000;
/** Bytes of a string that are looked at one by one before the native search takes over. */
const PLAIN_BYTES = 32;
/** An object with more keys finds them by a hash: compared one by one they would cost the square of their number. */
const LINEAR_KEYS_MAX = 16;

export interface ByteRange {
  /** First byte of the value. */
  readonly start: number;
  /** One past its last byte. */
  readonly end: number;
}

export type JsonScanReason = 'syntax' | 'not-object' | 'too-deep' | 'too-many-nodes' | 'duplicate-key' | 'forbidden-key' | 'bad-utf8';

interface InvalidJson {
  readonly kind: 'invalid';
  readonly reason: JsonScanReason;
}

type JsonScan = { readonly kind: 'ok'; readonly fields: ReadonlyMap<string, ByteRange> } | InvalidJson;

export type JsonObjectRead = { readonly kind: 'ok'; readonly object: Readonly<Record<string, unknown>>; readonly fields: ReadonlyMap<string, ByteRange> } | InvalidJson;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const MINUS = 0x2d;
const PLUS = 0x2b;
const DOT = 0x2e;
const ZERO = 0x30;

/** What the scanner stands before. */
const VALUE = 0;
const FIRST_KEY = 1;
const KEY = 2;
const FIRST_ITEM = 3;
const AFTER_VALUE = 4;

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

/** Zero beyond the end: no grammar of JSON has a zero byte. */
function at(body: Buffer, index: number): number {
  return index < body.length ? (body[index] as number) : 0;
}

function skipSpace(body: Buffer, from: number): number {
  let i = from;
  for (;;) {
    const byte = at(body, i);
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return i;
    i += 1;
  }
}

/**
 * One past the closing quote of the string whose opening quote is at `from`; −1 when there is none. What stands between
 * is left to JSON.parse: only a quote that is not escaped matters here.
 */
function skipString(body: Buffer, from: number): number {
  const { length } = body;
  let plain = 0;
  let i = from + 1;
  while (i < length) {
    const byte = body[i] as number;
    if (byte === QUOTE) return i + 1;
    if (byte === BACKSLASH) {
      i += 2;
      plain = 0;
    } else if (plain === PLAIN_BYTES) {
      // Long text without escapes: the native search is twenty times faster, but costs more to start than a short loop.
      const quote = body.indexOf(QUOTE, i);
      if (quote === -1) return -1;
      if (!isEscaped(body, i, quote)) return quote + 1;
      i = quote + 1;
      plain = 0;
    } else {
      i += 1;
      plain += 1;
    }
  }
  return -1;
}

/** True when an odd number of backslashes stands before `at`, none of them before `from`. */
function isEscaped(body: Buffer, from: number, at: number): boolean {
  let first = at;
  while (first > from && body[first - 1] === BACKSLASH) first -= 1;
  return (at - first) % 2 === 1;
}

function skipDigits(body: Buffer, from: number): number {
  let i = from;
  while (isDigit(at(body, i))) i += 1;
  return i;
}

/** One past the number at `from`; −1 when it is malformed. */
function skipNumber(body: Buffer, from: number): number {
  let i = at(body, from) === MINUS ? from + 1 : from;
  if (!isDigit(at(body, i))) return -1;
  i = at(body, i) === ZERO ? i + 1 : skipDigits(body, i);
  if (at(body, i) === DOT) {
    const end = skipDigits(body, i + 1);
    if (end === i + 1) return -1;
    i = end;
  }
  if ((at(body, i) | 0x20) === 0x65) {
    const sign = at(body, i + 1);
    const start = sign === PLUS || sign === MINUS ? i + 2 : i + 1;
    const end = skipDigits(body, start);
    if (end === start) return -1;
    i = end;
  }
  return i;
}

/** One past the number, string or literal at `from`; −1 when it is malformed. */
function skipScalar(body: Buffer, from: number): number {
  switch (at(body, from)) {
    case QUOTE: return skipString(body, from);
    case 0x74: return isWord(body, from, 'true') ? from + 4 : -1;
    case 0x66: return isWord(body, from, 'false') ? from + 5 : -1;
    case 0x6e: return isWord(body, from, 'null') ? from + 4 : -1;
    default: return skipNumber(body, from);
  }
}

function isWord(body: Buffer, from: number, word: string): boolean {
  for (let i = 0; i < word.length; i += 1) if (at(body, from + i) !== word.charCodeAt(i)) return false;
  return true;
}

/** The key between its quotes, escapes resolved. Throws SyntaxError on a wrong escape. */
function keyText(body: Buffer, start: number, end: number): string {
  const raw = body.toString('utf8', start, end);
  return raw.includes('\\') ? String(JSON.parse(`"${raw}"`)) : raw;
}

/** FNV-1a of the key's bytes; keys with escapes, which one text may spell in many ways, all hash to 0. */
function keyHash(body: Buffer, start: number, end: number): number {
  let hash = 0x811c9dc5 | 0;
  for (let i = start; i < end; i += 1) {
    const byte = body[i] as number;
    if (byte === BACKSLASH) return 0;
    hash = Math.imul(hash ^ byte, 0x01000193);
  }
  return hash | 1;
}

const NO_BODY = Buffer.alloc(0);
const FORBIDDEN = '__proto__';
const FORBIDDEN_HASH = keyHash(Buffer.from(FORBIDDEN), 0, FORBIDDEN.length);

/** Entries that are kept from one body to the next. */
const KEPT_KEYS = 1_024;

type KeyVerdict = 'ok' | 'duplicate-key' | 'forbidden-key';

/**
 * Keys of all open objects, innermost last: hashes and ranges, so that an ordinary key costs no string. What lies beyond
 * `size` and `depth` is of objects that are closed: cutting a list costs more than all else that an object's end does.
 */
class KeyStack {
  private body: Buffer = NO_BODY;
  private size = 0;
  private hashes: number[] = [];
  private starts: number[] = [];
  private ends: number[] = [];
  /** Of keys with escapes, and of those that were compared with one; each is made once, however many keys are compared with it. */
  private texts: (string | undefined)[] = [];
  private depth = 0;
  private readonly bases: number[] = [];
  private readonly wide: (WideObject | undefined)[] = [];
  /** Escaped keys in any open or closed object: from the first on, texts are compared. */
  private hasEscapes = false;
  private hasTexts = false;

  /** Empties the stack for another body, or with an empty one lets go of the last. */
  reset(body: Buffer): void {
    this.body = body;
    while (this.depth > 0) this.close();
    this.size = 0;
    if (this.hashes.length > KEPT_KEYS) {
      this.hashes = [];
      this.starts = [];
      this.ends = [];
    }
    if (this.hasTexts) this.texts = [];
    this.hasTexts = false;
    this.hasEscapes = false;
  }

  open(): void {
    this.bases[this.depth] = this.size;
    this.wide[this.depth] = undefined;
    this.depth += 1;
  }

  close(): void {
    this.depth -= 1;
    this.wide[this.depth] = undefined;
    this.size = this.bases[this.depth] ?? 0;
  }

  /** Throws SyntaxError on a wrong escape. */
  add(start: number, end: number): KeyVerdict {
    const { body, size } = this;
    const hash = keyHash(body, start, end);
    let text: string | undefined;
    if (hash === 0) {
      this.hasEscapes = true;
      this.hasTexts = true;
      text = keyText(body, start, end);
      if (text === FORBIDDEN) return 'forbidden-key';
    } else if (hash === FORBIDDEN_HASH && end - start === FORBIDDEN.length && keyText(body, start, end) === FORBIDDEN) return 'forbidden-key';
    this.texts[size] = text;
    this.starts[size] = start;
    this.ends[size] = end;
    const object = this.depth - 1;
    const base = this.bases[object] ?? 0;
    const wide = this.wide[object];
    if (wide === undefined) {
      for (let i = base; i < size; i += 1) {
        if (!this.hasEscapes && this.hashes[i] !== hash) continue;
        if (this.isSame(i, size)) return 'duplicate-key';
      }
      this.hashes[size] = hash;
      if (size + 1 - base > LINEAR_KEYS_MAX) this.widen(object, base);
    } else if (!wide.add(size, this.secretHash(size))) return 'duplicate-key';
    this.size = size + 1;
    return 'ok';
  }

  /** From here on the object's keys are found by their hash. */
  private widen(object: number, base: number): void {
    const wide = new WideObject((one, other) => this.isSame(one, other));
    this.wide[object] = wide;
    for (let i = base; i <= this.size; i += 1) wide.add(i, this.secretHash(i));
  }

  private secretHash(index: number): number {
    const text = this.hasEscapes ? this.texts[index] : undefined;
    if (text === undefined) return secretHash(this.body, this.starts[index] ?? 0, this.ends[index] ?? 0);
    const bytes = Buffer.from(text);
    return secretHash(bytes, 0, bytes.length);
  }

  /** Whether two keys are one. */
  private isSame(one: number, other: number): boolean {
    if (this.hasEscapes) {
      this.hasTexts = true;
      return this.textAt(one) === this.textAt(other);
    }
    const { body } = this;
    const start = this.starts[one] ?? 0;
    const from = this.starts[other] ?? 0;
    const length = (this.ends[one] ?? 0) - start;
    if (length !== (this.ends[other] ?? 0) - from) return false;
    for (let i = 0; i < length; i += 1) if (body[start + i] !== body[from + i]) return false;
    return true;
  }

  private textAt(index: number): string {
    return (this.texts[index] ??= keyText(this.body, this.starts[index] ?? 0, this.ends[index] ?? 0));
  }
}

/** Keys of an object with many, by their secret hash: open addressing, at most half full. */
class WideObject {
  /** Places of keys in the stack, 0 = free, else one more. */
  private places = new Int32Array(64);
  private hashes = new Int32Array(64);
  private count = 0;

  constructor(private readonly isSame: (one: number, other: number) => boolean) {}

  /** False when it has the key already. */
  add(place: number, hash: number): boolean {
    const mask = this.places.length - 1;
    let slot = hash & mask;
    for (let held = this.places[slot] ?? 0; held !== 0; held = this.places[slot] ?? 0) {
      if (this.hashes[slot] === hash && this.isSame(held - 1, place)) return false;
      slot = (slot + 1) & mask;
    }
    this.places[slot] = place + 1;
    this.hashes[slot] = hash;
    this.count += 1;
    if (this.count * 2 > this.places.length) this.grow();
    return true;
  }

  private grow(): void {
    const { places, hashes } = this;
    const mask = places.length * 4 - 1;
    this.places = new Int32Array(places.length * 4);
    this.hashes = new Int32Array(places.length * 4);
    for (let i = 0; i < places.length; i += 1) {
      const place = places[i] ?? 0;
      if (place === 0) continue;
      const hash = hashes[i] ?? 0;
      let slot = hash & mask;
      while (this.places[slot] !== 0) slot = (slot + 1) & mask;
      this.places[slot] = place;
      this.hashes[slot] = hash;
    }
  }
}

/** A scan runs to its end before the next one starts: one stack serves all. */
const keys = new KeyStack();

/** A body within the bounds, which may still be no JSON: what the strings hold is left to the parser. */
export interface ScannedJson {
  readonly kind: 'scanned';
  readonly body: Buffer;
  readonly encoding: 'latin1' | 'utf8';
  readonly fields: ReadonlyMap<string, ByteRange>;
}

/** The first half of `parseJsonObject`. */
export function scanJsonObject(body: Buffer): ScannedJson | InvalidJson {
  const encoding = isAscii(body) ? 'latin1' : 'utf8';
  if (encoding === 'utf8' && !isUtf8(body)) return { kind: 'invalid', reason: 'bad-utf8' };
  keys.reset(body);
  try {
    const scan = scanObject(body);
    return scan.kind === 'invalid' ? scan : { kind: 'scanned', body, encoding, fields: scan.fields };
  } catch (error) {
    if (error instanceof SyntaxError) return { kind: 'invalid', reason: 'syntax' };
    throw error;
  } finally {
    keys.reset(NO_BODY);
  }
}

/** The second half: nothing of `body` may have changed in between. */
export function parseScanned({ body, encoding, fields }: ScannedJson): JsonObjectRead {
  try {
    return { kind: 'ok', object: JSON.parse(body.toString(encoding)) as Readonly<Record<string, unknown>>, fields };
  } catch (error) {
    if (error instanceof SyntaxError) return { kind: 'invalid', reason: 'syntax' };
    throw error;
  }
}

/**
 * Parses `body`, one JSON object in UTF-8, at most 32 deep and 100,000 values large, with no key twice in any object and
 * no key `__proto__`; answers the byte range of each top-level value beside it. Accepts exactly what `JSON.parse`
 * accepts within these bounds, which are checked before it runs. Never throws; does not recurse.
 */
export function parseJsonObject(body: Buffer): JsonObjectRead {
  const scanned = scanJsonObject(body);
  return scanned.kind === 'invalid' ? scanned : parseScanned(scanned);
}

/** The bounds and the keys, and the grammar as far as they need it; throws SyntaxError on a key with a wrong escape. */

function scanObject(body: Buffer): JsonScan {
  const fields = new Map<string, ByteRange>();
  const first = skipSpace(body, 0);
  if (at(body, first) !== OPEN_BRACE) return { kind: 'invalid', reason: isJson(body) ? 'not-object' : 'syntax' };

  keys.open();
  // One bit a level, the innermost lowest: 1 = object.
  let levels = 1;
  let depth = 1;
  let state = FIRST_KEY;
  let i = first + 1;
  let nodes = 1;
  let topKey = '';
  let topStart = 0;
  const syntax = { kind: 'invalid', reason: 'syntax' } as const;

  for (;;) {
    i = skipSpace(body, i);
    const byte = at(body, i);
    if (state === AFTER_VALUE || (state === FIRST_KEY && byte === CLOSE_BRACE) || (state === FIRST_ITEM && byte === CLOSE_BRACKET)) {
      const inObject = (levels & 1) === 1;
      if (state === AFTER_VALUE && byte === COMMA) {
        state = inObject ? KEY : VALUE;
        i += 1;
        continue;
      }
      if (byte !== (inObject ? CLOSE_BRACE : CLOSE_BRACKET)) return syntax;
      i += 1;
      if (inObject) keys.close();
      levels >>>= 1;
      depth -= 1;
      if (depth === 0) break;
      if (depth === 1) fields.set(topKey, { start: topStart, end: i });
      state = AFTER_VALUE;
      continue;
    }
    if (state === FIRST_KEY || state === KEY) {
      if (byte !== QUOTE) return syntax;
      const end = skipString(body, i);
      if (end === -1) return syntax;
      const keyStart = i + 1;
      const verdict = keys.add(keyStart, end - 1);
      if (verdict !== 'ok') return { kind: 'invalid', reason: verdict };
      i = skipSpace(body, end);
      if (at(body, i) !== COLON) return syntax;
      i = skipSpace(body, i + 1);
      if (depth === 1) {
        topKey = keyText(body, keyStart, end - 1);
        topStart = i;
      }
      state = VALUE;
      continue;
    }
    nodes += 1;
    if (nodes > JSON_NODES_MAX) return { kind: 'invalid', reason: 'too-many-nodes' };
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      if (depth >= JSON_DEPTH_MAX) return { kind: 'invalid', reason: 'too-deep' };
      levels = (levels << 1) | (byte === OPEN_BRACE ? 1 : 0);
      depth += 1;
      if (byte === OPEN_BRACE) keys.open();
      state = byte === OPEN_BRACE ? FIRST_KEY : FIRST_ITEM;
      i += 1;
      continue;
    }
    const end = skipScalar(body, i);
    if (end === -1) return syntax;
    if (depth === 1) fields.set(topKey, { start: i, end });
    i = end;
    state = AFTER_VALUE;
  }
  return skipSpace(body, i) === body.length ? { kind: 'ok', fields } : syntax;
}

/** True for a scalar alone, or what looks like an array: enough to say "not an object" rather than "not JSON". */
function isJson(body: Buffer): boolean {
  const start = skipSpace(body, 0);
  if (at(body, start) === OPEN_BRACKET) return true;
  const end = skipScalar(body, start);
  return end !== -1 && skipSpace(body, end) === body.length;
}
