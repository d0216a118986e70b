/** pdf-reader: replaces PDF file parts by text with page marks, before routing. */
import { firstChars, type PlacedPart } from '@signalbox/plugin-kit/conversation';
import { PluginFailure, PluginRefusal, type Plugin } from '@signalbox/plugin-kit/plugin';
import { createHash } from 'node:crypto';
import type { FairLine } from '../../domain/fair-line.js';
import type { FetchPdf, PdfCache, PdfPage, PdfProblem, PdfText, ReadPdf } from '../../domain/ports.js';
import { MANIFEST, type PdfReaderOptions } from './manifest.js';

const FILES_MAX = 10;
const NAME_CHARS_MAX = 200;
/** Some other bytes may come before the signature. */
const SIGNATURE = '%PDF-';
const SIGNATURE_WITHIN = 1_024;
/** Time besides reading: fetching, waiting for a place, and work in the service. */
const SPARE_MS = 2_000;

const SENTENCES: Record<Exclude<PdfProblem, 'unavailable'>, string> = {
  'not-pdf': 'The file is not a PDF.',
  broken: 'The PDF cannot be read: it is damaged.',
  encrypted: 'The PDF is encrypted. Send it without a password.',
  'too-large': 'The PDF is too large.',
  timeout: 'The PDF takes too long to read. Send fewer pages.',
  memory: 'The PDF needs too much memory to read. Send fewer pages.',
};

export interface PdfReaderNeeds {
  readonly read: ReadPdf;
  readonly fetch: FetchPdf;
  /** Limits how many files are fetched at once, over all requests, since each is in memory until it is read. */
  readonly fetches: FairLine;
  readonly cache: PdfCache;
  readonly bytesMax: number;
  /** Time limit for reading a file, in milliseconds. */
  readonly timeoutMs: number;
}

interface Wanted {
  readonly placed: PlacedPart;
  readonly param: string;
  readonly name: string;
  /** Base64 text, or a URL to fetch. */
  readonly source: { readonly base64: string } | { readonly url: string };
}

