/** The few public-domain texts that come with the house, in the form of Project Gutenberg's files: the plugin works with nothing set up. */
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { PassageIndex } from '../domain/ports.js';
import { sourceOf } from '../domain/sources.js';

const BOOKS_DIR = fileURLToPath(new URL('../../books/', import.meta.url));

/** Puts those that the index lacks; a book that the operator removed or replaced is left as it is when any book is there. */
export async function putBuiltInBooks(index: PassageIndex): Promise<void> {
  if ((await index.list('books')).length > 0) return;
  const names = (await readdir(BOOKS_DIR)).filter((name) => name.endsWith('.txt')).sort();
  for (const name of names) {
    const source = sourceOf({ corpus: 'books', key: '', title: '', author: '', url: '', language: '', text: await readFile(`${BOOKS_DIR}${name}`, 'utf8') });
    if (!('problem' in source)) await index.put(source);
  }
}
