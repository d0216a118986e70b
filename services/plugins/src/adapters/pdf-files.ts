/** Fetches PDFs by URL, and caches the texts of recently read ones. */
import type { FetchFile } from '@signalbox/net-guard/fetcher';
import { isOurs } from '@signalbox/net-guard/refusal';
import type { FetchPdf, PdfCache, PdfText } from '../domain/ports.js';

const FETCH_TIMEOUT_MS = 6_000;
const CACHE_CHARS_MAX = 32_000_000;
/** Cost of a cached page besides its text, in characters. */
const PAGE_CHARS = 64;

export function createFetchPdf(fetchFile: FetchFile, bytesMax: number): FetchPdf {
  return async (url) => {
    const fetched = await fetchFile(url, { bytesMax, timeoutMs: FETCH_TIMEOUT_MS, mediaTypes: ['application/pdf', 'application/x-pdf', 'application/octet-stream', 'binary/octet-stream'] });
    if (fetched.ok) return { bytes: fetched.bytes };
    return isOurs(fetched.refusal) ? 'unavailable' : { problem: `The URL ${fetched.refusal.sentence}` };
  };
}

/** In memory; the least recently used entries are dropped first. */
export function createPdfCache(charsMax = CACHE_CHARS_MAX): PdfCache {
  const kept = new Map<string, PdfText>();
  let chars = 0;
  const sizeOf = ({ pages }: PdfText): number => pages.reduce((sum, { text }) => sum + text.length + PAGE_CHARS, PAGE_CHARS);
  const drop = (key: string): void => {
    const text = kept.get(key);
    if (text !== undefined && kept.delete(key)) chars -= sizeOf(text);
  };
  return {
    get: (key) => {
      const text = kept.get(key);
      if (text === undefined) return undefined;
      kept.delete(key);
      kept.set(key, text);
      return text;
    },
    set: (key, text) => {
      drop(key);
      kept.set(key, text);
      chars += sizeOf(text);
      for (const oldest of kept.keys()) {
        if (chars <= charsMax) break;
        drop(oldest);
      }
    },
  };
}
