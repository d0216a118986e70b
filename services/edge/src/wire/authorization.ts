/** Reads the Authorization header from raw headers, since node:http silently accepts it twice. */

export type Authorization =
  | { readonly kind: 'ok'; readonly key: string }
  | { readonly kind: 'missing' }
  /** Only the scheme, or nothing: usually a variable that is not set. */
  | { readonly kind: 'empty' }
  | { readonly kind: 'malformed' }
  | { readonly kind: 'duplicate' };

const BEARER = /^[Bb][Ee][Aa][Rr][Ee][Rr] +([\x21-\x7e]{1,512})[ \t]*$/;
const EMPTY = /^(?:[Bb][Ee][Aa][Rr][Ee][Rr])?[ \t]*$/;

/** `rawHeaders` alternates names and values. Does not check whether the key is one of this service. */
export function readAuthorization(rawHeaders: readonly string[]): Authorization {
  let value: string | undefined;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name === undefined || name.length !== 13 || name.toLowerCase() !== 'authorization') continue;
    if (value !== undefined) return { kind: 'duplicate' };
    value = rawHeaders[i + 1];
  }
  if (value === undefined) return { kind: 'missing' };
  const key = BEARER.exec(value)?.[1];
  if (key !== undefined) return { kind: 'ok', key };
  return { kind: EMPTY.test(value) ? 'empty' : 'malformed' };
}
