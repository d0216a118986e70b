/** Hosts whose models think on between calls only where what they thought before comes back: DeepSeek and Moonshot answer 400 otherwise. */
import { isObject, type JsonObject } from '../canonical.js';
import { LongStrings } from '../long-strings.js';

/** What must have its thought: messages with calls (Moonshot), or every answer of a turn that has calls (DeepSeek). A turn ends with the user's next words. */
export type ThoughtsWanted = 'calls' | 'turns';

/** Both hold a model's text of thought. Hosts differ in which they write and read, clients in which they send back. */
const THOUGHT_NAMES = ['reasoning_content', 'reasoning'] as const;
export type ThoughtName = (typeof THOUGHT_NAMES)[number];

/** What a model thought before a message, in the field of that name or else in the other one; empty = not told. */
export function thoughtOf(message: JsonObject, name: ThoughtName): string {
  const told = [message[name], ...THOUGHT_NAMES.map((other) => message[other])];
  return told.find((text): text is string => typeof text === 'string' && text !== '') ?? '';
}

/** Whether a conversation lacks a thought that the host wants, and is sent under its own name. `messages`: JSON text. Most have no calls, and are not parsed. */
export function lacksThoughts(messages: Uint8Array, wanted: ThoughtsWanted): boolean {
  if (!Buffer.from(messages.buffer, messages.byteOffset, messages.length).includes('"tool_calls"')) return false;
  const list = new LongStrings(messages).parse();
  if (!Array.isArray(list)) return false;
  let hasCalls = false;
  let isLacking = false;
  for (const message of list as readonly unknown[]) {
    if (!isObject(message)) continue;
    if (message['role'] === 'user') {
      hasCalls = false;
      isLacking = false;
    } else if (message['role'] === 'assistant') {
      const calls = message['tool_calls'];
      const isCalling = Array.isArray(calls) && calls.length > 0;
      hasCalls ||= isCalling;
      if ((isCalling || wanted === 'turns') && thoughtOf(message, 'reasoning_content') === '') isLacking = true;
      if (hasCalls && isLacking) return true;
    }
  }
  return false;
}
