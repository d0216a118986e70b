/** The conversation as the Messages API has it: system apart, two roles in turn, tool results first in the user's. */
import { createCallIds } from '../call-ids.js';
import type { JsonObject } from '../canonical.js';
import type { MediaPart, Turn, UserPart } from '../chat-turns.js';
import { unmarkedText } from '../long-strings.js';
import type { FetchedMedia, Media } from '../media.js';
import { argumentsObject, base64Json } from '../raw-json.js';
import { badInput, notTakenHere } from '../unsendable.js';
import { openTurnFrom, thinkingBlocks, type ThoughtFormat } from './thinking.js';

const IMAGE_TYPES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);
const PDF = 'application/pdf';
/** Breakpoints of the prompt cache that one request may have. */
const CACHE_ENDS_MAX = 4;

/** Media types that are worth fetching for this wire. */
export const FETCHED_TYPES = { image: [...IMAGE_TYPES], audio: [], file: [PDF, 'text/plain'] } as const;

/** Of a message, of the system's words, or a tool. */
export interface Block {
  readonly said: JsonObject;
  readonly isCacheEnd: boolean;
}

interface Message {
  readonly role: 'user' | 'assistant';
  readonly blocks: Block[];
}

interface OpenMessage extends Message {
  /** Of tools: put before the rest once all are here, since each by itself would move whatever stands behind it. */
  readonly results: Block[];
}

/** To be written with `writeJson`. */
export interface Conversation {
  readonly tools: readonly JsonObject[];
  readonly system: readonly JsonObject[];
  readonly messages: readonly JsonObject[];
}

/** True when the provider follows the address itself. */
export function isSentAsUrl(url: string, takesUrls: boolean): boolean {
  return takesUrls && url.startsWith('https://');
}

/** Text without a word is refused there. */
function textBlocks(text: string, isCacheEnd = false): Block[] {
  return text.trim() === '' ? [] : [{ said: { type: 'text', text }, isCacheEnd }];
}

function inline({ mediaType, base64 }: Media): JsonObject {
  return { type: 'base64', media_type: mediaType, data: base64Json(base64) };
}

function imageOf(part: MediaPart, media: Media): JsonObject {
  if (!IMAGE_TYPES.has(media.mediaType)) throw notTakenHere(part.param, 'This model takes PNG, JPEG, GIF and WebP images.');
  return { type: 'image', source: inline(media) };
}

function documentOf(part: MediaPart, media: Media): JsonObject {
  const title = part.name === '' ? {} : { title: part.name };
  if (media.mediaType === PDF) return { type: 'document', source: inline(media), ...title };
  if (!media.mediaType.startsWith('text/')) throw notTakenHere(part.param, 'This model takes PDF and text files.');
  return { type: 'document', source: { type: 'text', media_type: 'text/plain', data: unmarkedText(Buffer.from(media.base64, 'base64').toString('utf8')) }, ...title };
}

function mediaOf(part: MediaPart, fetched: FetchedMedia, takesUrls: boolean): JsonObject {
  const { kind, source } = part;
  if (kind === 'audio') throw notTakenHere(part.param, 'This model takes no sound.');
  if (source.kind === 'url' && isSentAsUrl(source.url, takesUrls)) return { type: kind === 'image' ? 'image' : 'document', source: { type: 'url', url: source.url } };
  const media = source.kind === 'inline' ? source : fetched.get(source.url);
  if (media === undefined) throw badInput(part.param, 'The URL could not be fetched.');
  return kind === 'image' ? imageOf(part, media) : documentOf(part, media);
}

function userBlocks(parts: readonly UserPart[], fetched: FetchedMedia, takesUrls: boolean): Block[] {
  return parts.flatMap((part) => (part.type === 'text' ? textBlocks(part.text, part.isCacheEnd) : [{ said: mediaOf(part, fetched, takesUrls), isCacheEnd: part.isCacheEnd }]));
}

function assistantBlocks(turn: Turn & { readonly role: 'assistant' }, idOf: (id: string) => string, format: ThoughtFormat | undefined): Block[] {
  const calls = turn.calls.map((call): Block => ({ said: { type: 'tool_use', id: idOf(call.id), name: call.name, input: argumentsObject(call.arguments) }, isCacheEnd: call.isCacheEnd }));
  const words = [...textBlocks(turn.text, turn.isCacheEnd), ...calls];
  // A message that ends with thinking is refused there.
  const thoughts = format === undefined || words.length === 0 ? [] : thinkingBlocks(turn.message, format);
  return [...thoughts.map((said) => ({ said, isCacheEnd: false })), ...words];
}

