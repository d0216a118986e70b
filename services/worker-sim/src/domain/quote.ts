/** Imitates a model that reads its prompt: quotes the line that shares the most words with the question. */
import { withoutDirectives } from './directives.js';

type Json = Readonly<Record<string, unknown>>;

/** Shorter words occur in every line. */
const WORD = /\p{L}{4,}/gu;
/** The number of a source, which precedes its lines. */
const MARK = /^\[G?\d+\]/;
const LINES_MAX = 20_000;

const wordsOf = (text: string): readonly string[] => text.toLowerCase().match(WORD) ?? [];

function textsOf(content: unknown): readonly string[] {
  if (typeof content === 'string') return [content];
  return Array.isArray(content) ? content.flatMap((part: unknown) => (typeof part === 'object' && part !== null && 'text' in part && typeof part.text === 'string' ? [part.text] : [])) : [];
}

/** The best line with the mark of its source; empty if no line shares a word with the question. The question is the first line of the last user message, and is not quoted itself. */
export function quoteOf(messages: readonly Json[]): string {
  const [first = ''] = textsOf(messages.findLast(({ role }) => role === 'user')?.['content']);
  const question = withoutDirectives(first).split('\n')[0] ?? '';
  const asked = new Set(wordsOf(question));
  let best = { score: 0, line: '', mark: '' };
  for (const text of messages.flatMap(({ content }) => textsOf(content))) {
    let mark = '';
    for (const line of text.split('\n').slice(0, LINES_MAX)) {
      mark = MARK.exec(line)?.[0] ?? mark;
      const score = line.includes(question) ? 0 : new Set(wordsOf(line).filter((word) => asked.has(word))).size;
      // On a tie, prefer later lines: a source begins with its title, and the introduction comes before all sources.
      const isCloser = score === best.score && score > 0 && (best.mark === '' || best.mark === mark);
      if (score > best.score || isCloser) best = { score, line: line.startsWith(mark) ? line : `${line} ${mark}`, mark };
    }
  }
  return best.line.trim();
}
