/** The conversation as Converse has it: system apart, two roles in turn, tool results first in the user's. */
import { openTurnFrom } from '../anthropic-messages/thinking.js';
import { createCallIds } from '../call-ids.js';
import type { Turn, TurnCall, UserPart } from '../chat-turns.js';
import { answeredInWords, calledInWords } from '../in-words.js';
import type { FetchedMedia } from '../media.js';
import { argumentsObject } from '../raw-json.js';
import { badInput } from '../unsendable.js';
import { createFileNames, mediaBlock } from './media.js';
import type { BedrockModel } from './models.js';
import { thoughtBlocks } from './thinking.js';

const CALL_ID_CHARS_MAX = 64;
/** Points of the prompt cache that one request may have. */
const CACHE_POINTS_MAX = 4;
const CACHE_POINT = { cachePoint: { type: 'default' } };
const OF_TOOLS = ['toolSpec', 'toolUse', 'toolResult'] as const;

export interface ConversationOptions {
  /** Without any, calls and results of earlier turns are refused, so they are told in words. */
  readonly tools: readonly Block[];
  readonly cachePoints: BedrockModel['cachePoints'];
  readonly keepsToolsApart: boolean;
  /** It is a model of Claude's maker, which alone knows its signatures, and is not told to keep from thinking where it binds its thought. */
  readonly takesThought: boolean;
  /** It will or may think. Where it does not, the turn that is going on may hold no thought. */
  readonly isThinking: boolean;
  /** The model goes on with words of its own that end the conversation. */
  readonly takesPrefill: boolean;
}

