/** Marks of the prompt cache, `cache_control` and `prompt_cache_breakpoint`, as a host of the OpenAI wire takes them (docs/adr/0096). */
import { createHash } from 'node:crypto';
import { isObject, type JsonObject } from '../canonical.js';
import { hasCacheControl } from '../chat-turns.js';
import { LongStrings } from '../long-strings.js';

export const CACHE_FIELD = 'cache_control';
export const CACHE_KEY_FIELD = 'prompt_cache_key';
/** Of a key: OpenAI answers 400 to a longer one. */
const CACHE_KEY_CHARS_MAX = 64;
const CACHE_MARK = `"${CACHE_FIELD}"`;
/** Of five minutes: what an hour costs to write is in no price card. */
const PLAIN_MARK = { type: 'ephemeral' };
/** Behind OpenRouter more are refused by Anthropic; Alibaba has the same limit. */
const CACHE_MARKS_MAX = 4;
export const BREAKPOINT_FIELD = 'prompt_cache_breakpoint';
const BREAKPOINT_MARK = `"${BREAKPOINT_FIELD}"`;
/** Of the lifetime that the price card is for. */
const PLAIN_BREAKPOINT = { mode: 'explicit' };
/** Letters and the like that nobody has to escape: a name may be written so. */
const ASCII_ESCAPES = ['\\u002', '\\u003', '\\u004', '\\u005', '\\u006', '\\u007'] as const;

/** Of `ChatQuirks`, where they are described. */
interface MarkTerms {
  readonly takesCacheMarks: boolean;
  readonly breakpointModels: RegExp | undefined;
}

export function withoutCacheMark<Holder>(holder: Holder): Holder | JsonObject {
  if (!isObject(holder) || !Object.hasOwn(holder, CACHE_FIELD)) return holder;
  const { [CACHE_FIELD]: _mark, ...rest } = holder;
  return rest;
}

/** With its mark as the host may have it: plain, or not at all. */
export function withCacheMark(holder: unknown, { takesCacheMarks }: MarkTerms): unknown {
  const rest = withoutCacheMark(holder);
  return takesCacheMarks && isObject(holder) && hasCacheControl(holder) ? { ...(rest as JsonObject), [CACHE_FIELD]: PLAIN_MARK } : rest;
}

/** A message's own mark as one on its last part: no host reads it on the message, and OpenRouter never answers where a result has one there. */
export function withMarkInContent(message: JsonObject, { takesCacheMarks }: MarkTerms): JsonObject {
  const rest = withoutCacheMark(message);
  if (!takesCacheMarks || !hasCacheControl(message)) return rest;
  const { content } = rest;
  const parts: readonly unknown[] = typeof content === 'string' && content.trim() !== '' ? [{ type: 'text', text: content }] : Array.isArray(content) ? content : [];
  const last = parts.at(-1);
  return isObject(last) ? { ...rest, content: [...parts.slice(0, -1), { ...last, [CACHE_FIELD]: PLAIN_MARK }] } : rest;
}

interface MarksLeft {
  marks: number;
}

/** The last of the holders keep their marks, as many as are left. */
export function lastMarked(holders: readonly unknown[], left: MarksLeft): readonly unknown[] {
  return holders.toReversed().map((holder) => {
    if (!isObject(holder) || !hasCacheControl(holder)) return holder;
    left.marks -= 1;
    return left.marks < 0 ? withoutCacheMark(holder) : holder;
  }).toReversed();
}

export function lastMarkedParts(messages: readonly unknown[], { takesCacheMarks }: MarkTerms): readonly unknown[] {
  if (!takesCacheMarks) return messages;
  const left = { marks: CACHE_MARKS_MAX };
  return messages.toReversed().map((message) => (isObject(message) && Array.isArray(message['content']) ? { ...message, content: lastMarked(message['content'], left) } : message)).toReversed();
}

/** Marks that a request may have beside those of its messages, which are adapted already. */
export function marksLeft(messages: Uint8Array | undefined): number {
  if (messages === undefined || !Buffer.from(messages.buffer, messages.byteOffset, messages.length).includes(CACHE_MARK)) return CACHE_MARKS_MAX;
  const list = new LongStrings(messages).parse();
  const parts = (Array.isArray(list) ? (list as readonly unknown[]) : []).flatMap((message): readonly unknown[] => (isObject(message) && Array.isArray(message['content']) ? message['content'] : []));
  return CACHE_MARKS_MAX - parts.filter((part) => isObject(part) && hasCacheControl(part)).length;
}

/** Where the host refuses marks, one that is hidden is the client's own loss; where it reads them it is the operator's. */
export function mayHoldMarks(json: Buffer, { takesCacheMarks, breakpointModels }: MarkTerms): boolean {
  if (json.includes(CACHE_MARK) || json.includes(BREAKPOINT_MARK)) return true;
  return (takesCacheMarks || breakpointModels !== undefined) && ASCII_ESCAPES.some((escape) => json.includes(escape));
}

export function withBreakpoint(part: unknown, { breakpointModels }: MarkTerms, isAssistant: boolean): unknown {
  if (!isObject(part) || !Object.hasOwn(part, BREAKPOINT_FIELD)) return part;
  const { [BREAKPOINT_FIELD]: told, ...rest } = part;
  return breakpointModels !== undefined && !isAssistant && isObject(told) ? { ...rest, [BREAKPOINT_FIELD]: PLAIN_BREAKPOINT } : rest;
}

/** With its mark, if it has one, where hosts read it: beside the function. What is called so in a schema stays. */
export function withMarkBeside(tool: unknown, quirks: MarkTerms): unknown {
  if (!isObject(tool)) return tool;
  const fn = tool['function'];
  const isMarked = hasCacheControl(tool) || (isObject(fn) && hasCacheControl(fn));
  return withCacheMark({ ...tool, ...(isObject(fn) ? { function: withoutCacheMark(fn) } : {}), ...(isMarked ? { [CACHE_FIELD]: PLAIN_MARK } : {}) }, quirks);
}

/** A key of the cache as hosts take it: one that is too long as its digest, which is as good, since a key is only compared. */
export function cacheKeySent(value: Uint8Array): Uint8Array {
  const told: unknown = JSON.parse(Buffer.from(value.buffer, value.byteOffset, value.length).toString('utf8'));
  return typeof told !== 'string' || told.length <= CACHE_KEY_CHARS_MAX ? value : Buffer.from(JSON.stringify(createHash('sha256').update(told).digest('hex')));
}
