/** Splits texts into passages; also helpers shared by the stores that search them. */
import type { Passage } from './ports.js';

/** Most characters of a question used in a search. */
export const QUESTION_CHARS_MAX = 512;
/** Approximate length of a passage: paragraphs are kept whole if they fit. */
const PASSAGE_CHARS = 1_200;
const PARAGRAPH_CHARS_MAX = 2_000;

/** Lower-case host without `www.`; empty if the text is not a URL. */
export function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname.toLowerCase().replace(/^www\./, '') : '';
}

export function isInDomain(host: string, domain: string): boolean {
  return host === domain || host.endsWith(`.${domain}`);
}

/** Reads a domain in the forms that a client may use: `example.org`, `https://example.org/x`, `*.example.org`. */
export function domainOf(text: string): string {
  const bare = text.trim().toLowerCase();
  return (hostOf(bare) || bare.replace(/^\*\./, '').replace(/^www\./, '').replace(/\/.*$/s, '')).replace(/^\./, '');
}

/** The first `limit` passages, at most `perSourceMax` per source. */
export function oneSourceAtMost(passages: readonly Passage[], perSourceMax: number, limit: number): readonly Passage[] {
  const seen = new Map<string, number>();
  const kept: Passage[] = [];
  for (const passage of passages) {
    if (kept.length === limit) break;
    const count = seen.get(passage.key) ?? 0;
    if (count >= perSourceMax) continue;
    seen.set(passage.key, count + 1);
    kept.push(passage);
  }
  return kept;
}

/** Splits a long paragraph into pieces, at ends of sentences if possible. */
function pieces(paragraph: string): readonly string[] {
  if (paragraph.length <= PARAGRAPH_CHARS_MAX) return [paragraph];
  const found: string[] = [];
  let rest = paragraph;
  while (rest.length > PARAGRAPH_CHARS_MAX) {
    const head = rest.slice(0, PASSAGE_CHARS);
    const end = Math.max(head.lastIndexOf('. '), head.lastIndexOf('? '), head.lastIndexOf('! '));
    const space = head.lastIndexOf(' ');
    const at = end > PASSAGE_CHARS / 2 ? end + 1 : space > 0 ? space : PASSAGE_CHARS;
    found.push(rest.slice(0, at).trim());
    rest = rest.slice(at);
  }
  return [...found, rest.trim()].filter((piece) => piece !== '');
}

/** Splits a text whose paragraphs are separated by empty lines into passages of about 1,200 characters. */
export function passagesOf(text: string, heading = ''): readonly { readonly heading: string; readonly body: string }[] {
  const passages: { readonly heading: string; readonly body: string }[] = [];
  let body = '';
  const close = (): void => {
    if (body !== '') passages.push({ heading, body });
    body = '';
  };
  // Postgres refuses NUL characters in text.
  for (const paragraph of text.replace(/\0/g, '').replace(/\r\n?/g, '\n').split(/\n[ \t]*\n+/)) {
    for (const piece of pieces(paragraph.split('\n').map((line) => line.trim()).join(' ').trim())) {
      if (piece === '') continue;
      if (body !== '' && body.length + piece.length > PASSAGE_CHARS) close();
      body = body === '' ? piece : `${body}\n\n${piece}`;
    }
  }
  close();
  return passages;
}
