/**
 * HalfSipHash-1-3 under a random key of this process: a client does not know the key, and so cannot choose texts with equal
 * hashes, which would make a hash table take quadratic time (J.-P. Aumasson and D. J. Bernstein, SipHash, INDOCRYPT 2012).
 */
import { randomBytes } from 'node:crypto';

const secret = randomBytes(8);
const KEY_LOW = secret.readInt32LE(0);
const KEY_HIGH = secret.readInt32LE(4);

/** The signed 32-bit hash of `bytes` from `start` up to `end`. */
export function secretHash(bytes: Uint8Array, start: number, end: number): number {
  let v0 = KEY_LOW;
  let v1 = KEY_HIGH;
  let v2 = 0x6c796765 ^ KEY_LOW;
  let v3 = 0x74656462 ^ KEY_HIGH;
  const length = end - start;
  const words = length >> 2;
  // The last word has the remaining bytes and the length.
  const rounds = words + 1;
  let at = start;
  for (let i = 0; i < rounds + 3; i += 1) {
    let word = 0;
    if (i < words) {
      word = (bytes[at] as number) | ((bytes[at + 1] as number) << 8) | ((bytes[at + 2] as number) << 16) | ((bytes[at + 3] as number) << 24);
      at += 4;
    } else if (i === words) {
      word = length << 24;
      for (let shift = 0; at < end; at += 1, shift += 8) word |= (bytes[at] as number) << shift;
    } else if (i === rounds) v2 ^= 0xff;
    v3 ^= word;
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
    v0 ^= word;
  }
  return v1 ^ v3;
}
