/** JSON strings inside bytes, looked at without being decoded. */
import { isUtf8 } from 'node:buffer';

const QUOTE = 34;
const BACKSLASH = 92;
const LOWER_U = 117;
/** `"` `\` `/` `b` `f` `n` `r` `t`. */
const SHORT_ESCAPES: ReadonlySet<number> = new Set([34, 92, 47, 98, 102, 110, 114, 116]);

function isHex(byte: number | undefined): boolean {
  return byte !== undefined && ((byte >= 48 && byte <= 57) || (byte >= 65 && byte <= 70) || (byte >= 97 && byte <= 102));
}

/** Where the JSON string that `from` is inside of ends, at its quote; -1 when it is no valid JSON string in UTF-8, or goes on beyond `to`. */
export function endOfText(bytes: Buffer, from: number, to: number): number {
  let isAscii = true;
  let at = from;
  for (; at < to; at += 1) {
    const byte = bytes[at] ?? QUOTE;
    // Most bytes are letters.
    if (byte > BACKSLASH) {
      if (byte > 0x7f) isAscii = false;
    } else if (byte === QUOTE) break;
    else if (byte < 0x20) return -1;
    else if (byte === BACKSLASH) {
      at += 1;
      const escape = bytes[at] ?? 0;
      if (escape === LOWER_U) {
        for (let digit = 1; digit <= 4; digit += 1) if (!isHex(bytes[at + digit])) return -1;
        at += 4;
      } else if (!SHORT_ESCAPES.has(escape)) return -1;
    }
  }
  if (at >= to) return -1;
  return isAscii || isUtf8(bytes.subarray(from, at)) ? at : -1;
}

/** Of a digit that `isHex` took. */
function hexOf(byte: number | undefined): number {
  const digit = byte ?? 48;
  return digit <= 57 ? digit - 48 : (digit | 0x20) - 87;
}

/** Without a text for each: an answer may consist of escapes. */
function unitAt(bytes: Buffer, at: number): number {
  return (hexOf(bytes[at]) << 12) | (hexOf(bytes[at + 1]) << 8) | (hexOf(bytes[at + 2]) << 4) | hexOf(bytes[at + 3]);
}

/** UTF-8 bytes of the text that a JSON string stands for; `from` up to `to` as `endOfText` found it. */
export function decodedBytes(bytes: Buffer, from: number, to: number): number {
  let length = to - from;
  for (let at = bytes.indexOf(BACKSLASH, from); at !== -1 && at < to; at = bytes[at] === BACKSLASH ? at : bytes.indexOf(BACKSLASH, at)) {
    if (bytes[at + 1] !== LOWER_U) {
      length -= 1;
      at += 2;
      continue;
    }
    const unit = unitAt(bytes, at + 2);
    const isPair = unit >= 0xd800 && unit < 0xdc00 && bytes[at + 6] === BACKSLASH && bytes[at + 7] === LOWER_U && (unitAt(bytes, at + 8) & 0xfc00) === 0xdc00;
    length -= isPair ? 8 : unit < 0x80 ? 5 : unit < 0x800 ? 4 : 3;
    at += isPair ? 12 : 6;
  }
  return length;
}
