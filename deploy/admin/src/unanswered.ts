/** Explains to a person why a call got no answer. */

/** undici gives up after 300 s without response headers; a call that reads the whole ledger may take twice as long. */
const GIVEN_UP = 'UND_ERR_HEADERS_TIMEOUT';

/** `error` is the rejection of fetch. */
export function whyUnanswered(error: unknown, base: string): string {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  const code = typeof cause === 'object' && cause !== null && 'code' in cause ? cause.code : undefined;
  if (code === GIVEN_UP) return `The server at ${base} has not answered within five minutes, and may still be at work. A large ledger is recounted account by account: ledger recount --account ID.`;
  return `The server does not answer at ${base}. Where it runs elsewhere, name its port in ADMIN_PORT or its address in ADMIN_URL.`;
}
