/**
 * Framing of a stream's bytes on the connection. node:http would write each chunk in four pieces; a stream consists of many
 * small writes, and framed here each is one buffer.
 */

export interface Framing {
  /** A buffer for `length` ≥ 1 bytes of payload, with the frame around it already written. The payload ends `tail` bytes before the buffer's end. */
  allocate(length: number): Buffer;
  readonly tail: number;
  /** The text that ends the stream, after the last payload. */
  end(trailers: Readonly<Record<string, string>>): string;
}

const CR = 0x0d;
const LF = 0x0a;
const HEX = Buffer.from('0123456789abcdef');

function digitsOf(length: number): number {
  let digits = 1;
  for (let rest = length >>> 4; rest > 0; rest >>>= 4) digits += 1;
  return digits;
}

/** HTTP/1.1: the chunked transfer coding, trailers included (RFC 9112, section 7.1). Payloads below 4 GiB. */
export const CHUNKED: Framing = {
  tail: 2,
  allocate: (length) => {
    const digits = digitsOf(length);
    const bytes = Buffer.allocUnsafe(digits + length + 4);
    let rest = length;
    for (let i = digits - 1; i >= 0; i -= 1) {
      bytes[i] = HEX[rest & 15] ?? 0;
      rest >>>= 4;
    }
    bytes[digits] = CR;
    bytes[digits + 1] = LF;
    bytes[digits + 2 + length] = CR;
    bytes[digits + 3 + length] = LF;
    return bytes;
  },
  end: (trailers) => `0\r\n${Object.entries(trailers).map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`,
};

/** HTTP/1.0: the plain bytes; the end of the connection ends the stream. */
export const UNFRAMED: Framing = { tail: 0, allocate: (length) => Buffer.allocUnsafe(length), end: () => '' };