function resultBlock(id: string, { text, isCacheEnd }: Turn & { readonly role: 'tool' }): Block {
  return { said: { type: 'tool_result', tool_use_id: id, ...(text.trim() === '' ? {} : { content: text }) }, isCacheEnd };
}

export interface HostTerms {
  readonly takesUrls: boolean;
  /** undefined = no thinking of earlier turns is sent. */
  readonly thoughtFormat: ThoughtFormat | undefined;
  /** The model will or may think. Where it does not, the turn that is going on may hold no thinking. */
  readonly isThinking: boolean;
  /** The model goes on with words of its own that end the conversation. */
  readonly takesPrefill: boolean;
}

/** Neighbours of one role become one message. Results go before everything else that the user says in answer to the calls. */
function join(turns: readonly Turn[], fetched: FetchedMedia, { takesUrls, thoughtFormat, isThinking }: HostTerms): Message[] {
  const bareFrom = isThinking ? turns.length : openTurnFrom(turns);
  const idOf = createCallIds();
  const messages: OpenMessage[] = [];
  const messageOf = (role: Message['role']): OpenMessage => {
    const last = messages.at(-1);
    if (last?.role === role) return last;
    const next = { role, results: [], blocks: [] };
    messages.push(next);
    return next;
  };
  for (const [at, turn] of turns.entries()) {
    if (turn.role === 'tool') {
      messageOf('user').results.push(resultBlock(idOf(turn.callId), turn));
      continue;
    }
    if (turn.role === 'system') continue;
    const blocks = turn.role === 'user' ? userBlocks(turn.parts, fetched, takesUrls) : assistantBlocks(turn, idOf, at < bareFrom ? thoughtFormat : undefined);
    if (blocks.length > 0) messageOf(turn.role).blocks.push(...blocks);
  }
  return messages.map(({ role, results, blocks }) => ({ role, blocks: results.length === 0 ? blocks : [...results, ...blocks] }));
}

/** Only the last breakpoints count; each covers all before it. `blocks`: in the order of the prompt, tools first. */
function createMarker(blocks: readonly Block[]): (block: Block) => JsonObject {
  const marked = new Set(blocks.filter((block) => block.isCacheEnd).slice(-CACHE_ENDS_MAX));
  return (block) => (marked.has(block) ? { ...block.said, cache_control: { type: 'ephemeral' } } : block.said);
}

/** A prefill that ends in white space is refused there. */
function trimPrefill(messages: readonly Message[]): void {
  const last = messages.at(-1);
  const block = last?.role === 'assistant' ? last.blocks.pop() : undefined;
  if (block === undefined) return;
  const { text } = block.said;
  last?.blocks.push(typeof text === 'string' ? { ...block, said: { ...block.said, text: text.trimEnd() } } : block);
}

/** Throws Unsendable. `fetched` holds what `isSentAsUrl` says no to. Words of the system alone become the user's: there must be someone to answer. */
export function renderTurns(turns: readonly Turn[], fetched: FetchedMedia, host: HostTerms, tools: readonly Block[]): Conversation {
  let system = turns.flatMap((turn) => (turn.role === 'system' ? turn.pieces.flatMap(({ text, isCacheEnd }) => textBlocks(text, isCacheEnd)) : []));
  let messages = join(turns, fetched, host);
  trimPrefill(messages);
  if (messages.length === 0 && system.length > 0) {
    messages = [{ role: 'user', blocks: system.slice(-1) }];
    system = system.slice(0, -1);
  }
  if (messages.length === 0) throw badInput('messages', 'There is nothing to answer.');
  // As with other makers, who answer to what they said before.
  if (!host.takesPrefill && messages.at(-1)?.role === 'assistant') messages.push({ role: 'user', blocks: textBlocks('Continue.') });
  const mark = createMarker([...tools, ...system, ...messages.flatMap(({ blocks }) => blocks)]);
  return { tools: tools.map(mark), system: system.map(mark), messages: messages.map(({ role, blocks }) => ({ role, content: blocks.map(mark) })) };
}
