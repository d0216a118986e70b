/** The client's request as a body of Converse; the model stands in the path. */
import { answerLimit, type AnswerBounds } from '../answer-limit.js';
import { takesPrefill } from '../anthropic-messages/claude.js';
import { nativeSchema } from '../anthropic-messages/native-schema.js';
import type { JsonObject } from '../canonical.js';
import { jsonInstruction, readChat, type Chat, type ChatInput, type Tool } from '../chat-request.js';
import { mediaReferences } from '../chat-turns.js';
import { isObjectSchema, JSON_TOOL } from '../json-tool.js';
import type { FetchedMedia, MediaReference } from '../media.js';
import { PlainJson, writeJson } from '../raw-json.js';
import { bedrockModel, type BedrockModel } from './models.js';
import { TOOL_NAMES } from './names.js';
import { reasoningOf, type Reasoning } from './thinking.js';
import { renderTurns, type Block } from './turns.js';

/** The bounds are for a client that sets no limit, where one is needed. */
export type ConverseInput = ChatInput & AnswerBounds;

/** `native`: with the schema as the wire takes it. */
type JsonMode = { readonly kind: 'none' | 'tool' | 'instruction' } | { readonly kind: 'native'; readonly schema: JsonObject };

interface Tooling {
  readonly tools: readonly Block[];
  /** `toolChoice` of Converse. */
  readonly choice: JsonObject | undefined;
  /** In the words of Anthropic's own wire, which alone can ask for one call at a time. */
  readonly claudeChoice: JsonObject | undefined;
  readonly isForced: boolean;
}

const NO_TOOLS: Tooling = { tools: [], choice: undefined, claudeChoice: undefined, isForced: false };

/** How the answer is made to be JSON: the wire's own setting, else a tool that must be called, else words. */
function jsonModeOf({ format, tools, reasoningEffort }: Chat, { claude, forcedTool, reasoning }: BedrockModel): JsonMode {
  if (format.kind === 'text') return { kind: 'none' };
  if (format.kind === 'json_object') return { kind: 'instruction' };
  const native = claude?.takesJsonFormat === true ? nativeSchema(format.schema) : undefined;
  if (native !== undefined) return { kind: 'native', schema: native };
  const wantsThought = reasoning !== 'none' && reasoningEffort !== '' && reasoningEffort !== 'none';
  const canForce = forcedTool !== 'unknown' && tools.length === 0 && !wantsThought && (claude === undefined || (claude.takesForcedTools && (!claude.thinksByDefault || claude.stopsThinkingBy !== undefined)));
  return { kind: canForce && isObjectSchema(format.schema) ? 'tool' : 'instruction' };
}

function toolBlock({ name, description, parameters = {}, isCacheEnd }: Tool): Block {
  return { json: { toolSpec: { name, ...(description === '' ? {} : { description }), inputSchema: { json: new PlainJson({ ...parameters, type: 'object' }) } } }, isCacheEnd };
}

function toolingOf(chat: Chat, model: BedrockModel, jsonMode: JsonMode): Tooling {
  const { format, toolChoice, parallelToolCalls } = chat;
  if (jsonMode.kind === 'tool' && format.kind === 'json_schema') {
    const tool = { name: JSON_TOOL, description: `Gives the answer. ${format.description}`.trim(), parameters: format.schema, strict: false, isCacheEnd: false };
    return { tools: [toolBlock(tool)], choice: model.forcedTool === 'any' ? { any: {} } : { tool: { name: JSON_TOOL } }, claudeChoice: undefined, isForced: true };
  }
  // There is no word for "none": without the tools there is nothing to call.
  if (chat.tools.length === 0 || toolChoice.kind === 'none') return NO_TOOLS;
  const single = model.claude !== undefined && parallelToolCalls === false;
  const told = (tools: readonly Tool[], choice: JsonObject | undefined, claudeChoice: JsonObject): Tooling => ({
    tools: tools.map(toolBlock),
    choice: single ? undefined : choice,
    claudeChoice: single ? { ...claudeChoice, disable_parallel_tool_use: true } : undefined,
    isForced: toolChoice.kind !== 'auto',
  });
  switch (toolChoice.kind) {
    case 'auto':
      return told(chat.tools, undefined, { type: 'auto' });
    case 'required':
      return told(chat.tools, { any: {} }, { type: 'any' });
    case 'named':
      if (model.forcedTool === 'any') return told(chat.tools.filter(({ name }) => name === toolChoice.name), { any: {} }, {});
      return told(chat.tools, { tool: { name: toolChoice.name } }, { type: 'tool', name: toolChoice.name });
  }
}

