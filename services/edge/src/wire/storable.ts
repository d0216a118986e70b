/** What a client sends to be stored or looked up: no store of ours can hold a NUL character or half a surrogate pair, so it is the client's mistake. */
import { isStorableText } from '@signalbox/kernel/storable-text';

/** True when path and query can be decoded, and the query holds no NUL. One in the path is part of an id that nothing has. */
export function isReadableUrl(url: string): boolean {
  const query = url.indexOf('?');
  try {
    return decodeURIComponent(url) !== '' && (query < 0 || !decodeURIComponent(url.slice(query)).includes('\0'));
  } catch {
    return false;
  }
}

/** False when a key or a text of parsed JSON, at any depth, holds a NUL or a surrogate without its other half. Recursive: for JSON whose depth is bounded. */
export function isStorable(value: unknown): boolean {
  if (typeof value === 'string') return isStorableText(value);
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([key, inner]) => isStorableText(key) && isStorable(inner));
}
