/** The part of a prompt that `auto` routing classifies. Never stored or logged. */
import { isObject, own } from './checks.js';

/** Characters of the whole window. */
const WINDOW_MAX = 8_192;
/** If the last turn is longer than the window, this much is taken from its end. */
const END_MAX = 2_048;
/** Characters of all other turns together, and of each of them. */
const REST_MAX = 2_048;
const REST_EACH_MAX = 512;

/** The last user turn, then the beginnings of the other turns, latest first. `messages` has been checked. */
export function promptWindow(messages: unknown): string {
  if (!Array.isArray(messages)) return '';
  const texts = (messages as readonly unknown[]).map((message) => (isObject(message) ? { isUser: own(message, 'role') === 'user', content: own(message, 'content') } : { isUser: false, content: undefined }));
  const lastUser = texts.findLastIndex((message) => message.isUser);
  let window = bothEnds(textOf(texts[lastUser]?.content, WINDOW_MAX));
  let room = Math.min(REST_MAX, WINDOW_MAX - window.length);
  for (let i = texts.length - 1; i >= 0 && room > 1; i -= 1) {
    if (i === lastUser) continue;
    const text = textOf(texts[i]?.content, REST_EACH_MAX).slice(0, Math.min(REST_EACH_MAX, room - 1));
    if (text === '') continue;
    window += `\n${text}`;
    room -= text.length + 1;
  }
  return window;
}

function bothEnds(text: string): string {
  return text.length <= WINDOW_MAX ? text : `${text.slice(0, WINDOW_MAX - END_MAX)}${text.slice(-END_MAX)}`;
}

/** Text of a message; parts are read until there are `enough` characters. */
function textOf(content: unknown, enough: number): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  let text = '';
  for (const part of content as readonly unknown[]) {
    if (text.length > enough) break;
    const value = isObject(part) ? own(part, 'text') : undefined;
    if (typeof value === 'string') text += text === '' ? value : `\n${value}`;
  }
  return text;
}
