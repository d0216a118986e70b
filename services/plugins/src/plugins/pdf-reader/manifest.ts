import type { PluginManifest } from '@signalbox/plugin-kit/manifest';

const OPTIONS = {
  max_pages: { type: 'integer', description: 'Pages read of each file, from the first.', default: 100, min: 1, max: 500 },
  ocr: { type: 'boolean', description: 'Read scanned pages too. Not available here: such pages are named in any case.', default: false },
} as const;

export type PdfReaderOptions = typeof OPTIONS;

export const MANIFEST: PluginManifest<PdfReaderOptions> = {
  id: 'pdf-reader',
  name: 'PDF reader',
  description: 'Turns PDF files of messages into text with page marks, so that any model can read them.',
  isPaid: true,
  kind: 'retrieval',
  timeoutMs: 10_000,
  options: OPTIONS,
};
