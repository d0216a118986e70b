/** JSON text written by hand, where one object a row and its writer would cost more than the row. */

/** What JSON writes otherwise than it is: then, and only then, its own writer is asked. */
const ESCAPED = /["\\\u0000-\u001f\ud800-\udfff]/;

/** The text as JSON writes it. */
export function quoted(text: string): string {
  return ESCAPED.test(text) ? JSON.stringify(text) : `"${text}"`;
}
