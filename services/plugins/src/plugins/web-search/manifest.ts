import type { PluginManifest } from '@signalbox/plugin-kit/manifest';

const OPTIONS = {
  max_results: { type: 'integer', description: 'Results given to the model.', default: 5, min: 1, max: 10 },
  include_domains: { type: 'strings', description: 'Search these domains only, their subdomains included.', maxItems: 20, maxLength: 253 },
  exclude_domains: { type: 'strings', description: 'Leave these domains out.', maxItems: 20, maxLength: 253 },
  search_prompt: { type: 'string', description: 'What the model is told about the results, in place of our own words.', default: '', maxLength: 2_000 },
} as const;

export type WebSearchOptions = typeof OPTIONS;

export const MANIFEST: PluginManifest<WebSearchOptions> = {
  id: 'web-search',
  name: 'Web search',
  description: 'Searches for the last message of the user and gives the model what was found, with citations.',
  isPaid: false,
  kind: 'retrieval',
  timeoutMs: 6_000,
  options: OPTIONS,
};