function samplingOf({ temperature, topP }: Chat, { claude }: BedrockModel, { isExclusive }: Reasoning): JsonObject {
  if (isExclusive || claude?.takesSampling === false) return {};
  const hasBoth = claude === undefined || claude.takesBothSampling || temperature === undefined;
  return { ...(temperature === undefined ? {} : { temperature }), ...(topP === undefined || !hasBoth ? {} : { topP }) };
}

function outputConfig({ format }: Chat, jsonMode: JsonMode): JsonObject {
  if (jsonMode.kind !== 'native' || format.kind !== 'json_schema') return {};
  const { name, description } = format;
  return { outputConfig: { textFormat: { type: 'json_schema', structure: { jsonSchema: { name, ...(description === '' ? {} : { description }), schema: JSON.stringify(jsonMode.schema) } } } } };
}

export interface ConverseDraft {
  /** What has to be fetched before `body`: this wire takes no URL of a client's. */
  readonly media: readonly MediaReference[];
  /** The body's bytes. Throws Unsendable. */
  body(fetched: FetchedMedia): Buffer;
}

/** Throws Unsendable on media that are not what they say. */
export function draftConverse(input: ConverseInput): ConverseDraft {
  const chat = TOOL_NAMES.sent(readChat(input));
  return { media: mediaReferences(chat.turns), body: (fetched) => composeBody(input, chat, fetched) };
}

function composeBody(input: ConverseInput, chat: Chat, fetched: FetchedMedia): Buffer {
  const model = bedrockModel(input.providerModelId, input.model);
  const jsonMode = jsonModeOf(chat, model);
  const { tools, choice, claudeChoice, isForced } = toolingOf(chat, model, jsonMode);
  const reasoning = reasoningOf(chat, model, input.maxTokens ?? answerLimit(input), input.maxTokens !== undefined, isForced);
  const { tools: told, system, messages } = renderTurns(chat.turns, fetched, { tools, cachePoints: model.cachePoints, keepsToolsApart: model.keepsToolsApart, takesThought: reasoning.takesThought, isThinking: reasoning.isThinking, takesPrefill: model.claude === undefined || takesPrefill(model.claude, reasoning.isThinking) });
  const instruction = jsonMode.kind === 'instruction' ? jsonInstruction(chat.format) : '';
  const spoken = instruction === '' ? system : [...system, { text: instruction }];
  const maxTokens = input.maxTokens ?? reasoning.maxTokens;
  const stop = chat.stop.filter((text) => text.trim() !== '');
  const inference = { ...(maxTokens === undefined ? {} : { maxTokens }), ...samplingOf(chat, model, reasoning), ...(stop.length === 0 ? {} : { stopSequences: stop }) };
  const additional = { ...reasoning.fields, ...(claudeChoice === undefined ? {} : { tool_choice: claudeChoice }) };
  return chat.strings.write(
    writeJson({
      ...(spoken.length === 0 ? {} : { system: spoken }),
      ...(Object.keys(inference).length === 0 ? {} : { inferenceConfig: inference }),
      ...(told.length === 0 ? {} : { toolConfig: { tools: told, ...(choice === undefined ? {} : { toolChoice: choice }) } }),
      ...outputConfig(chat, jsonMode),
      ...(Object.keys(additional).length === 0 ? {} : { additionalModelRequestFields: additional }),
      messages,
    }),
  );
}