function nameOf(filename: unknown, url: string | undefined): string {
  const last = url !== undefined && URL.canParse(url) ? (new URL(url).pathname.split('/').at(-1) ?? '') : '';
  const name = typeof filename === 'string' && filename !== '' ? filename : last;
  // The name goes into an attribute of our page mark, so remove characters that could end it.
  return firstChars((name === '' ? 'document.pdf' : name).replace(/[\p{Cc}"<>&]/gu, ' ').trim(), NAME_CHARS_MAX);
}

/** Parts that are, or may be, PDFs by their type or name; others are left for models that read files. */
function wantedOf(placed: PlacedPart): Wanted | undefined {
  const file = placed.value['file'];
  if (typeof file !== 'object' || file === null) return undefined;
  const { filename, file_data: data } = file as { readonly filename?: unknown; readonly file_data?: unknown };
  if (typeof data !== 'string') return undefined;
  const param = `messages.[${placed.message}].content.[${placed.part}].file`;
  const isNamed = typeof filename === 'string' && /\.pdf$/i.test(filename);
  if (/^https?:\/\//i.test(data)) return { placed, param, name: nameOf(filename, data), source: { url: data } };
  const head = /^data:([^,;]*)((?:;[^,;]*)*),/i.exec(data.slice(0, 512));
  const base64 = head === null ? data : data.slice(head[0].length);
  const isPdf = /^application\/(?:x-)?pdf$/i.test(head?.[1] ?? '') || base64.startsWith('JVBERi') || isNamed;
  if (!isPdf) return undefined;
  if (head !== null && !/;base64$/i.test(head[2] ?? '')) throw new PluginRefusal(`${param}.file_data`, 'A PDF in a data URL must be in base64.');
  return { placed, param, name: nameOf(filename, undefined), source: { base64 } };
}

const whyEmpty = ({ isScanned, isUnreadable }: PdfPage): string => (isUnreadable === true ? 'its text cannot be read' : isScanned ? 'a scanned image without text' : 'empty');

function render(name: string, { pageCount, pages, isCut }: PdfText): string {
  const texts = pages.map((page, at) => (page.text === '' ? `[page ${at + 1}: ${whyEmpty(page)}]` : `[page ${at + 1}]\n${page.text}`));
  if (isCut) texts.push('[the rest of this page and what follows was not read: the text is too long]');
  else if (pages.length < pageCount) texts.push(`[pages ${pages.length + 1} to ${pageCount} were not read]`);
  return `<file name="${name}" pages="${pageCount}">\n${texts.join('\n\n')}\n</file>`;
}

export function createPdfReader({ read, fetch, fetches, cache, bytesMax, timeoutMs }: PdfReaderNeeds): Plugin<PdfReaderOptions> {
  const bytesOf = async ({ source, param }: Wanted, signal: AbortSignal): Promise<Buffer> => {
    if ('url' in source) {
      const fetched = await fetch(source.url, signal);
      if (fetched === 'unavailable') throw new PluginFailure('fetch_unavailable');
      if ('problem' in fetched) throw new PluginRefusal(`${param}.file_data`, fetched.problem);
      return fetched.bytes;
    }
    if (source.base64.length > Math.ceil(bytesMax / 3) * 4 + 4) throw new PluginRefusal(`${param}.file_data`, SENTENCES['too-large']);
    return Buffer.from(source.base64, 'base64');
  };

  /** Runs `work`; for a file that must be fetched, waits for a place first. */
  const inTurn = async <Result>({ source }: Wanted, accountId: string, signal: AbortSignal, work: () => Promise<Result>): Promise<Result> => {
    if (!('url' in source)) return work();
    if (!(await fetches.enter(accountId, signal))) throw new PluginFailure('reader_unavailable');
    try {
      return await work();
    } finally {
      fetches.leave(accountId);
    }
  };

  return {
    manifest: { ...MANIFEST, timeoutMs: timeoutMs + SPARE_MS },
    // Read locally and cached only in memory; with zero data retention not cached at all.
    allows: () => true,
    prepare: async ({ accountId, options, policy, conversation, signal }) => {
      const wanted = conversation.parts('file').flatMap((placed) => wantedOf(placed) ?? []);
      if (wanted.length > FILES_MAX) throw new PluginRefusal('messages', `At most ${FILES_MAX} PDF files are read for one request.`);
      const results = await Promise.all(
        wanted.map((one) => inTurn(one, accountId, signal, async () => {
          const bytes = await bytesOf(one, signal);
          if (bytes.length > bytesMax) throw new PluginRefusal(`${one.param}.file_data`, SENTENCES['too-large']);
          if (!bytes.subarray(0, SIGNATURE_WITHIN).includes(SIGNATURE)) throw new PluginRefusal(`${one.param}.file_data`, SENTENCES['not-pdf']);
          const hash = createHash('sha256').update(bytes).digest('hex');
          const key = `${accountId}/${hash}/${options.max_pages}`;
          const known = cache.get(key);
          const text = known ?? (await read(bytes, { accountId, maxPages: options.max_pages, signal }));
          if ('problem' in text) {
            if (text.problem === 'unavailable') throw new PluginFailure('reader_unavailable');
            throw new PluginRefusal(`${one.param}.file_data`, SENTENCES[text.problem]);
          }
          if (known === undefined && !policy.zdr) cache.set(key, text);
          return { ...one, hash, text, isCached: known !== undefined };
        })),
      );
      const pages = results.flatMap(({ text }) => text.pages);
      const scanned = pages.filter(({ isScanned }) => isScanned).length;
      const unreadable = pages.filter(({ isUnreadable }) => isUnreadable === true).length;
      return {
        apply: (changed) => {
          for (const { placed, name, text } of results) changed.replacePart(placed, { type: 'text', text: render(name, text) });
        },
        files: results.map(({ hash, name }) => ({ hash, name })),
        isIdle: !pages.some(({ text }) => text !== ''),
        detail: { files: results.length, pages: pages.length, scanned_pages: scanned, unreadable_pages: unreadable, cached: results.filter(({ isCached }) => isCached).length, ...(options.ocr ? { ocr: 'unavailable' } : {}) },
      };
    },
  };
}