/** Of a message, of the system's words, or a tool. */
export interface Block {
  readonly json: object;
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

/** For writeJson. */
export interface Conversation {
  readonly tools: readonly object[];
  readonly system: readonly object[];
  readonly messages: readonly object[];
}

const plain = (json: object): Block => ({ json, isCacheEnd: false });

/** Text without a word is refused there. */
function textBlocks(text: string, isCacheEnd = false): Block[] {
  return text.trim() === '' ? [] : [{ json: { text }, isCacheEnd }];
}

interface Renderer {
  call(call: TurnCall): Block[];
  result(turn: Turn & { readonly role: 'tool' }): Block[];
}

const IN_WORDS: Renderer = {
  call: ({ name, arguments: args, isCacheEnd }) => textBlocks(calledInWords(name, args), isCacheEnd),
  result: ({ name, text, isCacheEnd }) => textBlocks(answeredInWords(name, text), isCacheEnd),
};

function asTools(): Renderer {
  const idOf = createCallIds(CALL_ID_CHARS_MAX);
  return {
    call: ({ id, name, arguments: args, isCacheEnd }) => [{ json: { toolUse: { toolUseId: idOf(id), name, input: argumentsObject(args) } }, isCacheEnd }],
    result: ({ callId, text, isCacheEnd }) => [{ json: { toolResult: { toolUseId: idOf(callId), content: textBlocks(text).map(({ json }) => json) } }, isCacheEnd }],
  };
}

function userBlocks(parts: readonly UserPart[], fetched: FetchedMedia, nameOf: (name: string) => string): Block[] {
  return parts.flatMap((part) => (part.type === 'text' ? textBlocks(part.text, part.isCacheEnd) : [{ json: mediaBlock(part, fetched, nameOf), isCacheEnd: part.isCacheEnd }]));
}

/** Neighbours of one role become one message. Results go before everything else that the user says in answer to the calls. */
function join(turns: readonly Turn[], fetched: FetchedMedia, { tools, takesThought, isThinking }: ConversationOptions): Message[] {
  const hasTools = tools.length > 0;
  const bareFrom = isThinking ? turns.length : openTurnFrom(turns);
  const renderer = hasTools ? asTools() : IN_WORDS;
  const nameOf = createFileNames();
  const messages: OpenMessage[] = [];
  const say = (role: Message['role'], blocks: readonly Block[], isResult = false): void => {
    if (blocks.length === 0) return;
    let message = messages.at(-1);
    if (message?.role !== role) {
      message = { role, results: [], blocks: [] };
      messages.push(message);
    }
    (isResult ? message.results : message.blocks).push(...blocks);
  };
  const assistantBlocks = (turn: Turn & { readonly role: 'assistant' }, mayThink: boolean): readonly Block[] => {
    const words = [...textBlocks(turn.text, turn.isCacheEnd), ...turn.calls.flatMap((call) => renderer.call(call))];
    // A message that ends with thought is refused there.
    return takesThought && mayThink && words.length > 0 && (hasTools || turn.calls.length === 0) ? [...thoughtBlocks(turn.message).map(plain), ...words] : words;
  };
  for (const [at, turn] of turns.entries()) {
    if (turn.role === 'user') say('user', userBlocks(turn.parts, fetched, nameOf));
    else if (turn.role === 'tool') say('user', renderer.result(turn), true);
    else if (turn.role === 'assistant') say('assistant', assistantBlocks(turn, at < bareFrom));
  }
  return messages.map(({ role, results, blocks }) => ({ role, blocks: results.length === 0 ? blocks : [...results, ...blocks] }));
}

const isOfTools = ({ json }: Block): boolean => OF_TOOLS.some((name) => name in json);

/** Calls or results of a message apart from its words, with a word of the other side between them. */
function toolsApart(message: Message): readonly Message[] {
  const { role } = message;
  const tools = message.blocks.filter(isOfTools);
  const words = message.blocks.filter((block) => !isOfTools(block));
  if (tools.length === 0 || words.length === 0) return [message];
  return role === 'user' ? [{ role, blocks: tools }, { role: 'assistant', blocks: [plain({ text: 'OK.' })] }, { role, blocks: words }] : [{ role, blocks: words }, { role: 'user', blocks: [plain({ text: 'Continue.' })] }, { role, blocks: tools }];
}

/** A document must not stand alone there. */
function withWords({ role, blocks }: Message): Message {
  const isMute = blocks.some(({ json }) => 'document' in json) && !blocks.some(({ json }) => 'text' in json);
  return isMute ? { role, blocks: [...blocks, plain({ text: 'The file is attached.' })] } : { role, blocks };
}

/** A prefill that ends in white space is refused there. */
function trimPrefill(messages: readonly Message[]): void {
  const last = messages.at(-1);
  const block = last?.role === 'assistant' ? last.blocks.pop() : undefined;
  if (block === undefined) return;
  last?.blocks.push('text' in block.json && typeof block.json.text === 'string' ? { ...block, json: { text: block.json.text.trimEnd() } } : block);
}

/** Behind which of them a point stands: each covers all before it. `blocks`: in the order of the prompt, tools first. */
function cachePoints(blocks: readonly Block[], taken: ConversationOptions['cachePoints']): ReadonlySet<Block> {
  const mayEnd = (block: Block): boolean => block.isCacheEnd && (taken === 'all' || (taken === 'words' && !isOfTools(block)));
  return new Set(blocks.filter(mayEnd).slice(-CACHE_POINTS_MAX));
}

/** Throws Unsendable. Words of the system alone become the user's: there must be someone to answer. */
export function renderTurns(turns: readonly Turn[], fetched: FetchedMedia, options: ConversationOptions): Conversation {
  let system = turns.flatMap((turn) => (turn.role === 'system' ? turn.pieces.flatMap(({ text, isCacheEnd }) => textBlocks(text, isCacheEnd)) : []));
  const joined = join(turns, fetched, options);
  let messages = (options.keepsToolsApart ? joined.flatMap(toolsApart) : joined).map(withWords);
  trimPrefill(messages);
  if (messages.length === 0) {
    messages = [{ role: 'user', blocks: system.slice(-1) }];
    system = system.slice(0, -1);
  }
  const [first] = messages;
  if (first === undefined || first.blocks.length === 0) throw badInput('messages', 'There is nothing to answer.');
  // The user speaks first there.
  if (first.role === 'assistant') messages.unshift({ role: 'user', blocks: [plain({ text: 'Continue.' })] });
  if (!options.takesPrefill && messages.at(-1)?.role === 'assistant') messages.push({ role: 'user', blocks: [plain({ text: 'Continue.' })] });
  const points = cachePoints([...options.tools, ...system, ...messages.flatMap(({ blocks }) => blocks)], options.cachePoints);
  const write = (blocks: readonly Block[]): object[] => blocks.flatMap((block) => (points.has(block) ? [block.json, CACHE_POINT] : [block.json]));
  return { tools: write(options.tools), system: write(system), messages: messages.map(({ role, blocks }) => ({ role, content: write(blocks) })) };
}
