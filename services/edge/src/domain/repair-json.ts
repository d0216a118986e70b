/**
 * Repairs the mistakes of syntax that models make in JSON: quotes, escapes, commas, comments, literals. It reads the
 * text once, in linear time. No part of a value is dropped, and ambiguous text is not repaired: a wrong value is worse
 * than none.
 */

export interface Repaired {
  /** Correct parts are unchanged, blank space included. */
  readonly text: string;
  /** Where the value ends in the source. */
  readonly end: number;
  /** The source ended within the value. */
  readonly isClosed: boolean;
}

/** Deeper nesting is not repaired. */
const DEPTH_MAX = 1_000;
/** Quotes that may end a string, by the one that opens it. */
const QUOTES: ReadonlyMap<string, string> = new Map([['"', '"'], ["'", "'"], ['`', '`'], ['“', '”"'], ['”', '”"'], ['‘', "’'"], ['’', "’'"]]);
const ESCAPE = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y;
/** An incomplete escape at the end of a text that was cut off. */
const ESCAPE_CUT = /\\(?:u[\da-fA-F]{0,3})?$/y;
/** Escapes of other languages; any other backslash is kept as a literal one. */
const FOREIGN_ESCAPE = /\\(?:(['`])|\r?\n)/y;
const SPACE = /\s/;
const DIGIT = /\d/;
const LETTER = /\p{L}/u;
const LITERALS: ReadonlyMap<string, string> = new Map([['true', 'true'], ['false', 'false'], ['null', 'null'], ['True', 'true'], ['False', 'false'], ['None', 'null'], ['undefined', 'null'], ['NaN', 'null']]);
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
/** Numbers as other languages write them: with a plus, without digits before or after the point, with digits in groups. */
const LOOSE_NUMBER = /^([+-]?)(\d+(?:_\d+)*)?(?:\.(\d*))?([eE][+-]?\d+)?$/;
const HEX_NUMBER = /^([+-]?)(0[xX][\da-fA-F]{1,16})$/;
const TOKEN = /[^\s,\]}{["'`:/#]+/y;
const BARE = /[^,\]}{["`\n]+/y;
const BARE_KEY = /[^:,{}[\]"'`“”\n]+/y;
const COMMENT_BEHIND = /\s(?:\/\/|\/\*|#)/;
/** A comment, without the end of its line. */
const COMMENT = /\/\*[^]*?(?:\*\/|$)|(?:\/\/|#)[^\n]*/y;
/** Characters that are not quotes: escaped ones and apostrophes. */
const NO_QUOTE = /\\.|(?<=\p{L})['’](?=\p{L})/gu;
/** A key with its colon, or one that is cut off by the end of the text. */
const KEY_AHEAD = /(?:"(?:[^"\\\n]|\\.){0,256}(?:"\s*(?::|$)|$)|'[^'\n]{0,256}(?:'\s*(?::|$)|$)|`[^`\n]{0,256}(?:`\s*(?::|$)|$)|[“”][^“”\n]{0,256}(?:[“”]\s*(?::|$)|$)|[‘’][^‘’\n]{0,256}(?:[‘’]\s*(?::|$)|$)|[\p{L}\d_$][\p{L}\d_$-]{0,256}\s*(?::|$))/uy;
/** A key without quotes, its colon, and the beginning of a value. */
const BARE_MEMBER_AHEAD = /[\p{L}\d_$][\p{L}\d_$-]{0,256}[ \t]*:\s*["'`“‘{[\d-]/uy;
const VALUE_AHEAD = /["'`“‘{[\d+-]|\.\d|(?:true|false|null|True|False|None|undefined|NaN)(?![\p{L}\d_])/uy;

class Unclear extends Error {}

function matches(pattern: RegExp, text: string, at: number): boolean {
  pattern.lastIndex = at;
  return pattern.test(text);
}

const quotesIn = (text: string, quote: string): number => text.replace(NO_QUOTE, '').split(quote).length - 1;

class Reader {
  out = '';
  at = 0;
  isClosed = false;
  private depth = 0;
  /** The member that is being read has a key without quotes. */
  private isBareKey = false;
  /** A string or key had single quotes. */
  private hasSingle = false;

  constructor(
    private readonly text: string,
    private readonly isCut: boolean,
  ) {}

  container(): void {
    const isObject = this.text[this.at] === '{';
    const close = isObject ? '}' : ']';
    if ((this.depth += 1) > DEPTH_MAX) throw new Unclear();
    this.out += isObject ? '{' : '[';
    this.at += 1;
    /** The previous element has neither quotes nor brackets. */
    let isBehindBare = false;
    for (let isFirst = true; ; isFirst = false) {
      const gap = this.gap();
      let behind = '';
      const hasComma = this.text[this.at] === ',';
      // Between two commas of an object nothing is missing: one is surplus. In an array an element may be missing, so only one comma is taken.
      while (this.text[this.at] === ',' && (isObject || (behind === '' && !isFirst))) {
        this.at += 1;
        behind += this.gap() + (isObject ? '' : ' ');
      }
      if (!isObject) behind = behind.slice(0, -1);
      const next = this.text[this.at];
      if (next === close) {
        this.at += 1;
        this.out += gap + behind + close;
        break;
      }
      const { out } = this;
      if (next === ',' || next === '}' || next === ']') throw new Unclear();
      if (next !== undefined) {
        this.out += isFirst ? gap + behind : hasComma ? `${gap},${behind}` : `,${gap}`;
        if (isObject ? this.member() : this.value(false, isBehindBare)) {
          isBehindBare = !QUOTES.has(next) && next !== '{' && next !== '[';
          continue;
        }
      }
      this.endOfText();
      this.out = out + close;
      break;
    }
    this.depth -= 1;
  }

  private endOfText(): void {
    if (!this.isCut) throw new Unclear();
    this.isClosed = true;
  }

  /** Blank space, without the comments in it. */
  private gap(): string {
    const { text } = this;
    let gap = '';
    for (;;) {
      const character = text[this.at] ?? '';
      const comment = this.commentAt(this.at);
      if (comment !== '') {
        // An odd number of quotes: the comment sign is probably part of a string.
        if (quotesIn(comment, '"') % 2 !== 0 || (this.hasSingle && quotesIn(comment, "'") % 2 !== 0)) throw new Unclear();
        this.at += comment.length;
      } else if (SPACE.test(character)) {
        gap += ' \t\r\n'.includes(character) ? character : ' ';
        this.at += 1;
      } else return gap;
    }
  }

  /** The comment at `at`; empty = none. */
  private commentAt(at: number): string {
    COMMENT.lastIndex = at;
    return COMMENT.exec(this.text)?.[0] ?? '';
  }

  private skipBlank(from: number): number {
    let at = from;
    while (SPACE.test(this.text[at] ?? '')) at += 1;
    return at;
  }

  /** False = the text ended before its value. */
  private member(): boolean {
    const key = this.key();
    if (key === undefined) return false;
    const gap = this.gap();
    if (this.at >= this.text.length) return false;
    if (this.text[this.at] !== ':') throw new Unclear();
    this.at += 1;
    this.out += `${key}${gap}:${this.gap()}`;
    return this.at < this.text.length && this.value(true);
  }

  private key(): string | undefined {
    const { text } = this;
    const ends = QUOTES.get(text[this.at] ?? '');
    this.hasSingle ||= text[this.at] === "'";
    this.isBareKey = ends === undefined;
    if (ends === undefined) {
      BARE_KEY.lastIndex = this.at;
      const name = BARE_KEY.exec(text)?.[0] ?? '';
      this.at += name.length;
      if (this.at >= text.length) return undefined;
      if (text[this.at] === '"' && !name.includes(' ')) this.at += 1;
      if (name.trim() === '') throw new Unclear();
      return JSON.stringify(name.trim());
    }
    let key = '';
    for (this.at += 1; this.at < text.length; ) {
      const character = text[this.at] ?? '';
      if (ends.includes(character) && !(character !== '"' && this.isApostrophe(this.at))) {
        this.at += 1;
        return `"${key}"`;
      }
      key += this.character(character);
    }
    return undefined;
  }

  private isApostrophe(at: number): boolean {
    return LETTER.test(this.text[at - 1] ?? '') && LETTER.test(this.text[at + 1] ?? '');
  }

  /** One character or escape of a string in JSON's form. */
  private character(character: string): string {
    const { text, at } = this;
    this.at += 1;
    if (character === '"') return '\\"';
    if (character < ' ') return JSON.stringify(character).slice(1, -1);
    if (character !== '\\') return character;
    if (matches(ESCAPE, text, at)) {
      this.at = ESCAPE.lastIndex;
      return text.slice(at, this.at);
    }
    if (this.isCut && matches(ESCAPE_CUT, text, at)) {
      this.at = text.length;
      return '';
    }
    FOREIGN_ESCAPE.lastIndex = at;
    const foreign = FOREIGN_ESCAPE.exec(text);
    if (foreign === null) return '\\\\';
    this.at = FOREIGN_ESCAPE.lastIndex;
    return foreign[1] ?? '\\n';
  }

  /** False = the text ended before the value. */
  private value(isMember: boolean, isBehindBare = false): boolean {
    const { text } = this;
    const first = text[this.at] ?? '';
    if (first === '{' || first === '[') this.container();
    else if (QUOTES.has(first)) {
      this.out += '"';
      this.string(isMember);
      // "one" + "two"
      for (let next = this.skipBlank(this.at); text[next] === '+'; next = this.skipBlank(this.at)) {
        this.at = this.skipBlank(next + 1);
        if (!QUOTES.has(text[this.at] ?? '')) throw new Unclear();
        this.string(isMember);
      }
      this.out += '"';
    } else return this.bare(isMember, isBehindBare);
    return true;
  }

  /** The content of a string. It ends at a quote after which a value may end; other quotes belong to the text. */
  private string(isMember: boolean): void {
    const { text } = this;
    const opening = text[this.at] ?? '';
    const ends = QUOTES.get(opening) ?? '';
    this.hasSingle ||= opening === "'";
    if (opening === text[this.at + 1] && opening === text[this.at + 2]) throw new Unclear();
    let value = '';
    let curly = 0;
    let square = 0;
    /** Inner quotes, without apostrophes and signs of inches: if their number is odd, one of them was the end. */
    let inner = 0;
    let escaped = 0;
    /** In an array: a quote followed a comma, so that it may open the next element. */
    let mayBeTwo = false;
    /** The latest comma, if only blanks followed it so far. */
    let comma: { readonly at: number; readonly value: string } | undefined;
    for (this.at += 1; this.at < text.length; ) {
      const { at } = this;
      const character = text[at] ?? '';
      if (ends.includes(character)) {
        const isEnd = this.isEnd(at, isMember, isMember ? curly : square);
        if (isEnd === true) {
          if (inner % 2 !== 0 && (escaped % 2 === 0 || mayBeTwo)) throw new Unclear();
          this.at += 1;
          this.out += value;
          return;
        }
        if (isEnd === undefined) throw new Unclear();
        // A key begins here: the closing quote of the value is missing.
        if (comma !== undefined && isMember && matches(KEY_AHEAD, text, at)) {
          if (inner % 2 !== 0 || comma.value.endsWith('\\"')) throw new Unclear();
          this.at = comma.at;
          this.out += comma.value;
          return;
        }
        mayBeTwo ||= comma !== undefined && !isMember;
        if (!DIGIT.test(text[at - 1] ?? '') && !(character !== '"' && this.isApostrophe(at))) inner += 1;
      }
      if (character === ',') comma = { at, value };
      else if (comma !== undefined && !SPACE.test(character)) comma = undefined;
      if (character === '\\' && text[at + 1] === '"') escaped += 1;
      if (character === '{') curly += 1;
      else if (character === '}') curly -= 1;
      else if (character === '[') square += 1;
      else if (character === ']') square -= 1;
      value += this.character(character);
    }
    this.endOfText();
    this.out += value;
  }

  /** Whether the quote at `at` ends the string. `open`: how many brackets of the container's kind the string has opened. Undefined = it ends a key. */
  private isEnd(at: number, isMember: boolean, open: number): boolean | undefined {
    const { text } = this;
    const next = this.skipBlank(at + 1);
    const character = text[next];
    if (character === undefined) return true;
    const isComment = (place: number): boolean => text[place] === '/' && (text[place + 1] === '/' || text[place + 1] === '*');
    const isClose = (place: number): boolean => text[place] === (isMember ? '}' : ']');
    if (character === ':') return undefined;
    if (isComment(next)) return this.isEndBefore(next, at);
    if (isClose(next)) {
      if (open <= 0) return true;
      const behind = text[this.skipBlank(next + 1)];
      return behind === undefined || ',}]'.includes(behind);
    }
    if (character === '+') return QUOTES.has(text[this.skipBlank(next + 1)] ?? '');
    if (character === ',') {
      const ahead = this.skipBlank(next + 1);
      if (isComment(ahead) || text[ahead] === '#') return this.isEndBefore(ahead, at);
      return ahead >= text.length || isClose(ahead) || matches(isMember ? KEY_AHEAD : VALUE_AHEAD, text, ahead);
    }
    // The comma is missing.
    if (isMember) return this.isMemberAhead(next);
    return next > at + 1 && (QUOTES.has(character) ? !',]'.includes(text[this.skipBlank(next + 1)] ?? ',') : matches(VALUE_AHEAD, text, next));
  }

  /** True = the comment at `start` is one, so the quote at `at` ends the string. Undefined = unclear: the comment sign may be part of the string, which ends later. */
  private isEndBefore(start: number, at: number): true | undefined {
    const { text } = this;
    const quotes = quotesIn(this.commentAt(start), text[at] ?? '');
    const isTouching = start === at + 1;
    // "http:"//host
    if (isTouching && (quotes > 0 || text[at - 1] === ':')) return undefined;
    return quotes % 2 === 0 ? true : undefined;
  }

  /** A number, a word or a string without quotes. */
  private bare(isMember: boolean, isBehindBare: boolean): boolean {
    const { text, at } = this;
    TOKEN.lastIndex = at;
    const token = TOKEN.exec(text)?.[0] ?? '';
    const literal = this.literal(token, isMember);
    if (literal !== undefined && this.isEndOfToken(at + token.length, isMember)) {
      this.out += literal;
      this.at += token.length;
      return true;
    }
    BARE.lastIndex = at;
    const all = BARE.exec(text)?.[0] ?? '';
    const comment = all.search(COMMENT_BEHIND);
    const bare = (comment < 0 ? all : all.slice(0, comment)).trim();
    this.at += comment < 0 ? all.length : comment;
    if (this.at >= text.length) {
      const whole = [...LITERALS.keys()].find((word) => word.startsWith(bare));
      if (whole === undefined && /^[-+.\d]/.test(bare)) return false;
      this.out += whole === undefined ? JSON.stringify(bare) : (LITERALS.get(whole) ?? '');
      this.endOfText();
      return true;
    }
    const next = text[this.at] ?? '';
    if (next === '"') {
      // A string whose first quote is missing. After a bare element that quote may have been before that element.
      const behind = text[this.skipBlank(this.at + 1)] ?? ',';
      if (!',}]'.includes(behind) || comment >= 0 || isBehindBare || bare.includes('\\') || this.isBareKey) throw new Unclear();
      this.at += 1;
    } else if ('{[`'.includes(next) || ('}]'.includes(next) && text[this.at + 1] === '"')) throw new Unclear();
    const isUnclear = bare === '' || /^(?:\.\.\.|…|\\|[-+]?Infinity)|['’”]$/.test(bare) || /:(?:\s|$)/.test(bare) || bare.split('(').length !== bare.split(')').length;
    if (isUnclear) throw new Unclear();
    this.out += JSON.stringify(bare);
    return true;
  }

  /** The token in JSON's form; undefined = it is a string. */
  private literal(token: string, isMember: boolean): string | undefined {
    const word = LITERALS.get(token);
    if (word !== undefined || NUMBER.test(token)) return word ?? token;
    const hex = HEX_NUMBER.exec(token);
    if (hex !== null) return `${hex[1] === '-' ? '-' : ''}${String(BigInt(hex[2] ?? ''))}`;
    const loose = LOOSE_NUMBER.exec(token);
    if (loose === null) return undefined;
    const [, sign = '', whole = '', fraction = '', exponent = ''] = loose;
    if (whole === '' && fraction === '') return undefined;
    if (/^0\d/.test(whole)) {
      // A code with leading zeros, or the digits after a thousands separator.
      if (!isMember) throw new Unclear();
      return JSON.stringify(token);
    }
    return `${sign === '-' ? '-' : ''}${whole === '' ? '0' : whole.replaceAll('_', '')}${fraction === '' ? '' : `.${fraction}`}${exponent}`;
  }

  private isEndOfToken(end: number, isMember: boolean): boolean {
    const { text } = this;
    const next = this.skipBlank(end);
    const character = text[next];
    if (character === undefined || ',]}{["'.includes(character) || text.slice(end, next).includes('\n')) return true;
    if (character === '/' || character === '#') return true;
    if (next === end) return false;
    return isMember ? this.isMemberAhead(next) : matches(VALUE_AHEAD, text, next);
  }

  /** Whether a member begins at `at`, although no comma precedes it. */
  private isMemberAhead(at: number): boolean {
    return matches(QUOTES.has(this.text[at] ?? '') ? KEY_AHEAD : BARE_MEMBER_AHEAD, this.text, at);
  }
}

/** `source` begins with a bracket. `isCut`: what is open at its end may be closed. Undefined = the text is ambiguous. */
export function repairJson(source: string, isCut: boolean): Repaired | undefined {
  const reader = new Reader(source, isCut);
  try {
    reader.container();
  } catch (error) {
    if (error instanceof Unclear) return undefined;
    throw error;
  }
  return { text: reader.out, end: reader.at, isClosed: reader.isClosed };
}
