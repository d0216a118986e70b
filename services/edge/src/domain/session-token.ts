/** The token of a dashboard's session, and what is derived from it. The token is only in the browser's cookie. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { RandomBytes } from '@signalbox/kernel/clock';

const TOKEN_BYTES = 32;
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

export function makeSessionToken(randomBytes: RandomBytes): string {
  return Buffer.from(randomBytes(TOKEN_BYTES)).toString('base64url');
}

/** Says nothing about whether there is such a session. */
export function isSessionToken(text: string): boolean {
  return TOKEN.test(text);
}

/** 32 bytes; what is stored of a session. */
export function sessionDigest(pepper: string, token: string): Buffer {
  return createHmac('sha256', pepper).update('session\0').update(token).digest();
}

/** What a page of ours sends beside its cookie: worked out from the token, which no script can read. */
export function csrfToken(pepper: string, token: string): string {
  return createHmac('sha256', pepper).update('csrf\0').update(token).digest('base64url');
}

export function isCsrfToken(pepper: string, token: string, presented: string): boolean {
  const expected = Buffer.from(csrfToken(pepper, token));
  const given = Buffer.from(presented);
  return expected.length === given.length && timingSafeEqual(expected, given);
}
