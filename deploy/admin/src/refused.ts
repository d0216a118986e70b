/** Describes an error answer for a person. */

/** Only the public API sends this code; the admin API answers `not_found` to an unknown path. */
const CLIENTS_DOOR = 'unknown_url';

export function whyRefused(status: number, text: string, base: string): string {
  let message = `The server answered ${status}.`;
  try {
    const parsed = JSON.parse(text) as { readonly error?: { readonly message?: unknown; readonly code?: unknown }; readonly problems?: readonly string[] };
    if (parsed.error?.code === CLIENTS_DOOR) return `What answers at ${base} is the address of clients, not the operator’s door: name its port in ADMIN_PORT or its address in ADMIN_URL.`;
    if (typeof parsed.error?.message === 'string') message = parsed.error.message;
    else if (parsed.problems !== undefined) message = parsed.problems.join('\n');
  } catch {
    // Not JSON: the status is all we have.
  }
  return status === 401 ? `${message} At ${base} it is the ADMIN_TOKEN that the server was started with, else the one in its DATA_DIR: set the same here.` : message;
}
