/**
 * Grammar of API keys: `sbx_live_` + 30 random base62 characters + 6 base62 characters of CRC-32 over
 * all before them, so typos and junk are refused without any store look-up.
 */
import { crc32 } from 'node:zlib';

const PREFIX = 'sbx_live_';
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_LENGTH = 30;
const CHECK_LENGTH = 6;
export const API_KEY_LENGTH = PREFIX.length + RANDOM_LENGTH + CHECK_LENGTH;
/** Characters shown in lists. */
export const API_KEY_PREFIX_LENGTH = PREFIX.length + 4;
const BASE62 = /^[0-9A-Za-z]+$/;

function checksum(text: string): string {
  let rest = crc32(text) >>> 0;
  let out = '';
  for (let i = 0; i < CHECK_LENGTH; i += 1) {
    out = ALPHABET.charAt(rest % 62) + out;
    rest = Math.floor(rest / 62);
  }
  return out;
}

/** A new secret. Bytes ≥ 248 are skipped so that every character is equally likely. */
export function makeApiKey(randomBytes: (count: number) => Uint8Array): string {
  let body = '';
  while (body.length < RANDOM_LENGTH) {
    for (const byte of randomBytes(RANDOM_LENGTH * 2)) {
      if (byte < 248 && body.length < RANDOM_LENGTH) body += ALPHABET.charAt(byte % 62);
    }
  }
  const head = PREFIX + body;
  return head + checksum(head);
}

/** True when the text has the grammar and the checksum of a key. Says nothing about whether it exists. */
export function isWellFormedApiKey(text: string): boolean {
  if (text.length !== API_KEY_LENGTH || !text.startsWith(PREFIX) || !BASE62.test(text.slice(PREFIX.length))) return false;
  return checksum(text.slice(0, -CHECK_LENGTH)) === text.slice(-CHECK_LENGTH);
}
