/** What a client sends to be stored or looked up: no store of ours can hold a NUL character, so it is the client's mistake. */

/** True when the path and the query can be decoded, and hold no NUL. */
export function isReadableUrl(url: string): boolean {
  try {
    return !decodeURIComponent(url).includes('\0');
  } catch {
    return false;
  }
}

/** True when a key or a text of parsed JSON, at any depth, holds a NUL. Recursive: for JSON whose depth is bounded. */
export function holdsNul(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('\0');
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([key, inner]) => key.includes('\0') || holdsNul(inner));
}
