/**
 * Texts that most facts have in common (accounts, models, cards), each held once: what is read from the wire is a text of
 * its own every time, and facts outlive a round trip to the store.
 */
const shared = new Map<string, string>();
/** Beyond it all are held anew. */
const SHARED_MAX = 10_000;

export function shareText(text: string): string {
  const known = shared.get(text);
  if (known !== undefined) return known;
  if (shared.size >= SHARED_MAX) shared.clear();
  shared.set(text, text);
  return text;
}
