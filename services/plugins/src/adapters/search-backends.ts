/** Search services that the operator may put in the place of the built-in index. */
import { firstChars } from '@signalbox/plugin-kit/conversation';
import { PluginFailure } from '@signalbox/plugin-kit/plugin';
import type { Secret } from '@signalbox/runtime/secret';
import { request } from '@signalbox/runtime/http-client';
import type { SearchBackend, SearchQuestion, SearchResult } from '../domain/ports.js';

export type RemoteBackendName = 'searxng' | 'brave' | 'tavily';

export interface RemoteBackendOptions {
  readonly name: RemoteBackendName;
  /** Replaces the service's own address; searxng has none. */
  readonly url: string | undefined;
  readonly key: Secret | undefined;
}

const ANSWER_BYTES_MAX = 2 * 1_024 * 1_024;
const TIMEOUT_MS = 5_000;
const QUERY_CHARS_MAX = 380;
const URLS = { brave: 'https://api.search.brave.com/res/v1/web/search', tavily: 'https://api.tavily.com/search' } as const;

type Json = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Entries with an http(s) URL; a missing title is the URL. `content` names the fields to try, in order. */
function resultsOf(list: unknown, content: readonly string[]): readonly SearchResult[] {
  if (!Array.isArray(list)) return [];
  return list.filter(isObject).flatMap((entry) => {
    const { url, title } = entry;
    if (typeof url !== 'string' || !/^https?:\/\//i.test(url)) return [];
    const texts = content.flatMap((name) => {
      const value = entry[name];
      return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : typeof value === 'string' ? [value] : [];
    });
    return [{ url, title: typeof title === 'string' && title !== '' ? title : url, content: texts.join(' ').replace(/<\/?[a-z][^>]{0,100}>/gi, '') }];
  });
}

/** The words of a query that bound it to domains, for services that know no other way. */
function withDomains({ text, includeDomains, excludeDomains }: SearchQuestion): string {
  const only = includeDomains.map((domain) => `site:${domain}`).join(' OR ');
  return [firstChars(text, QUERY_CHARS_MAX), only, ...excludeDomains.map((domain) => `-site:${domain}`)].filter((part) => part !== '').join(' ');
}

async function ask(url: string, { signal, ...options }: { readonly method: 'GET' | 'POST'; readonly headers: Readonly<Record<string, string>>; readonly body?: string; readonly signal: AbortSignal }): Promise<Json> {
  let text: string;
  try {
    const { statusCode, body } = await request(url, { ...options, signal, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS });
    if (statusCode !== 200) {
      await body.dump({ limit: 16_384 });
      throw new PluginFailure(statusCode === 429 ? 'backend_rate_limited' : 'backend_refused');
    }
    const parts: Buffer[] = [];
    let size = 0;
    for await (const part of body as AsyncIterable<Buffer>) {
      size += part.length;
      if (size > ANSWER_BYTES_MAX) throw new PluginFailure('backend_answer_too_large');
      parts.push(part);
    }
    text = Buffer.concat(parts).toString('utf8');
  } catch (error) {
    throw error instanceof PluginFailure ? error : new PluginFailure('backend_unreachable');
  }
  try {
    const parsed: unknown = JSON.parse(text);
    if (isObject(parsed)) return parsed;
  } catch {
    // Said below.
  }
  throw new PluginFailure('backend_answer_unreadable');
}

export function createRemoteBackend({ name, url, key }: RemoteBackendOptions): SearchBackend {
  const accept = { accept: 'application/json', 'user-agent': 'signalbox' };
  const search = async (question: SearchQuestion): Promise<readonly SearchResult[]> => {
    const { text, limit, includeDomains, excludeDomains, signal } = question;
    switch (name) {
      case 'searxng': {
        const target = new URL(url ?? '');
        if (!target.pathname.endsWith('/search')) target.pathname = `${target.pathname.replace(/\/$/, '')}/search`;
        target.searchParams.set('q', withDomains(question));
        target.searchParams.set('format', 'json');
        const headers = key === undefined ? accept : { ...accept, authorization: `Bearer ${key.unwrap()}` };
        return resultsOf((await ask(target.href, { method: 'GET', headers, signal }))['results'], ['content']);
      }
      case 'brave': {
        const target = new URL(url ?? URLS.brave);
        target.searchParams.set('q', withDomains(question));
        target.searchParams.set('count', String(limit));
        const { web } = await ask(target.href, { method: 'GET', headers: { ...accept, 'x-subscription-token': key?.unwrap() ?? '' }, signal });
        return resultsOf(isObject(web) ? web['results'] : undefined, ['description', 'extra_snippets']);
      }
      case 'tavily': {
        const body = JSON.stringify({ query: firstChars(text, QUERY_CHARS_MAX), max_results: limit, ...(includeDomains.length === 0 ? {} : { include_domains: includeDomains }), ...(excludeDomains.length === 0 ? {} : { exclude_domains: excludeDomains }) });
        return resultsOf((await ask(url ?? URLS.tavily, { method: 'POST', headers: { ...accept, 'content-type': 'application/json', authorization: `Bearer ${key?.unwrap() ?? ''}` }, body, signal }))['results'], ['content']);
      }
    }
  };
  return { name, search };
}
