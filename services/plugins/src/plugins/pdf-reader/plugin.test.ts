import { describe, expect, test } from '@jest/globals';
import { Conversation } from '@signalbox/plugin-kit/conversation';
import { createPdfCache } from '../../adapters/pdf-files.js';
import { createFairLine } from '../../domain/fair-line.js';
import type { FetchPdf, PdfProblem, PdfText } from '../../domain/ports.js';
import { createPdfReader } from './plugin.js';

const PDF = Buffer.from('%PDF-1.4 something');
const DATA = `data:application/pdf;base64,${PDF.toString('base64')}`;
const TEXT: PdfText = { pageCount: 3, isCut: false, pages: [{ text: 'Alpha', isScanned: false }, { text: '', isScanned: true }] };
const OPTIONS = { max_pages: 2, ocr: false };

function world(answer: PdfText | { readonly problem: PdfProblem } = TEXT) {
  let reads = 0;
  const plugin = createPdfReader({
    read: () => Promise.resolve((reads += 1) > 0 ? answer : answer),
    fetch: (url) => Promise.resolve(url.includes('unanswered') ? 'unavailable' : url.endsWith('.pdf') ? { bytes: PDF } : { problem: 'The URL does not lead to a public address.' }),
    fetches: createFairLine({ placesMax: 2, waitingOfAccountMax: 3 }), cache: createPdfCache(), bytesMax: 1_000, timeoutMs: 1_000,
  });
  const run = async (file: object, over: { readonly accountId?: string; readonly zdr?: boolean; readonly options?: typeof OPTIONS } = {}) => {
    const conversation = new Conversation([{ role: 'user', content: [{ type: 'text', text: 'Read this' }, { type: 'file', file }] }]);
    const prepared = await plugin.prepare?.({ requestId: 'r', user: '', accountId: over.accountId ?? 'a', options: over.options ?? OPTIONS, policy: { zdr: over.zdr ?? false, denyTraining: false }, conversation, signal: new AbortController().signal });
    prepared?.apply(conversation);
    return { prepared, messages: conversation.changed() };
  };
  return { run, reads: () => reads };
}

describe('a file', () => {
  test('becomes text with page marks in its place; what is scanned and what was not read is named', async () => {
    const { run } = world();
    const { messages, prepared } = await run({ filename: 'a<b>.pdf', file_data: DATA });
    expect(messages).toEqual([{ role: 'user', content: [{ type: 'text', text: 'Read this' }, { type: 'text', text: '<file name="a b .pdf" pages="3">\n[page 1]\nAlpha\n\n[page 2: a scanned image without text]\n\n[pages 3 to 3 were not read]\n</file>' }] }]);
    expect(prepared).toMatchObject({ files: [{ name: 'a b .pdf' }], detail: { files: 1, pages: 2, scanned_pages: 1 } });
  });

  test('of which no page gives text is named for what it is, and costs nothing', async () => {
    const pages = [{ text: '', isScanned: false, isUnreadable: true }, { text: '', isScanned: true }, { text: '', isScanned: false }];
    const { messages, prepared } = await world({ pageCount: 3, isCut: false, pages }).run({ file_data: DATA });
    expect(JSON.stringify(messages)).toContain('[page 1: its text cannot be read]\\n\\n[page 2: a scanned image without text]\\n\\n[page 3: empty]');
    expect(prepared).toMatchObject({ isIdle: true, detail: { pages: 3, scanned_pages: 1, unreadable_pages: 1 } });
  });

  test('is no part of what is searched for then: the question alone is', async () => {
    const conversation = new Conversation([{ role: 'user', content: [{ type: 'file', file: { file_data: DATA } }, { type: 'text', text: 'Who wrote it?' }] }]);
    conversation.replacePart({ message: 0, part: 0, value: {} }, { type: 'text', text: '<file>Alpha</file>' });
    expect([conversation.lastUserText(), JSON.stringify(conversation.changed())]).toEqual(['Who wrote it?', expect.stringContaining('Alpha')]);
  });

  test('by URL goes through the guarded fetch; what that refuses is told with its place', async () => {
    const { run } = world();
    expect((await run({ file_data: 'https://x.example/report.pdf' })).prepared?.files).toMatchObject([{ name: 'report.pdf' }]);
    await expect(run({ file_data: 'https://x.example/inside' })).rejects.toMatchObject({ name: 'PluginRefusal', param: 'messages.[0].content.[1].file.file_data', message: 'The URL does not lead to a public address.' });
  });

  test('by a URL that could not be looked up is no fault of its sender', async () => {
    await expect(world().run({ file_data: 'https://unanswered.example/a.pdf' })).rejects.toMatchObject({ name: 'PluginFailure', reason: 'fetch_unavailable' });
  });

  test('that is no PDF by name, type or content is left for models that read files', async () => {
    const { run, reads } = world();
    for (const file of [{ file_id: 'file-1' }, { filename: 'a.txt', file_data: `data:text/plain;base64,${Buffer.from('hello').toString('base64')}` }]) expect(await run(file)).toMatchObject({ messages: undefined, prepared: { isIdle: true, detail: { files: 0 } } });
    expect(reads()).toBe(0);
    expect((await run({ file_data: DATA })).prepared?.isIdle).toBe(false);
  });

  test.each<[PdfProblem, RegExp]>([['encrypted', /encrypted/], ['broken', /damaged/], ['memory', /memory/], ['timeout', /too long/]])('that is %s is the client\'s to mend', async (problem, message) => {
    await expect(world({ problem }).run({ file_data: DATA })).rejects.toMatchObject({ name: 'PluginRefusal', message: expect.stringMatching(message) });
  });

  test('that claims to be a PDF and is none, or is too large, is refused without being read', async () => {
    const { run, reads } = world();
    await expect(run({ filename: 'x.pdf', file_data: Buffer.from('hello').toString('base64') })).rejects.toMatchObject({ name: 'PluginRefusal', message: 'The file is not a PDF.' });
    await expect(run({ file_data: `data:application/pdf;base64,${Buffer.alloc(2_000).toString('base64')}` })).rejects.toMatchObject({ name: 'PluginRefusal', message: 'The PDF is too large.' });
    expect(reads()).toBe(0);
  });

  test('a reader that is away is our fault: the run fails, the request is not refused', async () => {
    await expect(world({ problem: 'unavailable' }).run({ file_data: DATA })).rejects.toMatchObject({ name: 'PluginFailure', reason: 'reader_unavailable' });
  });
});

