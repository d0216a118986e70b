/** Hosts whose models think on between calls only where what they thought before comes back: DeepSeek and Moonshot answer 400 otherwise. */
import { isObject } from '../canonical.js';
import { LongStrings } from '../long-strings.js';

/** What must have its thought: messages with calls (Moonshot), or every answer of a turn that has calls (DeepSeek). A turn ends with the user's next words. */
export type ThoughtsWanted = 'calls' | 'turns';

/** Whether a conversation lacks a thought that the host wants. `messages`: JSON text. Most have no calls, and are not parsed. */
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
      const thought = message['reasoning_content'];
      hasCalls ||= isCalling;
      if ((isCalling || wanted === 'turns') && (typeof thought !== 'string' || thought === '')) isLacking = true;
      if (hasCalls && isLacking) return true;
    }
  }
  return false;
}
