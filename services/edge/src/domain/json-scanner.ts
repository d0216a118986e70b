/** Reads strict JSON piece by piece and returns the part that is certain; what may still need a repair is held back. */

/** Deeper nesting is not read further. */
const DEPTH_MAX = 1_000;

const TAB = 9;
const NEWLINE = 10;
const RETURN = 13;
const SPACE = 32;
const QUOTE = 34;
const COMMA = 44;
const MINUS = 45;
const DIGIT_0 = 48;
const DIGIT_9 = 57;
const COLON = 58;
const OPEN_ARRAY = 91;
const BACKSLASH = 92;
const CLOSE_ARRAY = 93;
const LOWER_U = 117;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;

const ESCAPES: ReadonlySet<number> = new Set([...'"\\/bfnrt'].map((character) => character.charCodeAt(0)));
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const NUMBER_PREFIX = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/;
const WORDS: readonly string[] = ['true', 'false', 'null'];

type State = 'value' | 'first-value' | 'key' | 'first-key' | 'colon' | 'string' | 'string-ended' | 'number' | 'word' | 'after' | 'done' | 'stuck';

const isSpace = (code: number): boolean => code === SPACE || code === NEWLINE || code === RETURN || code === TAB;
const isDigit = (code: number): boolean => code >= DIGIT_0 && code <= DIGIT_9;
const isNumberPart = (code: number): boolean => isDigit(code) || code === 43 || code === MINUS || code === 46 || code === 69 || code === 101;
const isLetter = (code: number): boolean => (code >= 65 && code <= 90) || (code >= 97 && code <= 122);
const isHex = (code: number): boolean => isDigit(code) || (code >= 65 && code <= 70) || (code >= 97 && code <= 102);

/**
 * Reads one value, which begins at the first character. `push` returns what has become certain: text that is part of the
 * value whatever follows. Held back are the quote that ends a string (it may turn out to be an inner one), a comma
 * (it may be one too many), a member's key until its value begins, blank space until the text after it is read, and
 * numbers and words until they end.
 * A comma before a closing bracket is left out, the only repair made here; both are held back until what follows shows
 * that the bracket is one, and no part of a string that an inner quote seemed to end.
 */
export class JsonScanner {
  /** The text that was pushed. */
  source = '';
  /** What `push`, `end` and `close` returned. */
  given = '';
  /** A comma was left out. */
  hasDroppedComma = false;
  private state: State = 'value';
  private readonly stack: number[] = [];
  /** The part of `source` that was not returned yet; it begins at `base`. Long texts are never read twice. */
  private buffer = '';
  private base = 0;
  private at = 0;
  /** Position in `source` up to which text was returned or left out. */
  private taken = 0;
  /** Position in `source` up to which text is certain: returned at the end of `push`, in one piece. */
  private certain = 0;
  /** Text to be returned by the present call. */
  private fresh = '';
  /** Position of a comma that is held back, or -1. */
  private comma = -1;
  /** The comma before the bracket that seemed to end the value read last, or -1. */
  private extraComma = -1;
  /** Where the present number or word begins, or -1: nothing from there on is certain. */
  private tokenStart = -1;
  private isKey = false;
  private valueEnd = -1;
  /** Where an unfinished escape begins, or -1, and the hex digits it still needs. */
  private escapeStart = -1;
  private hexLeft = 0;

  /** The value is complete; `rest` follows it. */
  get isDone(): boolean {
    return this.state === 'done';
  }

  /** The text stopped being strict JSON; `push` returns nothing more. */
  get isStuck(): boolean {
    return this.state === 'stuck';
  }

  /** The part of a complete value that is held back. */
  heldEnd(): string {
    return this.buffer.slice(this.taken - this.base, this.at - this.base);
  }

  /** The text after the value that was pushed until the value was complete. */
  rest(): string {
    return this.buffer.slice(this.at - this.base);
  }

  /** What is held back. */
  held(): string {
    return this.buffer.slice(this.taken - this.base);
  }

  push(text: string): string {
    // Characters are read from the piece: reading one of `buffer` would copy all that is held back, for every piece of a long run of blanks.
    const start = this.source.length;
    this.source += text;
    this.buffer += text;
    const end = start + text.length;
    while (this.at < end && this.state !== 'done' && this.state !== 'stuck') {
      if (this.state === 'string' && this.escapeStart < 0) this.skipLetters(text, start);
      if (this.at < end && this.step(text.charCodeAt(this.at - start))) this.at += 1;
    }
    if (this.state !== 'stuck' && this.state !== 'done') this.takeTo(this.certainTo(end));
    this.flush();
    this.buffer = this.buffer.slice(this.taken - this.base);
    this.base = this.taken;
    return this.give();
  }

