import type { PluginManifest } from '@signalbox/plugin-kit/manifest';

const OPTIONS = {
  max_passages: { type: 'integer', description: 'Passages given to the model.', default: 5, min: 1, max: 10 },
  book_ids: { type: 'integers', description: 'Read these books only, by their Project Gutenberg number.', maxItems: 20, min: 1, max: 9_999_999 },
  language: { type: 'string', description: 'Books in this language only: two letters, such as en.', default: '', maxLength: 2 },
} as const;

export type GutenbergOptions = typeof OPTIONS;

export const MANIFEST: PluginManifest<GutenbergOptions> = {
  id: 'gutenberg',
  name: 'Project Gutenberg',
  description: 'Finds passages of public-domain books that answer the last message of the user, with book, author and chapter.',
  isPaid: false,
  kind: 'retrieval',
  timeoutMs: 8_000,
  options: OPTIONS,
};
