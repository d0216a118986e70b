/** Sources that a host names beside its answer, whose text points at them as `[1]`: canonical annotations. */
import { isObject, type JsonObject } from '../canonical.js';

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** In the order that the text counts them in; undefined when the answer or chunk names none. Perplexity names them with titles, xAI by their addresses alone. */
export function sourcesOf(frame: JsonObject): readonly JsonObject[] | undefined {
  const { citations, search_results: results } = frame;
  const titles = new Map((Array.isArray(results) ? (results as readonly unknown[]) : []).filter(isObject).map((result) => [textOf(result['url']), textOf(result['title'])]));
  const urls = Array.isArray(citations) && citations.length > 0 ? (citations as readonly unknown[]).map(textOf) : [...titles.keys()];
  const named = urls.filter((url) => url !== '');
  return named.length === 0 ? undefined : named.map((url) => ({ type: 'url_citation', url_citation: { url, title: titles.get(url) ?? '', start_index: 0, end_index: 0 } }));
}
