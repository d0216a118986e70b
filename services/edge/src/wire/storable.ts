/** Checks text that a client sends to be stored or looked up: the databases cannot hold a NUL character or half a surrogate pair, so it is refused. */
import { isStorableText } from '@signalbox/kernel/storable-text';

/** True when path and query can be decoded, and the query has no NUL. (With one in the path, an id is simply not found.) */
export function isReadableUrl(url: string): boolean {
  const query = url.indexOf('?');
  try {
    return decodeURIComponent(url) !== '' && (query < 0 || !decodeURIComponent(url.slice(query)).includes('\0'));
  } catch {
    return false;
  }
}

/** False when a key or text of parsed JSON, at any depth, has a NUL or half a surrogate pair. Recursive, so only for JSON of bounded depth. */
export function isStorable(value: unknown): boolean {
  if (typeof value === 'string') return isStorableText(value);
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([key, inner]) => isStorableText(key) && isStorable(inner));
}
