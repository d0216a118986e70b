/** Reads a client's JSON: one pass checks bounds and duplicate keys and finds each top-level value; only then is it parsed. */
import { isAscii, isUtf8 } from 'node:buffer';
import { KeyStack, keyText } from './json-keys.js';
import { ALL_WHOLE, LONG_STRING_BYTES, readLongString, type LongString, type LongStringKind, type WholeLengths } from './json-long-text.js';
import { parseInPieces, PIECE_BYTES, type BodyParts, type ByteRange, type ScannedJson } from './json-pieces.js';

/** Levels of nesting, the outermost object included. At most 32, since a level is one bit. Deeper input could overflow recursive code elsewhere. */
export const JSON_DEPTH_MAX = 32;
/** Values allowed in one body, at all levels. */
export const JSON_NODES_MAX = 100_000;
/** Bytes of a string that are read one by one before the native search is used. */
const PLAIN_BYTES = 32;

export type JsonScanReason = 'syntax' | 'not-object' | 'too-deep' | 'too-many-nodes' | 'duplicate-key' | 'forbidden-key' | 'bad-utf8';

export interface InvalidJson {
  readonly kind: 'invalid';
  readonly reason: JsonScanReason;
  /** The byte at which the problem was found; the body's length if it ends too soon; absent if it is not a single byte. */
  readonly atByte?: number;
  /** The duplicate or forbidden key, if it is a plain name. */
  readonly key?: string;
}

type JsonScan = ({ readonly kind: 'ok' } & BodyParts) | InvalidJson;

export interface ParsedJson {
  readonly kind: 'ok';
  readonly object: Readonly<Record<string, unknown>>;
  readonly fields: ReadonlyMap<string, ByteRange>;
  readonly wholeLengths: WholeLengths;
}

export type JsonObjectRead = ParsedJson | InvalidJson;

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

/** States: what the scanner expects next. */
const VALUE = 0;
const FIRST_KEY = 1;
const KEY = 2;
const FIRST_ITEM = 3;
const AFTER_VALUE = 4;

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

/** The byte at `index`; 0 beyond the end, a byte that valid JSON never contains. */
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
 * One past the closing quote of the string whose opening quote is at `from`; −1 when there is none. The content is checked
 * by JSON.parse later: here only a quote that is not escaped matters.
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
      // Long text without escapes: the native search is twenty times faster, but starting it costs more than a short loop.
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

/** True when an odd number of backslashes directly precedes `at`; bytes before `from` are not read. */
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

/** One stack for all scans, since a scan is synchronous. */
const keys = new KeyStack();
const NO_BODY = Buffer.alloc(0);

/** The first half of `parseJsonObject`. With `shortens`, long strings in `messages` are checked here, and only their ends are parsed. */
export function scanJsonObject(body: Buffer, shortens = false): ScannedJson | InvalidJson {
  const encoding = isAscii(body) ? 'latin1' : 'utf8';
  if (encoding === 'utf8' && !isUtf8(body)) return { kind: 'invalid', reason: 'bad-utf8' };
  keys.reset(body);
  try {
    const scan = scanObject(body, shortens);
    return scan.kind === 'invalid' ? scan : { kind: 'scanned', body, encoding, fields: scan.fields, longStrings: scan.longStrings, messageBreaks: scan.messageBreaks };
  } catch (error) {
    // A key with an invalid escape.
    if (error instanceof SyntaxError) return syntaxWithin(body, 0, body.length);
    throw error;
  } finally {
    keys.reset(NO_BODY);
  }
}

/** The second half of `parseJsonObject`. `body` must not have changed in between. */
export function parseScanned(scanned: ScannedJson): JsonObjectRead {
  const { body, encoding, fields, longStrings, messageBreaks } = scanned;
  try {
    if (longStrings.length === 0 && messageBreaks.length === 0) return { kind: 'ok', object: JSON.parse(body.toString(encoding)) as Readonly<Record<string, unknown>>, fields, wholeLengths: ALL_WHOLE };
    const { object, wholeLengths } = parseInPieces(scanned);
    return { kind: 'ok', object, fields, wholeLengths };
  } catch (error) {
    // The parsed text may be shortened or a piece, so the position is searched in the whole body.
    if (error instanceof SyntaxError) return syntaxWithin(body, 0, body.length);
    throw error;
  }
}

const syntaxAt = (atByte: number): InvalidJson => ({ kind: 'invalid', reason: 'syntax', atByte });

/** Only keys that look like field names are repeated in an error. */
const PLAIN_KEY = /^[A-Za-z_][A-Za-z0-9_]{0,31}$/;

const keyProblem = (reason: 'duplicate-key' | 'forbidden-key', atByte: number, key: string): InvalidJson => ({ kind: 'invalid', reason, atByte, ...(PLAIN_KEY.test(key) ? { key } : {}) });

/** Finds the position of the error in these bytes, which are not valid JSON, from the parser's message. It has no position if the text ends too soon. */
function syntaxWithin(body: Buffer, start: number, end: number): InvalidJson {
  const text = body.toString('utf8', start, end);
  try {
    JSON.parse(text);
  } catch (error) {
    const [, position] = / at position (\d+)/.exec(error instanceof SyntaxError ? error.message : '') ?? [];
    if (position !== undefined) return syntaxAt(start + Buffer.byteLength(text.slice(0, Number(position))));
  }
  return syntaxAt(end);
}

/**
 * Parses `body`, one JSON object in UTF-8 with at most 32 levels and 100,000 values, no key twice in any object and no key
 * `__proto__`; also returns the byte range of each top-level value. Within these bounds, which are checked first, it accepts
 * exactly what `JSON.parse` accepts. Never throws; does not recurse.
 */
