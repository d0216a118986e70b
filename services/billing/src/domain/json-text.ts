/** Writes the text of a JSON object member by member into a reused buffer, so that nothing but the text is allocated. */

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

/** Names must be plain ASCII of at most 32 characters. Not re-entrant: one object is written from `begin` to `end` before the next. */
export class JsonText {
  private space = Buffer.allocUnsafeSlow(SPACE_BYTES);
  private at = 0;
  private isFirst = true;
  private isAscii = true;

  begin(): void {
    this.at = 0;
    this.isAscii = true;
    this.brace();
  }

  /** The whole text, without blanks. */
  end(): string {
    this.close();
    const text = this.space.toString(this.isAscii ? 'latin1' : 'utf8', 0, this.at);
    // Space that grew for a long text must not be kept for ever.
    if (this.space.length > 16 * SPACE_BYTES) this.space = Buffer.allocUnsafeSlow(SPACE_BYTES);
    return text;
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
    this.ascii(String(value));
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
        this.isAscii = false;
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
