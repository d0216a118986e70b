import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { FetchFile } from '@signalbox/net-guard/fetcher';
import { refusal } from '@signalbox/net-guard/refusal';
import { Conversation } from '@signalbox/plugin-kit/conversation';
import { putBuiltInBooks } from '../../adapters/built-in-books.js';
import { createGutendex } from '../../adapters/gutendex.js';
import { createMemoryIndex } from '../../adapters/memory-index.js';
import { bookOf } from '../../domain/gutenberg-text.js';
import type { BookCatalog } from '../../domain/ports.js';
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createGutenberg } from './plugin.js';

const FILE = `\uFEFFThe Project Gutenberg eBook of A Tale

Title: A Tale
  of Two Lines
Author: Ann Author
Release date: 1 [eBook #4242]
Language: English

*** START OF THE PROJECT GUTENBERG EBOOK A TALE ***

CONTENTS

CHAPTER I
CHAPTER II

CHAPTER I

The heron stood in the reeds.

Book lovers will object to this short line.

CHAPTER II. A Storm

Rain fell on the mill.

*** END OF THE PROJECT GUTENBERG EBOOK A TALE ***

Licence text that nobody asked for.`;

test("a file's header and licence are cut off, its chapters told apart, no text lost to headings", () => {
  const book = bookOf(FILE.replace(/\n/g, '\r\n'));
  expect(book).toMatchObject({ id: '4242', title: 'A Tale of Two Lines', author: 'Ann Author', language: 'en' });
  expect(book.passages.slice(-2)).toEqual([{ heading: 'CHAPTER I', body: 'The heron stood in the reeds.\n\nBook lovers will object to this short line.' }, { heading: 'CHAPTER II. A Storm', body: 'Rain fell on the mill.' }]);
  expect(JSON.stringify(book.passages)).not.toContain('Licence');
  expect(bookOf('').passages).toEqual([]);
});

const ask = async (text: string, { catalog, zdr = false, ids = [] }: { readonly catalog?: BookCatalog; readonly zdr?: boolean; readonly ids?: readonly number[] } = {}) => {
  const index = createMemoryIndex();
  await putBuiltInBooks(index);
  const conversation = new Conversation([{ role: 'user', content: text }]);
  const prepared = await createGutenberg({ index, catalog }).prepare?.({
    requestId: 'r', accountId: 'a', user: '', options: { max_passages: 3, book_ids: ids, language: '' }, policy: { zdr, denyTraining: false }, conversation, signal: new AbortController().signal,
  });
  prepared?.apply(conversation);
  return { prepared, block: JSON.stringify(conversation.changed() ?? []) };
};

test('with nothing set up a question is answered from a passage of a built-in book, with author, chapter and address', async () => {
  const { prepared, block } = await ask('What did the White Rabbit take out of its waistcoat-pocket?');
  expect(block).toContain('took a watch out of its waistcoat-pocket');
  expect(prepared?.citations?.[0]).toMatchObject({ marker: '[G1]', url: 'https://www.gutenberg.org/ebooks/11', title: "Alice's Adventures in Wonderland (opening) by Lewis Carroll, CHAPTER I. Down the Rabbit-Hole" });
});

describe('a catalog', () => {
  const asked: string[] = [];
  let server: Server;
  let origin = '';
  beforeEach(async () => {
    asked.length = 0;
    server = createServer(({ url = '' }, response) => {
      asked.push(url);
      // As Gutendex itself does.
      if (!new URL(url, origin).pathname.endsWith('/')) {
        response.writeHead(301, { location: url.replace(/^\/books/, '/books/') }).end();
        return;
      }
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ results: [{ id: 4242, title: 'A Tale', authors: [{ name: 'Author, Ann' }], languages: ['en'], formats: { 'text/plain; charset=utf-8': 'https://books.example/4242.txt' } }] }));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(() => void server.close());
  const found: FetchFile = () => Promise.resolve({ ok: true, bytes: Buffer.from(FILE), mediaType: 'text/plain' });

  test('is asked for what the index lacks, and never for a request whose policy it has not promised to keep', async () => {
    const catalog = createGutendex({ url: `${origin}/books/`, fetchFile: found });
    expect((await ask('Where did the heron stand?', { catalog, zdr: true, ids: [4242] })).block).toBe('[]');
    expect(asked).toEqual([]);
    const answer = await ask('Where did the heron stand?', { catalog, ids: [4242] });
    expect(answer.block).toContain('The heron stood in the reeds.');
    expect(answer.prepared?.detail).toMatchObject({ fetched: 1, books: 1 });
  });

  test.each(['/books', '/books/'])('that redirects to its list, with its address as %s, is asked for that list itself', async (path) => {
    expect((await ask('Where did the heron stand?', { catalog: createGutendex({ url: `${origin}${path}`, fetchFile: found }), ids: [4242] })).block).toContain('The heron stood in the reeds.');
    expect(asked).toEqual(['/books/?ids=4242']);
  });

  test('whose texts could not be looked up is a run that failed, and no search without results', async () => {
    const catalog = createGutendex({ url: `${origin}/books/`, fetchFile: () => Promise.resolve({ ok: false, refusal: refusal('look-up-failed') }) });
    await expect(ask('zzz', { catalog, ids: [4242] })).rejects.toMatchObject({ name: 'PluginFailure', reason: 'catalog_unreachable' });
    const gone = createGutendex({ url: `${origin}/books/`, fetchFile: () => Promise.resolve({ ok: false, refusal: refusal('status') }) });
    expect((await ask('zzz', { catalog: gone, ids: [4242] })).prepared?.detail).toMatchObject({ passages: 0 });
  });
});

test.each([
  ['too many questions', 429, '{}', 'catalog_rate_limited'],
  ['an error', 500, '{}', 'catalog_refused'],
  ['what is no object', 200, '[]', 'catalog_answer_unreadable'],
  ['an answer without end', 200, ' '.repeat(2_000_000), 'catalog_answer_too_large'],
])('a catalog that answers %s is a run that failed, and no search without results', async (_what, status, body, reason) => {
  const server = createServer((_request, response) => response.writeHead(status, { 'content-type': 'application/json' }).end(body)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const catalog = createGutendex({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/books/`, fetchFile: () => Promise.reject(new Error('not reached')) });
    await expect(ask('zzz', { catalog, ids: [4242] })).rejects.toMatchObject({ name: 'PluginFailure', reason });
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test('a catalog that is away is a run that failed', async () => {
  const catalog = createGutendex({ url: 'http://127.0.0.1:9/books', fetchFile: () => Promise.reject(new Error('not reached')) });
  await expect(ask('zzz', { catalog, ids: [4242] })).rejects.toMatchObject({ name: 'PluginFailure', reason: 'catalog_unreachable' });
});
