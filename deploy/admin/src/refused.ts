/** What an answer that is no success says, for a person. */

/** Of the public door alone: here a command that is not known is `not_found`. */
const CLIENTS_DOOR = 'unknown_url';

export function whyRefused(status: number, text: string, base: string): string {
  let message = `The server answered ${status}.`;
  try {
    const parsed = JSON.parse(text) as { readonly error?: { readonly message?: unknown; readonly code?: unknown }; readonly problems?: readonly string[] };
    if (parsed.error?.code === CLIENTS_DOOR) return `What answers at ${base} is the address of clients, not the operator’s door: name its port in ADMIN_PORT or its address in ADMIN_URL.`;
    if (typeof parsed.error?.message === 'string') message = parsed.error.message;
    else if (parsed.problems !== undefined) message = parsed.problems.join('\n');
  } catch {
    // The status says it.
  }
  return status === 401 ? `${message} It is asked for at ${base}.` : message;
}
