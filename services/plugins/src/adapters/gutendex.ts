/** Books of a catalog with Gutendex's API, fetched into the index when they are first needed. */
import { isObject } from '@signalbox/kernel/json-object';
import type { FetchFile } from '@signalbox/net-guard/fetcher';
import { isOurs } from '@signalbox/net-guard/refusal';
import { PluginFailure } from '@signalbox/plugin-kit/plugin';
import type { BookCatalog } from '../domain/ports.js';
import { sourceOf } from '../domain/sources.js';
import { askJson } from './json-answer.js';

const TIMEOUT_MS = 4_000;
const ANSWER_BYTES_MAX = 1_024 * 1_024;
const BOOK_BYTES_MAX = 8 * 1_024 * 1_024;
/** Most books fetched for one request. */
const BOOKS_MAX = 2;
const WORDS_MAX = 6;
const STOP_WORDS = new Set('a an and are about at be by did do does for from how i in is it me of on or passage quote say says tell the that this to was what when where which who whom why will with'.split(' '));

interface Found {
  readonly id: string;
  readonly title: string;
  readonly author: string;
  readonly language: string;
  readonly textUrl: string;
}

function foundOf(value: unknown): Found | undefined {
  if (!isObject(value) || typeof value['id'] !== 'number' || typeof value['title'] !== 'string' || !isObject(value['formats'])) return undefined;
  const textUrl = Object.entries(value['formats']).find(([type, url]) => type.startsWith('text/plain') && typeof url === 'string' && !url.endsWith('.zip'))?.[1];
  const authors = Array.isArray(value['authors']) ? (value['authors'] as readonly unknown[]).flatMap((author) => (isObject(author) && typeof author['name'] === 'string' ? [author['name']] : [])) : [];
  const [language] = Array.isArray(value['languages']) ? (value['languages'] as readonly unknown[]) : [];
  return typeof textUrl !== 'string' ? undefined : { id: String(value['id']), title: value['title'], author: authors.join('; '), language: typeof language === 'string' && /^[a-z]{2}$/.test(language) ? language : '', textUrl };
}

/** `url` is the catalog's list of books, such as `https://gutendex.com/books/`. Texts are fetched through the guarded dialer, since their addresses come from the catalog. */
export function createGutendex({ url, fetchFile }: { readonly url: string; readonly fetchFile: FetchFile }): BookCatalog {
  return {
    fetchInto: async (index, { text, ids, language, signal }) => {
      const target = new URL(url);
      // Without the slash Gutendex redirects, and redirects are not followed.
      if (!target.pathname.endsWith('/')) target.pathname += '/';
      if (ids.length > 0) target.searchParams.set('ids', ids.join(','));
      else {
        const words = (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).filter((word) => !STOP_WORDS.has(word)).slice(0, WORDS_MAX);
        if (words.length === 0) return 0;
        target.searchParams.set('search', words.join(' '));
      }
      if (language !== '') target.searchParams.set('languages', language);
      const answer = await askJson({ who: 'catalog', url: target.href, signal, timeoutMs: TIMEOUT_MS, bytesMax: ANSWER_BYTES_MAX });
      const results = Array.isArray(answer['results']) ? (answer['results'] as readonly unknown[]) : [];
      let fetched = 0;
      for (const found of results.flatMap((result) => foundOf(result) ?? []).slice(0, BOOKS_MAX)) {
        const file = await fetchFile(found.textUrl, { bytesMax: BOOK_BYTES_MAX, timeoutMs: TIMEOUT_MS, mediaTypes: ['text/plain'] });
        if (signal.aborted) break;
        if (!file.ok && isOurs(file.refusal)) throw new PluginFailure('catalog_unreachable');
        if (!file.ok) continue;
        const source = sourceOf({ corpus: 'books', key: found.id, title: found.title, author: found.author, url: '', language: found.language, text: file.bytes.toString('utf8') });
        if ('problem' in source) continue;
        await index.put(source);
        fetched += 1;
      }
      return fetched;
    },
  };
}
