/** Search services that the operator may use instead of the built-in index. */
import { isObject, type JsonObject } from '@signalbox/kernel/json-object';
import { firstChars } from '@signalbox/plugin-kit/conversation';
import type { Secret } from '@signalbox/runtime/secret';
import { askJson, type JsonQuestion } from './json-answer.js';
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

/** Reads the entries that have an http(s) URL, which replaces a missing title. `content` names the fields to try, in order. */
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

/** Adds search operators that restrict the query to domains, for services without a parameter for that. */
function withDomains({ text, includeDomains, excludeDomains }: SearchQuestion): string {
  const only = includeDomains.map((domain) => `site:${domain}`).join(' OR ');
  return [firstChars(text, QUERY_CHARS_MAX), only, ...excludeDomains.map((domain) => `-site:${domain}`)].filter((part) => part !== '').join(' ');
}

export function createRemoteBackend({ name, url, key }: RemoteBackendOptions): SearchBackend {
  const ask = (question: Pick<JsonQuestion, 'url' | 'method' | 'headers' | 'body' | 'signal'>): Promise<JsonObject> => askJson({ who: 'backend', timeoutMs: TIMEOUT_MS, bytesMax: ANSWER_BYTES_MAX, ...question });
  const search = async (question: SearchQuestion): Promise<readonly SearchResult[]> => {
    const { text, limit, includeDomains, excludeDomains, signal } = question;
    switch (name) {
      case 'searxng': {
        const target = new URL(url ?? '');
        if (!target.pathname.endsWith('/search')) target.pathname = `${target.pathname.replace(/\/$/, '')}/search`;
        target.searchParams.set('q', withDomains(question));
        target.searchParams.set('format', 'json');
        const headers = key === undefined ? {} : { authorization: `Bearer ${key.unwrap()}` };
        return resultsOf((await ask({ url: target.href, headers, signal }))['results'], ['content']);
      }
      case 'brave': {
        const target = new URL(url ?? URLS.brave);
        target.searchParams.set('q', withDomains(question));
        target.searchParams.set('count', String(limit));
        const { web } = await ask({ url: target.href, headers: { 'x-subscription-token': key?.unwrap() ?? '' }, signal });
        return resultsOf(isObject(web) ? web['results'] : undefined, ['description', 'extra_snippets']);
      }
      case 'tavily': {
        const body = JSON.stringify({ query: firstChars(text, QUERY_CHARS_MAX), max_results: limit, ...(includeDomains.length === 0 ? {} : { include_domains: includeDomains }), ...(excludeDomains.length === 0 ? {} : { exclude_domains: excludeDomains }) });
        return resultsOf((await ask({ url: url ?? URLS.tavily, method: 'POST', headers: { 'content-type': 'application/json', authorization: `Bearer ${key?.unwrap() ?? ''}` }, body, signal }))['results'], ['content']);
      }
    }
  };
  return { name, search };
}
