/** The messages of a request as plugins see and change them. What the client sent is never changed in place. */
import { isObject } from '@signalbox/kernel/json-object';

export type ContentPart = Readonly<Record<string, unknown>>;
export interface Message {
  readonly role: string;
  readonly content?: unknown;
  readonly [field: string]: unknown;
}

/** A content part and where it stands. */
export interface PlacedPart {
  readonly message: number;
  readonly part: number;
  readonly value: ContentPart;
}

/** Of a message that may be megabytes nobody looks up more. */
const LOOKUP_CHARS_MAX = 32_768;

/** Text of a message's content, its text parts joined by line breaks. */
export function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.flatMap((part: unknown) => (isObject(part) && typeof part['text'] === 'string' ? [part['text']] : [])).join('\n');
}

/** The first characters of a text. One that the cut would split is left out: half of it is no text, and providers refuse a request that holds such a half. */
export function firstChars(text: string, max: number): string {
  return text.length <= max ? text : text.slice(0, max).replace(/[\uD800-\uDBFF]$/, '');
}

export class Conversation {
  private readonly messages: Message[];
  private readonly blocks: string[] = [];
  /** Parts that stand in the place of a client's own. */
  private readonly replacements = new Set<unknown>();
  private isChanged = false;

  /** `messages` is the JSON array that edge has validated. Throws on anything else. */
  constructor(messages: readonly unknown[]) {
    this.messages = messages.map((message) => {
      if (!isObject(message) || typeof message['role'] !== 'string') throw new TypeError('A message has a role.');
      return message as Message;
    });
  }

  /** What the user wrote in the last of its messages, to look things up by: its beginning, without texts of files that were put there since, empty when there is none. NUL characters, which no store takes, are blanks. */
  lastUserText(): string {
    const content = this.messages.findLast((message) => message.role === 'user')?.content;
    const text = textOf(Array.isArray(content) ? content.filter((part) => !this.replacements.has(part)) : content);
    return firstChars(text.trimStart(), LOOKUP_CHARS_MAX).replaceAll('\0', ' ');
  }

  /** Parts of that type in messages of users, in order. */
  parts(type: string): readonly PlacedPart[] {
    return this.messages.flatMap((message, index) =>
      message.role === 'user' && Array.isArray(message.content)
        ? (message.content as readonly unknown[]).flatMap((value, part) => (isObject(value) && value['type'] === type ? [{ message: index, part, value }] : []))
        : [],
    );
  }

  /** Puts another part where that one stands. */
  replacePart({ message, part }: PlacedPart, value: ContentPart): void {
    const found = this.messages[message];
    if (found === undefined || !Array.isArray(found.content)) return;
    const content = [...(found.content as readonly unknown[])];
    content[part] = value;
    this.replacements.add(value);
    this.messages[message] = { ...found, content };
    this.isChanged = true;
  }

  /** Adds a system message behind those that the client began with; several stand in the order of the calls. */
  addSystemBlock(text: string): void {
    this.blocks.push(text);
    this.isChanged = true;
  }

  /** The messages as they are to be sent; undefined when nothing was changed. */
  changed(): readonly Message[] | undefined {
    if (!this.isChanged) return undefined;
    const first = this.messages.findIndex((message) => message.role !== 'system' && message.role !== 'developer');
    const at = first === -1 ? this.messages.length : first;
    return [...this.messages.slice(0, at), ...this.blocks.map((content) => ({ role: 'system', content })), ...this.messages.slice(at)];
  }
}
