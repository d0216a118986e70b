/** Books of a catalog in the shape of Gutendex, fetched into the index when they are first asked for. */
import type { FetchFile } from '@signalbox/net-guard/fetcher';
import { isOurs } from '@signalbox/net-guard/refusal';
import { PluginFailure } from '@signalbox/plugin-kit/plugin';
import { request } from '@signalbox/runtime/http-client';
import type { BookCatalog } from '../domain/ports.js';
import { sourceOf } from '../domain/sources.js';

const TIMEOUT_MS = 4_000;
const ANSWER_BYTES_MAX = 1_024 * 1_024;
const BOOK_BYTES_MAX = 8 * 1_024 * 1_024;
/** Books fetched for one request. */
const BOOKS_MAX = 2;
const WORDS_MAX = 6;
const STOP_WORDS = new Set('a an and are about at be by did do does for from how i in is it me of on or passage quote say says tell the that this to was what when where which who whom why will with'.split(' '));

type Json = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);

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

async function answerOf(url: URL, signal: AbortSignal): Promise<unknown> {
  try {
    const { statusCode, body } = await request(url, { headers: { accept: 'application/json', 'user-agent': 'signalbox' }, signal, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS });
    const parts: Buffer[] = [];
    let size = 0;
    for await (const part of body as AsyncIterable<Buffer>) {
      size += part.length;
      if (size > ANSWER_BYTES_MAX) throw new PluginFailure('catalog_answer_too_large');
      parts.push(part);
    }
    if (statusCode !== 200) throw new PluginFailure('catalog_refused');
    return JSON.parse(Buffer.concat(parts).toString('utf8'));
  } catch (error) {
    throw error instanceof PluginFailure ? error : new PluginFailure('catalog_unreachable');
  }
}

/** `url` is the catalog's list of books, such as `https://gutendex.com/books/`. Texts are fetched through the guarded dialer: their addresses are the catalog's word. */
export function createGutendex({ url, fetchFile }: { readonly url: string; readonly fetchFile: FetchFile }): BookCatalog {
  return {
    fetchInto: async (index, { text, ids, language, signal }) => {
      const target = new URL(url);
      // Without it Gutendex redirects, which is not followed.
      if (!target.pathname.endsWith('/')) target.pathname += '/';
      if (ids.length > 0) target.searchParams.set('ids', ids.join(','));
      else {
        const words = (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).filter((word) => !STOP_WORDS.has(word)).slice(0, WORDS_MAX);
        if (words.length === 0) return 0;
        target.searchParams.set('search', words.join(' '));
      }
      if (language !== '') target.searchParams.set('languages', language);
      const answer = await answerOf(target, signal);
      const results = isObject(answer) && Array.isArray(answer['results']) ? (answer['results'] as readonly unknown[]) : [];
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
