/** What JSON text comes to once its `\u` escapes are characters: clients that write ASCII alone send six bytes, or twelve, for one. */

const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
const ESCAPE_BYTES = 6;

/** Value of four hexadecimal digits of sound JSON. */
function unitAt(json: Buffer, from: number): number {
  let unit = 0;
  for (let i = from; i < from + 4; i += 1) {
    const digit = json[i] as number;
    // '0' to '9', else 'A' to 'F' in either case.
    unit = unit * 16 + (digit < 0x40 ? digit - 0x30 : (digit | 0x20) - 0x57);
  }
  return unit;
}

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000;

/** UTF-8 bytes of a character of one unit; half a pair alone becomes U+FFFD. */
function bytesOf(unit: number): number {
  if (unit < 0x80) return 1;
  return unit < 0x800 ? 2 : 3;
}

/** Bytes of sound JSON text in UTF-8 with each `\uXXXX` counted as the character that it stands for; all else as it stands. */
export function unescapedBytes(json: Buffer): number {
  const { length } = json;
  // Nearly no text has one, and the native search finds that out thirty times faster.
  if (!json.includes('\\u')) return length;
  let bytes = length;
  /** Where half a pair ended that still lacks its other half. */
  let highEnd = -1;
  for (let i = 0; i < length; ) {
    if (json[i] !== BACKSLASH) i += 1;
    else if (json[i + 1] !== LETTER_U) i += 2;
    else {
      const unit = unitAt(json, i + 2);
      // Both halves are four bytes: three were counted for the first.
      if (isLow(unit) && highEnd === i) bytes -= ESCAPE_BYTES - 1;
      else bytes -= ESCAPE_BYTES - bytesOf(unit);
      i += ESCAPE_BYTES;
      highEnd = isHigh(unit) ? i : -1;
    }
  }
  return bytes;
}
