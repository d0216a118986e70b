/** The client's request as Ollama's own chat has it: tokens under `options`, images apart from the text, a context as long as it takes. */
import type { JsonObject } from '../canonical.js';
import { readChat, type Chat, type ChatInput, type Tool } from '../chat-request.js';
import { mediaReferences, type Turn, type UserPart } from '../chat-turns.js';
import type { LongStrings } from '../long-strings.js';
import type { FetchedMedia, MediaReference } from '../media.js';
import { thoughtOf } from '../openai-chat/thoughts.js';
import { argumentsObject, base64Json, PlainJson, RawJson, writeJson } from '../raw-json.js';
import { badInput, notTakenHere } from '../unsendable.js';
import { FORCED_INSTRUCTION, forcedSchema, forcedTools } from './forced-call.js';

export interface OllamaSettings {
  /** How long a model stays in memory after an answer, such as `10m`; empty = as the server is set. */
  readonly keepAlive: string;
  /** Tokens. A request that needs more gets more: without being told, the server cuts the front of the prompt off. */
  readonly contextTokensMin: number;
}

export interface OllamaDraft {
  /** What has to be fetched: the wire takes no addresses. */
  readonly media: readonly MediaReference[];
  /** The body's bytes. Throws Unsendable. */
  body(fetched: FetchedMedia): Buffer;
}

/** Media types that are worth fetching for this wire. */
export const FETCHED_TYPES = { image: ['image/png', 'image/jpeg', 'image/gif', 'image/webp'], audio: [], file: [] } as const;

/** Fewer than any tokenizer puts in a token on the whole: the context is rather too long than too short. */
const BYTES_PER_TOKEN = 3;
const TOKENS_PER_IMAGE = 1_500;
const TOKENS_PER_TURN = 16;
/** Room for an answer whose length nothing bounds. */
const ANSWER_TOKENS = 4_096;
/** These cannot but think, and are told how much. */
const LEVELLED = /^gpt-oss/;
const LEVELS: Readonly<Record<string, string>> = { none: 'low', minimal: 'low', low: 'low', medium: 'medium', high: 'high', xhigh: 'high', max: 'high' };

function imageOf(part: UserPart & { readonly type: 'media' }, fetched: FetchedMedia): RawJson {
  if (part.kind !== 'image') throw notTakenHere(part.param, `This model takes no ${part.kind === 'file' ? 'files' : 'sound'}.`);
  const media = part.source.kind === 'inline' ? part.source : fetched.get(part.source.url);
  if (media === undefined) throw badInput(part.param, 'The URL could not be fetched.');
  return base64Json(media.base64);
}

function messageOf(turn: Turn, fetched: FetchedMedia): JsonObject {
  switch (turn.role) {
    case 'system':
      return { role: 'system', content: turn.text };
    case 'user': {
      const content = turn.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
      const images = turn.parts.flatMap((part) => (part.type === 'media' ? [imageOf(part, fetched)] : []));
      return { role: 'user', content, ...(images.length === 0 ? {} : { images }) };
    }
    case 'assistant': {
      const thinking = thoughtOf(turn.message, 'reasoning_content');
      const calls = turn.calls.map((call) => ({ id: call.id, function: { name: call.name, arguments: argumentsObject(call.arguments) } }));
      return { role: 'assistant', content: turn.text, ...(thinking === '' ? {} : { thinking }), ...(calls.length === 0 ? {} : { tool_calls: calls }) };
    }
    case 'tool':
      return { role: 'tool', content: turn.text, tool_name: turn.name, tool_call_id: turn.callId };
  }
}

function toolOf({ name, description, parameters }: Tool): JsonObject {
  return { type: 'function', function: { name, description, parameters: new PlainJson({ properties: {}, ...parameters, type: 'object' }) } };
}

