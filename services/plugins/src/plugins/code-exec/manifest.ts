import type { PluginManifest } from '@signalbox/plugin-kit/manifest';

const OPTIONS = {
  timeout_ms: { type: 'integer', description: 'Longest that one program may run, in milliseconds.', default: 5_000, min: 1, max: 5_000 },
  max_rounds: { type: 'integer', description: 'How often the model may run programs before it has to answer.', default: 8, min: 1, max: 8 },
  language: { type: 'string', description: 'Language of the programs.', default: 'javascript', maxLength: 32, choices: ['javascript'] },
} as const;

export type CodeExecOptions = typeof OPTIONS;

export const MANIFEST: PluginManifest<CodeExecOptions> = {
  id: 'code-exec',
  name: 'Code execution',
  description: 'Lets the model run JavaScript in a sandbox without network or files, and use what it computes.',
  isPaid: false,
  kind: 'tool',
  // A program's 5 s, its wait in the queue, and the start of its process on a busy machine.
  timeoutMs: 30_000,
  options: OPTIONS,
};