  /** Call when nothing after the value belongs to it: gives the part of its end that was held back. */
  settle(): string {
    this.dropExtraComma();
    return this.give();
  }

  /** The source ended: ends a number or word that is the whole value. */
  end(): string {
    if (this.stack.length === 0 && (this.state === 'number' || this.state === 'word') && this.endToken()) this.finish(this.at);
    return this.give();
  }

  /** Closes a text that was cut off: the open string, then the brackets. A member without a value and an unfinished escape are left out. Only to be called if not stuck. */
  close(): string {
    this.dropExtraComma();
    const isValueString = (this.state === 'string' || this.state === 'string-ended') && !this.isKey;
    const token = this.tokenStart < 0 ? '' : this.buffer.slice(this.tokenStart - this.base);
    let tail = '';
    if (isValueString) tail = '"';
    else if (this.state === 'number') tail = NUMBER_PREFIX.exec(token)?.[0] ?? '';
    else if (this.state === 'word') tail = WORDS.find((word) => word.startsWith(token)) ?? '';
    if (!isValueString && tail !== '') this.takeTo(this.tokenStart);
    this.flush();
    this.fresh += tail;
    for (const bracket of this.stack.reverse()) this.fresh += bracket === OPEN_OBJECT ? '}' : ']';
    this.state = 'done';
    return this.give();
  }

  private give(): string {
    this.flush();
    const { fresh } = this;
    this.fresh = '';
    this.given += fresh;
    return fresh;
  }

  private certainTo(end: number): number {
    switch (this.state) {
      case 'string':
        return this.isKey ? this.certain : this.escapeStart >= 0 ? this.escapeStart : end;
      case 'string-ended':
        return this.isKey ? this.certain : this.valueEnd - 1;
      case 'after':
        return this.extraComma >= 0 ? this.certain : this.valueEnd;
      default:
        return this.certain;
    }
  }

  private takeTo(end: number): void {
    if (end > this.certain) this.certain = end;
  }

  private flush(): void {
    if (this.certain <= this.taken) return;
    this.fresh += this.buffer.slice(this.taken - this.base, this.certain - this.base);
    this.taken = this.certain;
  }

  /** Reads one character; false = read it again in the new state. */
  private step(code: number): boolean {
    switch (this.state) {
      case 'string':
        this.stringPart(code);
        return true;
      case 'string-ended':
        return this.behindString(code);
      case 'number':
        return isNumberPart(code) || this.endOfToken(code);
      case 'word':
        return isLetter(code) || this.endOfToken(code);
      case 'after':
        return this.behindValue(code);
      case 'colon':
        if (code === COLON) this.state = 'value';
        else if (!isSpace(code)) this.state = 'stuck';
        return true;
      case 'key':
      case 'first-key':
        this.beginKey(code);
        return true;
      default:
        this.beginValue(code);
        return true;
    }
  }

  /** Skips to the next character of the piece that ends or breaks the string, or begins an escape. */
  private skipLetters(piece: string, start: number): void {
    let index = this.at - start;
    for (; index < piece.length; index += 1) {
      const code = piece.charCodeAt(index);
      if (code === QUOTE || code === BACKSLASH || code < SPACE) break;
    }
    this.at = start + index;
  }

  private stringPart(code: number): void {
    if (this.escapeStart >= 0) this.escapePart(code);
    else if (code === BACKSLASH) this.escapeStart = this.at;
    else if (code === QUOTE) {
      this.valueEnd = this.at + 1;
      this.state = 'string-ended';
      if (this.stack.length === 0) this.finish(this.valueEnd);
    } else if (code < SPACE) this.stick(this.at);
  }

  private escapePart(code: number): void {
    if (this.hexLeft > 0) {
      if (!isHex(code)) this.stick(this.escapeStart);
      else if ((this.hexLeft -= 1) === 0) this.escapeStart = -1;
    } else if (code === LOWER_U) this.hexLeft = 4;
    else if (ESCAPES.has(code)) this.escapeStart = -1;
    else this.stick(this.escapeStart);
  }

