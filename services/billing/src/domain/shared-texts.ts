/**
 * Interns texts that many facts have in common (accounts, models, cards). Each text decoded from a message is a new string, and
 * facts are held for a round trip to the store.
 */
const shared = new Map<string, string>();
/** Beyond this many, the table is cleared. */
const SHARED_MAX = 10_000;

export function shareText(text: string): string {
  const known = shared.get(text);
  if (known !== undefined) return known;
  if (shared.size >= SHARED_MAX) shared.clear();
  shared.set(text, text);
  return text;
}
