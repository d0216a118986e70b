import type { PluginManifest } from '@signalbox/plugin-kit/manifest';

const OPTIONS = {
  namespace: { type: 'string', description: 'Facts of one namespace are not seen in another.', default: 'default', minLength: 1, maxLength: 64 },
  max_facts: { type: 'integer', description: 'Facts given to the model.', default: 20, min: 1, max: 50 },
  write: { type: 'boolean', description: 'Remember facts of this conversation.', default: true },
} as const;

export type MemoryOptions = typeof OPTIONS;

export const MANIFEST: PluginManifest<MemoryOptions> = {
  id: 'memory',
  name: 'Memory',
  description: 'Remembers what a user says of themselves, and reminds the model of it in later conversations.',
  isPaid: true,
  kind: 'retrieval',
  timeoutMs: 2_000,
  options: OPTIONS,
};