  private behindString(code: number): boolean {
    if (isSpace(code)) return true;
    if (this.isKey) {
      this.state = code === COLON ? 'value' : 'stuck';
      return true;
    }
    if (code !== COMMA && code !== this.closer()) {
      this.stick(this.valueEnd - 1);
      return true;
    }
    this.state = 'after';
    return false;
  }

  private behindValue(code: number): boolean {
    if (isSpace(code)) return true;
    if (code === COMMA || code === this.closer()) this.dropExtraComma();
    else if (this.extraComma >= 0) {
      this.state = 'stuck';
      return true;
    }
    this.takeTo(this.valueEnd);
    if (code === COMMA) {
      this.comma = this.at;
      this.state = this.stack.at(-1) === OPEN_OBJECT ? 'key' : 'value';
    } else this.closeBracket(code);
    return true;
  }

  private closer(): number {
    return this.stack.at(-1) === OPEN_OBJECT ? CLOSE_OBJECT : CLOSE_ARRAY;
  }

  private closeBracket(code: number): void {
    if (this.stack.length === 0 || code !== this.closer()) {
      this.state = 'stuck';
      return;
    }
    if (this.comma < 0) this.takeTo(this.at + 1);
    this.extraComma = this.comma;
    this.comma = -1;
    this.stack.pop();
    this.valueEnd = this.at + 1;
    this.state = 'after';
    if (this.stack.length === 0) this.finish(this.valueEnd);
  }

  private dropExtraComma(): void {
    if (this.extraComma < 0) return;
    this.takeTo(this.extraComma);
    this.flush();
    this.taken = this.extraComma + 1;
    this.extraComma = -1;
    this.hasDroppedComma = true;
    this.takeTo(this.valueEnd);
  }

  /** The value is complete and ends before `end`. */
  private finish(end: number): void {
    if (this.extraComma < 0) this.takeTo(end);
    this.state = 'done';
    // `push` moves on by one after `step`.
    this.at = this.at < end ? end - 1 : end;
  }

  private beginKey(code: number): void {
    if (isSpace(code)) return;
    if (code === QUOTE) {
      this.isKey = true;
      this.state = 'string';
    } else if (code === CLOSE_OBJECT) this.closeBracket(code);
    else this.state = 'stuck';
  }

  private beginValue(code: number): void {
    if (isSpace(code)) return;
    const canClose = code === CLOSE_ARRAY && this.stack.at(-1) === OPEN_ARRAY && (this.state === 'first-value' || this.comma >= 0);
    if (canClose) {
      this.closeBracket(code);
      return;
    }
    const isOpening = code === OPEN_OBJECT || code === OPEN_ARRAY;
    if (isOpening && this.stack.length >= DEPTH_MAX) {
      this.state = 'stuck';
      return;
    }
    if (isOpening || code === QUOTE) {
      this.comma = -1;
      this.takeTo(this.at + 1);
      if (isOpening) this.stack.push(code);
      this.isKey = false;
      this.state = code === QUOTE ? 'string' : code === OPEN_OBJECT ? 'first-key' : 'first-value';
    } else if (code === MINUS || isDigit(code)) this.beginToken('number');
    else if (isLetter(code)) this.beginToken('word');
    else this.state = 'stuck';
  }

  private beginToken(state: 'number' | 'word'): void {
    this.tokenStart = this.at;
    this.state = state;
  }

  private endOfToken(code: number): boolean {
    // In 0x1F, 12% and 1_000 not even the first digits are certain.
    const isPart = this.stack.length > 0 && !isSpace(code) && code !== COMMA && code !== this.closer();
    if (isPart || !this.endToken()) this.state = 'stuck';
    else if (this.stack.length === 0) this.finish(this.at);
    return false;
  }

  private endToken(): boolean {
    const token = this.buffer.slice(this.tokenStart - this.base, this.at - this.base);
    if (this.state === 'number' ? !NUMBER.test(token) : !WORDS.includes(token)) return false;
    this.comma = -1;
    this.valueEnd = this.at;
    this.takeTo(this.at);
    this.state = 'after';
    return true;
  }

  /** Becomes stuck. Everything up to `certain` is certain, unless it belongs to a key. */
  private stick(certain: number): void {
    if (!this.isKey) this.takeTo(certain);
    this.state = 'stuck';
  }
}
