/** The client's request as a body of the Messages API. */
import { isPersonalUser } from '@signalbox/kernel/personal-user';
import { answerLimit, type AnswerBounds } from '../answer-limit.js';
import type { JsonObject } from '../canonical.js';
import { jsonInstruction, readChat, type Chat, type ChatInput, type Tool } from '../chat-request.js';
import { mediaReferences } from '../chat-turns.js';
import { isObjectSchema, JSON_TOOL } from '../json-tool.js';
import type { FetchedMedia, MediaReference } from '../media.js';
import { PlainJson, writeJson } from '../raw-json.js';
import { claudeTraits, takesPrefill, TEMPERATURE_MAX, type ClaudeTraits } from './claude.js';
import { TOOL_NAMES } from './names.js';
import { nativeSchema } from './native-schema.js';
import { boundThinking, CLAUDE_THOUGHT, thinkingSettings, type BoundThinking, type ThoughtFormat } from './thinking.js';
import { isSentAsUrl, renderTurns, type Block } from './turns.js';

/** What a host of the wire does unlike Anthropic itself. */
export interface MessagesQuirks {
  /** Goes into the body in the model's place, which then stands in the path (Vertex). */
  readonly bodyVersion: string;
  /** The host follows https addresses of images and documents. */
  readonly takesUrls: boolean;
  /** The host takes `output_config.format`, where the model does. */
  readonly takesJsonFormat: boolean;
  /** undefined: told by the model's name. */
  readonly traits: ClaudeTraits | undefined;
  /** Whose thought its models give out and take back. */
  readonly thoughtFormat: ThoughtFormat;
  /** A refusal before the first block of an answer is not billed, whatever its usage says: so Anthropic documents it of its own API, and of no other. */
  readonly refusesForFree: boolean;
}

export const ANTHROPIC: MessagesQuirks = { bodyVersion: '', takesUrls: true, takesJsonFormat: true, traits: undefined, thoughtFormat: CLAUDE_THOUGHT, refusesForFree: true };
export const VERTEX: MessagesQuirks = { ...ANTHROPIC, bodyVersion: 'vertex-2023-10-16', takesUrls: false, takesJsonFormat: false, refusesForFree: false };
/** MiniMax's models think as they see fit, or not at all where they can be stopped; effort has no setting. */
export const MINIMAX: MessagesQuirks = {
  ...ANTHROPIC,
  takesUrls: false,
  takesJsonFormat: false,
  thoughtFormat: 'minimax-v1',
  refusesForFree: false,
  traits: { thinking: 'adaptive', thinksByDefault: true, stopsThinkingBy: 'disabled', isThinkingExclusive: false, takesForcedTools: false, bindsThinking: false, hidesThinking: false, efforts: [], takesSampling: true, takesBothSampling: true, takesPrefill: true, takesJsonFormat: false },
};

/** The bounds are for a client that sets no limit: the wire asks for one. */
export type MessagesInput = ChatInput & AnswerBounds;

/** `native`: with the schema as the wire takes it. */
type JsonMode = { readonly kind: 'none' | 'tool' | 'instruction' } | { readonly kind: 'native'; readonly schema: JsonObject };

/** How the answer is made to be JSON: the wire's own setting, else a tool that must be called, else words. */
function jsonModeOf({ format, tools, reasoningEffort }: Chat, traits: ClaudeTraits, quirks: MessagesQuirks): JsonMode {
  if (format.kind === 'text') return { kind: 'none' };
  if (format.kind === 'json_object') return { kind: 'instruction' };
  const native = quirks.takesJsonFormat && traits.takesJsonFormat ? nativeSchema(format.schema) : undefined;
  if (native !== undefined) return { kind: 'native', schema: native };
  const mayForce = traits.takesForcedTools && tools.length === 0 && (reasoningEffort === '' || reasoningEffort === 'none' || traits.thinking === 'none');
  // A model that cannot stop thinking cannot be made to call a tool either.
  return { kind: mayForce && isObjectSchema(format.schema) && (!traits.thinksByDefault || traits.stopsThinkingBy !== undefined) ? 'tool' : 'instruction' };
}

/** Tools that earlier turns called and this request no longer names: the wire wants each defined. */
function calledTools({ turns, tools }: Chat): readonly Tool[] {
  if (tools.length > 0) return [];
  const names = new Set(turns.flatMap((turn) => (turn.role === 'assistant' ? turn.calls.map((call) => call.name) : [])));
  return [...names].map((name) => ({ name, description: '', parameters: undefined, strict: false, isCacheEnd: false }));
}

function toolBlock({ name, description, parameters = {}, isCacheEnd }: Tool): Block {
  return { said: { name, ...(description === '' ? {} : { description }), input_schema: new PlainJson({ ...parameters, type: 'object' }) }, isCacheEnd };
}

