/** A few public-domain texts that are shipped with the gateway, in the format of Project Gutenberg's files, so that the plugin works without any setup. */
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { PassageIndex } from '../domain/ports.js';
import { sourceOf } from '../domain/sources.js';

const BOOKS_DIR = fileURLToPath(new URL('../../books/', import.meta.url));

/** Adds the built-in books that the index lacks. Books that the operator removed or replaced are left alone, as long as the index has any book. */
export async function putBuiltInBooks(index: PassageIndex): Promise<void> {
  if ((await index.list('books')).length > 0) return;
  const names = (await readdir(BOOKS_DIR)).filter((name) => name.endsWith('.txt')).sort();
  for (const name of names) {
    const source = sourceOf({ corpus: 'books', key: '', title: '', author: '', url: '', language: '', text: await readFile(`${BOOKS_DIR}${name}`, 'utf8') });
    if (!('problem' in source)) await index.put(source);
  }
}
