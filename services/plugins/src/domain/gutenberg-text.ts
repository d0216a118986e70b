/** Parses a Project Gutenberg plain-text file: removes header and licence, and splits it into chapters. */
import { passagesOf } from './passages.js';

export interface BookText {
  /** The book's number; empty if the header has none. */
  readonly id: string;
  readonly title: string;
  readonly author: string;
  /** Two letters; empty if unknown. */
  readonly language: string;
  readonly passages: readonly { readonly heading: string; readonly body: string }[];
}

const START = /^\*{3}\s*START OF (?:THE|THIS) PROJECT GUTENBERG[^\n]*$/im;
const END = /^(?:\*{3}\s*END OF (?:THE|THIS) PROJECT GUTENBERG|End of (?:the )?Project Gutenberg)[^\n]*$/im;
const LANGUAGES: Readonly<Record<string, string>> = { english: 'en', french: 'fr', german: 'de', italian: 'it', spanish: 'es', portuguese: 'pt', dutch: 'nl', finnish: 'fi', latin: 'la', swedish: 'sv', danish: 'da' };
const HEADING_CHARS_MAX = 100;
/** "CHAPTER I", "Chapter 12. A Title", "BOOK THE FIRST", "LETTER 4", "ACT II", "Preface". */
const NAMED_HEADING = /^(?:(?:chapter|book|letter|part|volume|canto|stave|act|scene|section|sonnet)\s+(?:[IVXLCDM]+|\d+|(?:the\s+)?(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last|one|two|three|four|five|six|seven|eight|nine|ten))\b[^\n]*|(?:prologue|epilogue|preface|introduction|conclusion)\.?)$/i;
/** "I.", "IV. A TITLE". */
const ROMAN_HEADING = /^[IVXLC]{1,8}\.(?:[ \t][^\n]+)?$/;
const isHeadingLine = (line: string): boolean => line.length <= HEADING_CHARS_MAX && (NAMED_HEADING.test(line) || ROMAN_HEADING.test(line));

function field(head: string, name: string): string {
  return new RegExp(`^${name}:[ \\t]*(.+(?:\\n[ \\t]+\\S.*)*)$`, 'im').exec(head)?.[1]?.replace(/\s+/g, ' ').trim() ?? '';
}

function idOf(head: string): string {
  return /(?:eBook|Etext|E-text)[\s#]{0,8}(\d{1,7})/i.exec(head)?.[1] ?? '';
}

/** Never throws: a text without the usual marks becomes a book of one chapter without a title. */
export function bookOf(file: string): BookText {
  const text = file.replace(/^\uFEFF/, '').replace(/\r\n?/g, '\n');
  const start = START.exec(text);
  const end = END.exec(text);
  const head = start === null ? '' : text.slice(0, start.index);
  const from = start === null ? 0 : start.index + start[0].length;
  const body = text.slice(from, end === null || end.index < from ? text.length : end.index);
  const language = field(head, 'Language').toLowerCase().split(/[\s,;]/)[0] ?? '';
  return { id: idOf(head), title: field(head, 'Title'), author: field(head, 'Author'), language: LANGUAGES[language] ?? (/^[a-z]{2}$/.test(language) ? language : ''), passages: chaptersOf(body) };
}

/** Splits the body into chapters with headings. Of several headings without text in between, as in a table of contents, only the last is kept. */
function chaptersOf(body: string): readonly { readonly heading: string; readonly body: string }[] {
  const passages: { readonly heading: string; readonly body: string }[] = [];
  let heading = '';
  let paragraphs: string[] = [];
  const close = (): void => {
    passages.push(...passagesOf(paragraphs.join('\n\n'), heading));
    paragraphs = [];
  };
  for (const block of body.split(/\n[ \t]*\n+/)) {
    const trimmed = block.trim();
    if (trimmed === '') continue;
    const [first = '', ...rest] = trimmed.split('\n').map((line) => line.trim());
    const isHeading = isHeadingLine(first) && rest.length <= 1 && (rest[0] ?? '').length <= HEADING_CHARS_MAX;
    if (isHeading) {
      close();
      heading = [first, ...rest].join(' ').trim();
    } else paragraphs.push(trimmed);
  }
  close();
  return passages;
}