export function parseJsonObject(body: Buffer, shortens = false): JsonObjectRead {
  const scanned = scanJsonObject(body, shortens);
  return scanned.kind === 'invalid' ? scanned : parseScanned(scanned);
}

/** Checks bounds and keys, and the grammar as far as needed for them. Throws SyntaxError on a key with an invalid escape. */
function scanObject(body: Buffer, shortens: boolean): JsonScan {
  const fields = new Map<string, ByteRange>();
  let longStrings = NO_LONG_STRINGS;
  let messageBreaks = NO_BREAKS;
  /** Position in `messages` after which a comma begins another piece. */
  let pieceEnd = shortens && body.length > PIECE_BYTES ? PIECE_BYTES : Infinity;
  const first = skipSpace(body, 0);
  if (at(body, first) !== OPEN_BRACE) return isJson(body) ? { kind: 'invalid', reason: 'not-object' } : syntaxAt(first);

  keys.open();
  // One bit for each level, the innermost lowest: 1 = object, 0 = array.
  let levels = 1;
  let depth = 1;
  let state = FIRST_KEY;
  let i = first + 1;
  let nodes = 1;
  let topKey = '';
  let topStart = 0;
  /** The key that was read last; for a value in an object, its key. */
  let keyStart = 0;
  let keyEnd = 0;

  for (;;) {
    i = skipSpace(body, i);
    const byte = at(body, i);
    if (state === AFTER_VALUE || (state === FIRST_KEY && byte === CLOSE_BRACE) || (state === FIRST_ITEM && byte === CLOSE_BRACKET)) {
      const inObject = (levels & 1) === 1;
      if (state === AFTER_VALUE && byte === COMMA) {
        state = inObject ? KEY : VALUE;
        if (i > pieceEnd && depth === 2 && !inObject && topKey === 'messages') {
          messageBreaks = [...messageBreaks, i];
          pieceEnd = i + PIECE_BYTES;
        }
        i += 1;
        continue;
      }
      if (byte !== (inObject ? CLOSE_BRACE : CLOSE_BRACKET)) return syntaxAt(i);
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
      if (byte !== QUOTE) return syntaxAt(i);
      const end = skipString(body, i);
      if (end === -1) return syntaxAt(body.length);
      keyStart = i + 1;
      keyEnd = end - 1;
      const verdict = keys.add(keyStart, keyEnd);
      if (verdict !== 'ok') return keyProblem(verdict, i, keyText(body, keyStart, keyEnd));
      i = skipSpace(body, end);
      if (at(body, i) !== COLON) return syntaxAt(i);
      i = skipSpace(body, i + 1);
      if (depth === 1) {
        topKey = keyText(body, keyStart, keyEnd);
        topStart = i;
      }
      state = VALUE;
      continue;
    }
    nodes += 1;
    if (nodes > JSON_NODES_MAX) return { kind: 'invalid', reason: 'too-many-nodes' };
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      if (depth >= JSON_DEPTH_MAX) return { kind: 'invalid', reason: 'too-deep', atByte: i };
      levels = (levels << 1) | (byte === OPEN_BRACE ? 1 : 0);
      depth += 1;
      if (byte === OPEN_BRACE) keys.open();
      state = byte === OPEN_BRACE ? FIRST_KEY : FIRST_ITEM;
      i += 1;
      continue;
    }
    const end = skipScalar(body, i);
    if (end === -1) return syntaxAt(byte === QUOTE ? body.length : i);
    if (shortens && end - i > LONG_STRING_BYTES + 2 && topKey === 'messages' && (levels & 1) === 1) {
      const kind = longStringKind(body, depth, keyStart, keyEnd, i);
      const long = kind === undefined ? undefined : readLongString(body, kind, i + 1, end - 1);
      if (kind !== undefined && long === undefined) return syntaxWithin(body, i, end);
      if (long !== undefined) longStrings = [...longStrings, long];
    }
    if (depth === 1) fields.set(topKey, { start: i, end });
    i = end;
    state = AFTER_VALUE;
  }
  const rest = skipSpace(body, i);
  return rest === body.length ? { kind: 'ok', fields, longStrings, messageBreaks } : syntaxAt(rest);
}

const NO_LONG_STRINGS: readonly LongString[] = [];
const NO_BREAKS: readonly number[] = [];
const MEDIA_KEYS = ['data', 'file_data'];

/** The kind of a string within `messages`, by its depth and key: text of a message or of a content part, or media in a part. Undefined = it is parsed whole. */
function longStringKind(body: Buffer, depth: number, keyStart: number, keyEnd: number, quote: number): LongStringKind | undefined {
  const key = depth === 3 || depth === 5 || depth === 6 ? body.toString('latin1', keyStart, keyEnd) : '';
  if (depth === 3) return key === 'content' ? 'text' : undefined;
  if (depth === 5) return key === 'text' ? 'text' : undefined;
  const isMedia = MEDIA_KEYS.includes(key) || (key === 'url' && body.toString('latin1', quote + 1, quote + 6).toLowerCase() === 'data:');
  return isMedia ? 'media' : undefined;
}

/** True for a single scalar, or what looks like an array, so that the error is "not an object" and not "not JSON". */
function isJson(body: Buffer): boolean {
  const start = skipSpace(body, 0);
  if (at(body, start) === OPEN_BRACKET) return true;
  const end = skipScalar(body, start);
  return end !== -1 && skipSpace(body, end) === body.length;
}
