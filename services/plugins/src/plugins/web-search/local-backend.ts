/** The built-in index as a search backend: nothing leaves the gateway. */
import type { PassageIndex, SearchBackend } from '../../domain/ports.js';

const PASSAGES_OF_A_DOCUMENT_MAX = 2;

export function createLocalBackend(index: PassageIndex): SearchBackend {
  return {
    name: 'local',
    search: async ({ text, limit, includeDomains, excludeDomains }) => {
      const found = await index.search({ corpus: 'web', text, limit, perSourceMax: PASSAGES_OF_A_DOCUMENT_MAX, includeDomains, excludeDomains });
      return found.map(({ url, title, body }) => ({ url, title, content: body }));
    },
  };
}
