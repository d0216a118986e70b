/** Writes JSON objects member by member, one behind the other in one buffer, so that nothing of them is on the heap. */
import { hasDigits, writeDigits } from '@signalbox/ledger-core/digits';

const SPACE_BYTES = 2_048;
/** Enough for an integer, a name and the punctuation around them. */
const SLACK_BYTES = 64;
/** Most bytes of one UTF-16 code unit: `\u0001`. */
const UNIT_BYTES_MAX = 6;
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN = 0x7b;
const CLOSE = 0x7d;

/** One of the texts of a `JsonTexts`. */
export class KeptText {
  constructor(private readonly texts: JsonTexts, private readonly start: number, readonly bytes: number) {}

  /** Copies it to `at` in `target`, which has room for it. */
  copyTo(target: Buffer, at: number): void {
    this.texts.space.copy(target, at, this.start, this.start + this.bytes);
  }

  toString(): string {
    return this.texts.space.toString('utf8', this.start, this.start + this.bytes);
  }
}

/** Names must be plain ASCII of at most 32 characters. Not re-entrant: one object is written from `begin` to `end` before the next. */
export class JsonTexts {
  space: Buffer;
  private at = 0;
  private start = 0;
  private isFirst = true;

  /** Reserves space for this many bytes of texts; grows if necessary. */
  constructor(bytes = SPACE_BYTES) {
    this.space = Buffer.allocUnsafeSlow(bytes);
  }

  begin(): void {
    this.start = this.at;
    this.brace();
  }

  /** The object, without blanks. */
  end(): KeptText {
    this.close();
    return new KeptText(this, this.start, this.at - this.start);
  }

  /** Begins a member that is an object. */
  open(name: string): void {
    this.name(name);
    this.brace();
  }

  close(): void {
    this.room(SLACK_BYTES);
    this.byte(CLOSE);
    this.isFirst = false;
  }

  text(name: string, value: string): void {
    this.name(name);
    this.quoted(value);
  }

  /** A member that is an integer or `true`. */
  plain(name: string, value: number | true): void {
    this.name(name);
    if (value !== true && hasDigits(value)) this.at = writeDigits(this.space, this.at, value);
    else this.ascii(String(value));
  }

  numbers(name: string, values: readonly number[]): void {
    this.name(name);
    const text = JSON.stringify(values);
    this.room(text.length);
    this.ascii(text);
  }

  private brace(): void {
    this.room(SLACK_BYTES);
    this.byte(OPEN);
    this.isFirst = true;
  }

  private name(name: string): void {
    this.room(SLACK_BYTES);
    if (!this.isFirst) this.byte(COMMA);
    this.isFirst = false;
    this.byte(QUOTE);
    this.ascii(name);
    this.byte(QUOTE);
    this.byte(COLON);
  }

  private quoted(value: string): void {
    const { length } = value;
    this.room(length * UNIT_BYTES_MAX + SLACK_BYTES);
    const { space, at } = this;
    space[at] = QUOTE;
    for (let i = 0; i < length; i += 1) {
      const code = value.charCodeAt(i);
      if (code < 0x20 || code > 0x7e || code === QUOTE || code === BACKSLASH) {
        this.at += space.write(JSON.stringify(value), at);
        return;
      }
      space[at + 1 + i] = code;
    }
    space[at + 1 + length] = QUOTE;
    this.at = at + length + 2;
  }

  private ascii(text: string): void {
    const { space, at } = this;
    const { length } = text;
    for (let i = 0; i < length; i += 1) space[at + i] = text.charCodeAt(i);
    this.at = at + length;
  }

  private byte(code: number): void {
    this.space[this.at] = code;
    this.at += 1;
  }

  /** Makes room for `bytes` and a closing brace. */
  private room(bytes: number): void {
    if (this.at + bytes + SLACK_BYTES <= this.space.length) return;
    const space = Buffer.allocUnsafeSlow((this.at + bytes + SLACK_BYTES) * 2);
    this.space.copy(space, 0, 0, this.at);
    this.space = space;
  }
}
