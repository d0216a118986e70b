/** The index in memory, for tests. All words have the same weight, and word endings are ignored. */
import { isInDomain, hostOf, oneSourceAtMost, QUESTION_CHARS_MAX } from '../domain/passages.js';
import type { KnownSource, NewSource, PassageIndex } from '../domain/ports.js';

const STOP_WORDS = new Set(['the', 'and', 'for', 'are', 'was', 'what', 'who', 'how', 'did', 'does', 'is', 'in', 'of', 'to', 'it', 'a', 'an', 'on', 'at', 'by', 'with', 'that', 'this', 'from']);

/** Approximate word stems. */
export function wordsOf(text: string): ReadonlySet<string> {
  return new Set((text.slice(0, 10_000).toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).filter((word) => !STOP_WORDS.has(word)).map((word) => word.replace(/(ing|ed|es|s)$/, '')));
}

export function createMemoryIndex(): PassageIndex {
  const sources = new Map<string, NewSource>();
  const idOf = (corpus: string, key: string): string => `${corpus}\n${key}`;
  return {
    put: (source) => {
      sources.delete(idOf(source.corpus, source.key));
      sources.set(idOf(source.corpus, source.key), source);
      return Promise.resolve();
    },
    search: ({ corpus, text, limit, perSourceMax, keys = [], language = '', includeDomains = [], excludeDomains = [] }) => {
      const asked = wordsOf(text.slice(0, QUESTION_CHARS_MAX));
      const found = [...sources.values()].filter((source) => {
        const host = hostOf(source.url);
        return source.corpus === corpus && (keys.length === 0 || keys.includes(source.key)) && (language === '' || language === source.language)
          && (includeDomains.length === 0 || includeDomains.some((domain) => isInDomain(host, domain))) && !excludeDomains.some((domain) => isInDomain(host, domain));
      }).flatMap((source) =>
        source.passages.map(({ heading, body }, ordinal) => {
          const words = wordsOf(`${source.title} ${source.author} ${heading} ${body}`);
          return { rank: [...asked].filter((word) => words.has(word)).length, passage: { key: source.key, title: source.title, author: source.author, url: source.url, heading, body, ordinal } };
        }),
      );
      const ranked = found.filter(({ rank }) => rank > 0).sort((a, b) => b.rank - a.rank).map(({ passage }) => passage);
      return Promise.resolve(oneSourceAtMost(ranked, perSourceMax, limit));
    },
    list: (corpus) =>
      Promise.resolve([...sources.values()].filter((source) => source.corpus === corpus).map(({ key, title, author, url, language, passages }): KnownSource => ({ key, title, author, url, language, passages: passages.length }))),
    remove: (corpus, key) => Promise.resolve(sources.delete(idOf(corpus, key)) ? 1 : 0),
  };
}