function thinkOf(effort: string, model: string): boolean | string | undefined {
  const level = Object.hasOwn(LEVELS, effort) ? LEVELS[effort] : undefined;
  if (level === undefined) return undefined;
  return LEVELLED.test(model) ? level : effort !== 'none';
}

function formatOf({ format }: Chat, forced: readonly Tool[]): PlainJson | 'json' | undefined {
  if (forced.length > 0) return new PlainJson(forcedSchema(forced));
  if (format.kind === 'text') return undefined;
  return format.kind === 'json_object' ? 'json' : new PlainJson(format.schema);
}

function textBytes(turn: Turn, strings: LongStrings): number {
  if (turn.role !== 'user') return strings.byteLength(turn.text) + (turn.role === 'assistant' ? turn.calls.reduce((sum, call) => sum + call.arguments.length + call.name.length, 0) : 0);
  return turn.parts.reduce((sum, part) => sum + (part.type === 'text' ? strings.byteLength(part.text) : TOKENS_PER_IMAGE * BYTES_PER_TOKEN), 0);
}

/** Powers of two: each length of its own would have the server load the model anew. */
function contextTokens(chat: Chat, toolBytes: number, answerTokens: number, least: number): number {
  const prompt = chat.turns.reduce((sum, turn) => sum + Math.ceil(textBytes(turn, chat.strings) / BYTES_PER_TOKEN) + TOKENS_PER_TURN, 0);
  const tools = Math.ceil(toolBytes / BYTES_PER_TOKEN);
  let tokens = least;
  while (tokens < prompt + tools + answerTokens) tokens *= 2;
  return tokens;
}

function composeBody(input: ChatInput, chat: Chat, settings: OllamaSettings, fetched: FetchedMedia): Buffer {
  const forced = forcedTools(chat);
  const tools = forced.length > 0 ? forced : chat.toolChoice.kind === 'none' ? [] : chat.tools;
  const messages = chat.turns.map((turn) => messageOf(turn, fetched));
  const think = thinkOf(chat.reasoningEffort, input.providerModelId);
  const format = formatOf(chat, forced);
  const options: JsonObject = {
    num_ctx: contextTokens(chat, input.fields.find(({ name }) => name === 'tools')?.value.length ?? 0, input.maxTokens ?? ANSWER_TOKENS, settings.contextTokensMin),
    num_predict: input.maxTokens,
    temperature: chat.temperature,
    top_p: chat.topP,
    seed: chat.seed === undefined ? undefined : new RawJson(chat.seed.toString()),
    stop: chat.stop.length === 0 ? undefined : chat.stop,
    presence_penalty: chat.presencePenalty,
    frequency_penalty: chat.frequencyPenalty,
  };
  const body: JsonObject = {
    model: input.providerModelId,
    messages: forced.length === 0 ? messages : [{ role: 'system', content: FORCED_INSTRUCTION }, ...messages],
    stream: input.stream,
    tools: tools.length === 0 ? undefined : tools.map(toolOf),
    format,
    think,
    keep_alive: settings.keepAlive === '' ? undefined : settings.keepAlive,
    logprobs: chat.logprobs ? true : undefined,
    top_logprobs: chat.topLogprobs > 0 ? chat.topLogprobs : undefined,
    options,
  };
  return chat.strings.write(writeJson(body));
}

/** Throws Unsendable on media that are not what they say. */
export function draftOllamaChat(input: ChatInput, settings: OllamaSettings): OllamaDraft {
  const chat = readChat(input);
  return { media: mediaReferences(chat.turns), body: (fetched) => composeBody(input, chat, settings, fetched) };
}

/** True when the answer is a call that had to be made, written as JSON. */
export function isCallForced({ fields }: Pick<ChatInput, 'fields'>): boolean {
  const choice = fields.find(({ name }) => name === 'tool_choice')?.value;
  if (choice === undefined) return false;
  const text = Buffer.from(choice.buffer, choice.byteOffset, choice.length).toString('utf8').trim();
  return text.startsWith('{') || text === '"required"';
}
