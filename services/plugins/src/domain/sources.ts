/** Prepares documents and books given by the operator for the index. */
import { bookOf } from './gutenberg-text.js';
import { passagesOf } from './passages.js';
import type { Corpus, NewSource } from './ports.js';

export interface GivenSource {
  readonly corpus: Corpus;
  readonly key: string;
  readonly title: string;
  readonly author: string;
  readonly url: string;
  readonly language: string;
  readonly text: string;
}

const KEY_CHARS_MAX = 2_048;
const TITLE_CHARS_MAX = 512;

/** Returns a source with at least one passage, or a sentence with the problem. Missing fields are taken from the book's own text. */
export function sourceOf({ corpus, key, title, author, url, language, text }: GivenSource): NewSource | { readonly problem: string } {
  if (corpus === 'books') {
    const book = bookOf(text);
    const id = key || book.id;
    if (!/^[A-Za-z0-9_-]{1,64}$/.test(id)) return { problem: 'A book needs an id: letters, digits, - and _ (its header names none).' };
    if (book.passages.length === 0) return { problem: 'The book holds no text.' };
    const found = /^\d+$/.test(id) ? `https://www.gutenberg.org/ebooks/${id}` : '';
    return { corpus, key: id, title: (title || book.title || id).slice(0, TITLE_CHARS_MAX), author: (author || book.author).slice(0, TITLE_CHARS_MAX), url: url || found, language: language || book.language, passages: book.passages };
  }
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) return { problem: 'A document needs the http or https URL that it is cited by.' };
  if ((key || url).length > KEY_CHARS_MAX) return { problem: 'The URL is too long.' };
  const passages = passagesOf(text);
  if (passages.length === 0) return { problem: 'The document holds no text.' };
  return { corpus, key: key || url, title: (title || url).slice(0, TITLE_CHARS_MAX), author, url, language, passages };
}