test('of all files by URL only a few are in memory at once, from the fetch until they are read', async () => {
  let held = 0;
  let most = 0;
  const turns: (() => void)[] = [];
  const fetch: FetchPdf = () => {
    most = Math.max(most, (held += 1));
    return Promise.resolve({ bytes: PDF });
  };
  const plugin = createPdfReader({
    fetch, fetches: createFairLine({ placesMax: 2, waitingOfAccountMax: 3 }), cache: createPdfCache(), bytesMax: 1_000, timeoutMs: 1_000,
    read: () => new Promise((resolve) => turns.push(() => {
      held -= 1;
      resolve(TEXT);
    })),
  });
  const ask = (files: number) => {
    const content = Array.from({ length: files }, (_, at) => ({ type: 'file', file: { file_data: `https://x.example/${String(at)}.pdf` } }));
    return plugin.prepare?.({ requestId: 'r', user: '', accountId: 'a', options: OPTIONS, policy: { zdr: true, denyTraining: false }, conversation: new Conversation([{ role: 'user', content }]), signal: new AbortController().signal });
  };
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  const first = ask(5);
  await settled();
  await expect(ask(1)).rejects.toMatchObject({ name: 'PluginFailure', reason: 'reader_unavailable' });
  for (let at = 0; at < 5; at += 1) {
    turns.shift()?.();
    await settled();
  }
  expect((await first)?.detail).toMatchObject({ files: 5 });
  expect(most).toBe(2);
});

test('a text is kept for the account that sent it, by content and pages, and not at all under zero data retention', async () => {
  const { run, reads } = world();
  await run({ file_data: DATA }, { zdr: true });
  await run({ file_data: DATA });
  expect(reads()).toBe(2);
  expect((await run({ file_data: DATA })).prepared?.detail).toMatchObject({ cached: 1 });
  expect(reads()).toBe(2);
  await run({ file_data: DATA }, { accountId: 'b' });
  await run({ file_data: DATA }, { options: { ...OPTIONS, max_pages: 1 } });
  expect(reads()).toBe(4);
});

test('the cache forgets the least lately used when it is full', () => {
  const cache = createPdfCache(500);
  const text = (length: number): PdfText => ({ pageCount: 1, isCut: false, pages: [{ text: 'x'.repeat(length), isScanned: false }] });
  cache.set('a', text(50));
  cache.set('b', text(50));
  cache.get('a');
  cache.set('c', text(150));
  expect(['a', 'b', 'c'].map((key) => cache.get(key) !== undefined)).toEqual([true, false, true]);
  cache.set('d', text(10_000));
  expect(cache.get('d')).toBeUndefined();
});
