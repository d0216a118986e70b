/** The body of generateContent and streamGenerateContent. */
import { isObject } from '../canonical.js';
import { jsonInstruction, readChat, type Chat, type ChatInput, type Tool, type ToolChoice } from '../chat-request.js';
import { mediaReferences } from '../chat-turns.js';
import type { FetchedMedia, MediaReference } from '../media.js';
import { PlainJson, writeJson } from '../raw-json.js';
import { badInput } from '../unsendable.js';
import { TOOL_NAMES } from './names.js';
import { schemaBudget, toOpenApiSchema, type SchemaBudget } from './schema.js';
import { thinkingOf } from './thinking.js';
import { renderTurns } from './turns.js';

export interface GenerateContentOptions {
  /** Send the ids of calls with their results; Vertex matches them by name and order alone. */
  readonly withCallIds: boolean;
}

export interface GenerateContentDraft {
  /** What has to be fetched before `body`: this wire takes no URL of a client's. */
  readonly media: readonly MediaReference[];
  /** Throws Unsendable when a fetched medium is missing. */
  body(fetched: FetchedMedia): Buffer;
}

const INT32_BITS = 32;
/** Theirs are below 2, which ours may be. */
const PENALTY_MAX = 1.99;

/** Major version of a Gemini model; 0 for others. */
function geminiMajor(model: string): number {
  return Number(/^(?:models\/)?gemini-(\d+)/.exec(model)?.[1] ?? 0);
}

function declaration({ name, description, parameters }: Tool, budget: SchemaBudget): object {
  const head = { name, ...(description === '' ? {} : { description }) };
  const hasProperties = parameters !== undefined && (Object.keys(parameters).some((keyword) => keyword !== 'type' && keyword !== 'properties' && keyword !== 'required' && keyword !== 'additionalProperties') || Object.keys(isObject(parameters['properties']) ? parameters['properties'] : {}).length > 0);
  if (!hasProperties) return head;
  const schema = toOpenApiSchema(parameters, budget);
  return { ...head, ...(schema === undefined ? { parametersJsonSchema: new PlainJson(parameters) } : { parameters: new PlainJson(schema) }) };
}

function callingConfig(choice: ToolChoice, tools: readonly Tool[]): object {
  switch (choice.kind) {
    case 'auto':
      return { mode: tools.some((tool) => tool.strict) ? 'VALIDATED' : 'AUTO' };
    case 'none':
      return { mode: 'NONE' };
    case 'required':
      return { mode: 'ANY' };
    case 'named':
      return { mode: 'ANY', allowedFunctionNames: [choice.name] };
  }
}

/** JSON mode beside tools came with the third generation; before it is refused. */
function hasJsonMode(chat: Chat, major: number): boolean {
  return chat.format.kind !== 'text' && (chat.tools.length === 0 || major >= 3);
}

function jsonMode({ format }: Chat, budget: SchemaBudget): object {
  if (format.kind !== 'json_schema') return { responseMimeType: 'application/json' };
  const schema = toOpenApiSchema(format.schema, budget);
  return { responseMimeType: 'application/json', ...(schema === undefined ? { responseJsonSchema: new PlainJson(format.schema) } : { responseSchema: new PlainJson(schema) }) };
}

function generationConfig(chat: Chat, input: ChatInput, budget: SchemaBudget): object {
  const major = geminiMajor(input.providerModelId);
  const { temperature, topP, presencePenalty, frequencyPenalty, stop, seed, choices } = chat;
  const thinking = thinkingOf(chat.reasoningEffort, input.providerModelId);
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(presencePenalty === undefined ? {} : { presencePenalty: Math.min(presencePenalty, PENALTY_MAX) }),
    ...(frequencyPenalty === undefined ? {} : { frequencyPenalty: Math.min(frequencyPenalty, PENALTY_MAX) }),
    ...(stop.length === 0 ? {} : { stopSequences: stop }),
    // Ours may have 64 bits, theirs has 32: the same seed stays the same.
    ...(seed === undefined ? {} : { seed: Number(BigInt.asIntN(INT32_BITS, seed)) }),
    ...(choices === undefined || choices === 1 ? {} : { candidateCount: choices }),
    ...(input.maxTokens === undefined ? {} : { maxOutputTokens: input.maxTokens }),
    ...(chat.logprobs ? { responseLogprobs: true, ...(chat.topLogprobs > 0 ? { logprobs: chat.topLogprobs } : {}) } : {}),
    ...(hasJsonMode(chat, major) ? jsonMode(chat, budget) : {}),
    ...(thinking === undefined ? {} : { thinkingConfig: thinking }),
  };
}

/** Reads a request. Throws Unsendable on media that are not what they say and on parts this wire has no words for. */
export function draftGenerateContent(input: ChatInput, options: GenerateContentOptions): GenerateContentDraft {
  const chat = TOOL_NAMES.sent(readChat(input));
  const major = geminiMajor(input.providerModelId);
  // Text of nothing is refused.
  const system = chat.turns.flatMap((turn) => (turn.role === 'system' && turn.text !== '' ? [turn.text] : []));
  const instruction = hasJsonMode(chat, major) ? '' : jsonInstruction(chat.format);
  const spoken = instruction === '' ? system : [...system, instruction];
  return {
    media: mediaReferences(chat.turns),
    body: (fetched) => {
      const contents = renderTurns(chat.turns, fetched, { ...options, needsSignature: major >= 3, strings: chat.strings });
      if (contents.length === 0 && spoken.length === 0) throw badInput('messages', 'There is nothing to answer.');
      const budget = schemaBudget();
      const config = generationConfig(chat, input, budget);
      const parts = spoken.map((text) => ({ text }));
      return chat.strings.write(
        writeJson({
          // A prompt must hold something that is no system text.
          ...(contents.length === 0 ? { contents: [{ role: 'user', parts }] } : { contents, ...(parts.length === 0 ? {} : { systemInstruction: { parts } }) }),
          ...(chat.tools.length === 0 ? {} : { tools: [{ functionDeclarations: chat.tools.map((tool) => declaration(tool, budget)) }], toolConfig: { functionCallingConfig: callingConfig(chat.toolChoice, chat.tools) } }),
          ...(Object.keys(config).length === 0 ? {} : { generationConfig: config }),
        }),
      );
    },
  };
}
