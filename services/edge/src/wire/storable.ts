/** What a client sends to be stored or looked up: no store of ours can hold a NUL character, so it is the client's mistake. */

/** True when path and query can be decoded, and the query holds no NUL. One in the path is part of an id that nothing has. */
export function isReadableUrl(url: string): boolean {
  const query = url.indexOf('?');
  try {
    return decodeURIComponent(url) !== '' && (query < 0 || !decodeURIComponent(url.slice(query)).includes('\0'));
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
