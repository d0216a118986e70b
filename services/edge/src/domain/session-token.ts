/** The token of a dashboard session, and values derived from it. The token is only in the browser's cookie. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { RandomBytes } from '@signalbox/kernel/clock';

const TOKEN_BYTES = 32;
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

export function makeSessionToken(randomBytes: RandomBytes): string {
  return Buffer.from(randomBytes(TOKEN_BYTES)).toString('base64url');
}

/** Checks the form only, not whether the session exists. */
export function isSessionToken(text: string): boolean {
  return TOKEN.test(text);
}

/** 32 bytes: the form in which a session's token is stored. */
export function sessionDigest(pepper: string, token: string): Buffer {
  return createHmac('sha256', pepper).update('session\0').update(token).digest();
}

/** The token that the dashboard's pages send beside the cookie. Derived from the session token, which no script can read. */
export function csrfToken(pepper: string, token: string): string {
  return createHmac('sha256', pepper).update('csrf\0').update(token).digest('base64url');
}

export function isCsrfToken(pepper: string, token: string, presented: string): boolean {
  const expected = Buffer.from(csrfToken(pepper, token));
  const given = Buffer.from(presented);
  return expected.length === given.length && timingSafeEqual(expected, given);
}
