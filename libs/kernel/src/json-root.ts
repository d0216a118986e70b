/** Checks whether a text is JSON without creating its values: those of a hostile text take a dozen times its memory, and as much more time. */

export type JsonRoot = 'object' | 'array' | 'scalar';

/** Deeper nesting is refused, since the next reader may parse it recursively. */
export const JSON_TEXT_DEPTH_MAX = 1_000;

const SPACE = 0x20;
const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const LOWER_E = 0x65;
const LOWER_F = 0x66;
const LOWER_N = 0x6e;
const LOWER_T = 0x74;
const LOWER_U = 0x75;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const HEX_DIGITS = 4;

/** Beyond the end the code is NaN, for which all these comparisons are false. */
const isDigit = (code: number): boolean => code >= ZERO && code <= NINE;
const isHex = (code: number): boolean => isDigit(code) || ((code | SPACE) >= 0x61 && (code | SPACE) <= LOWER_F);

function skipSpace(text: string, from: number): number {
  let at = from;
  for (let code = text.charCodeAt(at); code === SPACE || code === 0x0a || code === 0x0d || code === 0x09; code = text.charCodeAt(at)) at += 1;
  return at;
}

function skipDigits(text: string, from: number): number {
  let at = from;
  while (isDigit(text.charCodeAt(at))) at += 1;
  return at;
}

/** Index after the escape whose backslash is at `from`; -1 if it is not a JSON escape. */
function skipEscape(text: string, from: number): number {
  switch (text.charCodeAt(from + 1)) {
    case QUOTE:
    case BACKSLASH:
    case 0x2f:
    case 0x62:
    case LOWER_F:
    case LOWER_N:
    case 0x72:
    case LOWER_T:
      return from + 2;
    case LOWER_U:
      for (let digit = 2; digit < 2 + HEX_DIGITS; digit += 1) if (!isHex(text.charCodeAt(from + digit))) return -1;
      return from + 2 + HEX_DIGITS;
    default:
      return -1;
  }
}

/** Index after the closing quote of the string that opens at `from`; -1 if it is malformed. */
function skipString(text: string, from: number): number {
  const { length } = text;
  for (let at = from + 1; at < length; ) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    if (code < SPACE) return -1;
    at = code === BACKSLASH ? skipEscape(text, at) : at + 1;
    if (at === -1) return -1;
  }
  return -1;
}

function skipNumber(text: string, from: number): number {
  let at = text.charCodeAt(from) === MINUS ? from + 1 : from;
  const first = text.charCodeAt(at);
  if (!isDigit(first)) return -1;
  at = first === ZERO ? at + 1 : skipDigits(text, at);
  if (text.charCodeAt(at) === DOT) {
    const end = skipDigits(text, at + 1);
    if (end === at + 1) return -1;
    at = end;
  }
  if ((text.charCodeAt(at) | SPACE) === LOWER_E) {
    const sign = text.charCodeAt(at + 1);
    const start = sign === PLUS || sign === MINUS ? at + 2 : at + 1;
    at = skipDigits(text, start);
    if (at === start) return -1;
  }
  return at;
}

/** Index after the string, number or literal at `from`; -1 if it is malformed. */
function skipScalar(text: string, from: number): number {
  switch (text.charCodeAt(from)) {
    case QUOTE:
      return skipString(text, from);
    case LOWER_T:
      return text.startsWith('true', from) ? from + 4 : -1;
    case LOWER_F:
      return text.startsWith('false', from) ? from + 5 : -1;
    case LOWER_N:
      return text.startsWith('null', from) ? from + 4 : -1;
    default:
      return skipNumber(text, from);
  }
}

/** Index after the key, its colon and the space around them; -1 if there is none at `from`. */
function skipKey(text: string, from: number): number {
  const end = text.charCodeAt(from) === QUOTE ? skipString(text, from) : -1;
  const colon = end === -1 ? -1 : skipSpace(text, end);
  return colon !== -1 && text.charCodeAt(colon) === COLON ? skipSpace(text, colon + 1) : -1;
}

/** By depth: 1 = object. For the text being read; shared by all calls, since allocating it each time would take most of the time. */
const levels = new Uint8Array(JSON_TEXT_DEPTH_MAX);

/** Index after the array or object whose bracket is at `from`; -1 if it is malformed or too deep. */
function skipNested(text: string, from: number): number {
  let depth = 0;
  let at = from;
  for (;;) {
    // Before a value.
    const code = text.charCodeAt(at);
    if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      if (depth === JSON_TEXT_DEPTH_MAX) return -1;
      const isObject = code === OPEN_OBJECT;
      levels[depth] = isObject ? 1 : 0;
      depth += 1;
      at = skipSpace(text, at + 1);
      if (text.charCodeAt(at) !== (isObject ? CLOSE_OBJECT : CLOSE_ARRAY)) {
        if (isObject) at = skipKey(text, at);
        if (at === -1) return -1;
        continue;
      }
    } else {
      at = skipScalar(text, at);
      if (at === -1) return -1;
      at = skipSpace(text, at);
    }
    // After a value, or at the end of an empty array or object.
    for (;;) {
      const isObject = levels[depth - 1] === 1;
      const next = text.charCodeAt(at);
      if (next === COMMA) {
        at = skipSpace(text, at + 1);
        if (isObject) at = skipKey(text, at);
        if (at === -1) return -1;
        break;
      }
      if (next !== (isObject ? CLOSE_OBJECT : CLOSE_ARRAY)) return -1;
      depth -= 1;
      if (depth === 0) return at + 1;
      at = skipSpace(text, at + 1);
    }
  }
}

/** The kind of value that JSON.parse would return for `text`; undefined if it would throw, or nesting is deeper than JSON_TEXT_DEPTH_MAX. Reads each character once, and creates no object. */
export function jsonRootOf(text: string): JsonRoot | undefined {
  const start = skipSpace(text, 0);
  const first = text.charCodeAt(start);
  const isNested = first === OPEN_OBJECT || first === OPEN_ARRAY;
  const end = isNested ? skipNested(text, start) : skipScalar(text, start);
  if (end === -1 || skipSpace(text, end) !== text.length) return undefined;
  return first === OPEN_OBJECT ? 'object' : isNested ? 'array' : 'scalar';
}