function toolSettings(chat: Chat, jsonMode: JsonMode): { readonly tools: readonly Block[]; readonly choice: JsonObject | undefined } {
  const called = calledTools(chat);
  const tools = [...chat.tools, ...called].map(toolBlock);
  const { format } = chat;
  if (jsonMode.kind === 'tool' && format.kind === 'json_schema') {
    tools.push(toolBlock({ name: JSON_TOOL, description: `Gives the answer. ${format.description}`.trim(), parameters: format.schema, strict: false, isCacheEnd: false }));
    return { tools, choice: { type: 'tool', name: JSON_TOOL, disable_parallel_tool_use: true } };
  }
  if (tools.length === 0) return { tools, choice: undefined };
  if (called.length > 0 || chat.toolChoice.kind === 'none') return { tools, choice: { type: 'none' } };
  const single = chat.parallelToolCalls === false ? { disable_parallel_tool_use: true } : {};
  switch (chat.toolChoice.kind) {
    case 'auto':
      return { tools, choice: chat.parallelToolCalls === false ? { type: 'auto', ...single } : undefined };
    case 'required':
      return { tools, choice: { type: 'any', ...single } };
    case 'named':
      return { tools, choice: { type: 'tool', name: chat.toolChoice.name, ...single } };
  }
}

function samplingOf({ temperature, topP }: Chat, traits: ClaudeTraits, isThinking: boolean): JsonObject {
  if (!traits.takesSampling || (isThinking && traits.isThinkingExclusive)) return {};
  const both = traits.takesBothSampling || temperature === undefined;
  return { ...(temperature === undefined ? {} : { temperature }), ...(topP === undefined || !both ? {} : { top_p: topP }) };
}

export interface MessagesDraft {
  /** For the `anthropic-beta` header. */
  readonly betas: readonly string[];
  /** What the host does not fetch itself. */
  readonly media: readonly MediaReference[];
  /** The body's bytes. Throws Unsendable. */
  body(fetched: FetchedMedia): Buffer;
}

/** What does not depend on fetched media. */
interface Terms {
  readonly jsonMode: JsonMode;
  readonly maxTokens: number;
  readonly tools: readonly Block[];
  readonly choice: JsonObject | undefined;
  readonly effort: string | undefined;
  readonly sampling: JsonObject;
  readonly bound: BoundThinking;
  readonly isThinking: boolean;
  readonly canPrefill: boolean;
}

function termsOf(input: MessagesInput, chat: Chat, quirks: MessagesQuirks): Terms {
  const traits = quirks.traits ?? claudeTraits(input.providerModelId, input.model ?? '');
  const jsonMode = jsonModeOf(chat, traits, quirks);
  const { tools, choice } = toolSettings(chat, jsonMode);
  const maxTokens = input.maxTokens ?? answerLimit(input);
  const isToolForced = choice?.['type'] === 'any' || choice?.['type'] === 'tool';
  const settings = thinkingSettings(traits, { effort: chat.reasoningEffort, maxTokens, isToolForced, turns: chat.turns });
  return { jsonMode, maxTokens, tools, choice, effort: settings.effort, sampling: samplingOf(chat, traits, settings.isThinking), bound: boundThinking(settings, traits, quirks.thoughtFormat, chat.turns), isThinking: settings.isThinking, canPrefill: takesPrefill(traits, settings.isThinking) };
}

/** Throws Unsendable on media that are not what they say. */
export function draftMessages(input: MessagesInput, quirks: MessagesQuirks): MessagesDraft {
  const chat = TOOL_NAMES.sent(readChat({ fields: input.fields, temperatureMax: Math.min(input.temperatureMax || TEMPERATURE_MAX, TEMPERATURE_MAX) }));
  const terms = termsOf(input, chat, quirks);
  return {
    betas: terms.bound.betas,
    media: mediaReferences(chat.turns).filter(({ url }) => !isSentAsUrl(url, quirks.takesUrls)),
    body: (fetched) => composeBody(input, chat, quirks, terms, fetched),
  };
}

function composeBody(input: MessagesInput, chat: Chat, quirks: MessagesQuirks, { jsonMode, maxTokens, tools, choice, effort, sampling, bound, isThinking, canPrefill }: Terms, fetched: FetchedMedia): Buffer {
  const { thinking, thoughtFormat } = bound;
  const { tools: told, system, messages } = renderTurns(chat.turns, fetched, { takesUrls: quirks.takesUrls, thoughtFormat, isThinking, takesPrefill: canPrefill }, tools);
  const instruction = jsonMode.kind === 'instruction' ? jsonInstruction(chat.format) : '';
  const format = jsonMode.kind === 'native' ? { format: { type: 'json_schema', schema: new PlainJson(jsonMode.schema) } } : {};
  const output = { ...(effort === undefined ? {} : { effort }), ...format };
  const stop = chat.stop.filter((text) => text.trim() !== '');
  const settings: JsonObject = {
    ...(quirks.bodyVersion === '' ? { model: input.providerModelId } : { anthropic_version: quirks.bodyVersion }),
    max_tokens: maxTokens,
    ...(input.stream ? { stream: true } : {}),
    ...sampling,
    ...(stop.length === 0 ? {} : { stop_sequences: stop }),
    ...(chat.user === '' || isPersonalUser(chat.user) ? {} : { metadata: { user_id: chat.user } }),
    ...(thinking === undefined ? {} : { thinking }),
    ...(Object.keys(output).length === 0 ? {} : { output_config: output }),
    ...(told.length === 0 ? {} : { tools: told }),
    ...(choice === undefined ? {} : { tool_choice: choice }),
  };
  const systemBlocks = instruction === '' ? system : [...system, { type: 'text', text: instruction }];
  return chat.strings.write(writeJson({ ...settings, ...(systemBlocks.length === 0 ? {} : { system: systemBlocks }), messages }));
}
