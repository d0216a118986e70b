/** The body of generateContent and streamGenerateContent. */
import { failure, isObject, type JsonObject } from '../canonical.js';
import { jsonInstruction, readChat, type Chat, type ChatInput, type Tool, type ToolChoice } from '../chat-request.js';
import { extraOf, mediaReferences, type Turn, type TurnCall, type UserPart } from '../chat-turns.js';
import type { FetchedMedia, MediaReference } from '../media.js';
import { RawJson, rawObject, writeJson } from '../raw-json.js';
import { Unsendable } from '../unsendable.js';
import { toOpenApiSchema } from './schema.js';
import { thinkingOf } from './thinking.js';

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

/** Google's documented stand-in where a client did not send a signature back; without one a call in the history is refused. */
const NO_SIGNATURE = 'skip_thought_signature_validator';
const INT32_BITS = 32;

/** Major version of a Gemini model; 0 for others. */
export function geminiMajor(model: string): number {
  return Number(/^(?:models\/)?gemini-(\d+)/.exec(model)?.[1] ?? 0);
}

function signatureOf(extra: JsonObject): string {
  const google = extra['google'];
  const signature = isObject(google) ? google['thought_signature'] : undefined;
  return typeof signature === 'string' ? signature : '';
}

/** Both sides want objects; what is none goes in as a member. */
const objectOf = (text: string, member: string): RawJson | JsonObject => (text.trim() === '' ? {} : (rawObject(text) ?? { [member]: jsonValue(text) }));

function jsonValue(text: string): unknown {
  try {
    JSON.parse(text);
    return new RawJson(text);
  } catch {
    return text;
  }
}

function userPart(part: UserPart, fetched: FetchedMedia): object {
  if (part.type === 'text') return { text: part.text };
  const media = part.source.kind === 'inline' ? part.source : fetched.get(part.source.url);
  if (media === undefined) throw new Unsendable(failure('BAD_REQUEST'));
  return { inlineData: { mimeType: media.mediaType, data: media.base64 } };
}

function callPart(call: TurnCall, signature: string, { withCallIds }: GenerateContentOptions): object {
  return { functionCall: { ...(withCallIds ? { id: call.id } : {}), name: call.name, args: objectOf(call.arguments, 'value') }, ...(signature === '' ? {} : { thoughtSignature: signature }) };
}

function modelParts(turn: Turn & { readonly role: 'assistant' }, needsSignature: boolean, options: GenerateContentOptions): readonly object[] {
  const ofMessage = signatureOf(extraOf(turn.message));
  const text = turn.text === '' && ofMessage === '' ? [] : [{ text: turn.text, ...(ofMessage === '' ? {} : { thoughtSignature: ofMessage }) }];
  // Of parallel calls only the first is signed.
  const calls = turn.calls.map((call, position) => callPart(call, signatureOf(call.extra) || (needsSignature && position === 0 ? NO_SIGNATURE : ''), options));
  const parts = [...text, ...calls];
  return parts.length === 0 ? [{ text: '' }] : parts;
}

/** Results that follow one another become one turn, in the order of the calls they answer. */
function resultsContent(turns: readonly (Turn & { readonly role: 'tool' })[], calls: readonly TurnCall[], { withCallIds }: GenerateContentOptions): object {
  const order = new Map(calls.map((call, position) => [call.id, position]));
  const sorted = [...turns].sort((left, right) => (order.get(left.callId) ?? 0) - (order.get(right.callId) ?? 0));
  return { role: 'user', parts: sorted.map((turn) => ({ functionResponse: { ...(withCallIds ? { id: turn.callId } : {}), name: turn.name, response: objectOf(turn.text, 'output') } })) };
}

function contentsOf(turns: readonly Turn[], needsSignature: boolean, options: GenerateContentOptions, fetched: FetchedMedia): readonly object[] {
  const contents: object[] = [];
  let calls: readonly TurnCall[] = [];
  let results: (Turn & { readonly role: 'tool' })[] = [];
  const closeResults = (): void => {
    if (results.length > 0) contents.push(resultsContent(results, calls, options));
    results = [];
  };
  for (const turn of turns) {
    if (turn.role === 'tool') {
      results.push(turn);
      continue;
    }
    closeResults();
    if (turn.role === 'user') contents.push({ role: 'user', parts: turn.parts.map((part) => userPart(part, fetched)) });
    else if (turn.role === 'assistant') {
      calls = turn.calls;
      contents.push({ role: 'model', parts: modelParts(turn, needsSignature, options) });
    }
  }
  closeResults();
  return contents;
}

function declaration({ name, description, parameters }: Tool): object {
  const head = { name, ...(description === '' ? {} : { description }) };
  const hasProperties = parameters !== undefined && (Object.keys(parameters).some((keyword) => keyword !== 'type' && keyword !== 'properties' && keyword !== 'required' && keyword !== 'additionalProperties') || Object.keys(isObject(parameters['properties']) ? parameters['properties'] : {}).length > 0);
  if (!hasProperties) return head;
  const schema = toOpenApiSchema(parameters);
  return { ...head, ...(schema === undefined ? { parametersJsonSchema: parameters } : { parameters: schema }) };
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

function jsonMode({ format }: Chat): object {
  if (format.kind !== 'json_schema') return { responseMimeType: 'application/json' };
  const schema = toOpenApiSchema(format.schema);
  return { responseMimeType: 'application/json', ...(schema === undefined ? { responseJsonSchema: format.schema } : { responseSchema: schema }) };
}

function generationConfig(chat: Chat, input: ChatInput): object {
  const major = geminiMajor(input.providerModelId);
  const { temperature, topP, presencePenalty, frequencyPenalty, stop, seed, choices } = chat;
  const thinking = thinkingOf(chat.reasoningEffort, input.providerModelId);
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(presencePenalty === undefined ? {} : { presencePenalty }),
    ...(frequencyPenalty === undefined ? {} : { frequencyPenalty }),
    ...(stop.length === 0 ? {} : { stopSequences: stop }),
    // Ours may have 64 bits, theirs has 32: the same seed stays the same.
    ...(seed === undefined ? {} : { seed: Number(BigInt.asIntN(INT32_BITS, BigInt(seed))) }),
    ...(choices === undefined || choices === 1 ? {} : { candidateCount: choices }),
    ...(input.maxTokens === undefined ? {} : { maxOutputTokens: input.maxTokens }),
    ...(chat.logprobs ? { responseLogprobs: true, ...(chat.topLogprobs > 0 ? { logprobs: chat.topLogprobs } : {}) } : {}),
    ...(hasJsonMode(chat, major) ? jsonMode(chat) : {}),
    ...(thinking === undefined ? {} : { thinkingConfig: thinking }),
  };
}

/** Reads a request. Throws Unsendable on media that are not what they say and on parts this wire has no words for. */
export function draftGenerateContent(input: ChatInput, options: GenerateContentOptions): GenerateContentDraft {
  const chat = readChat(input);
  const major = geminiMajor(input.providerModelId);
  const system = chat.turns.flatMap((turn) => (turn.role === 'system' ? [turn.text] : []));
  const instruction = hasJsonMode(chat, major) ? '' : jsonInstruction(chat.format);
  const spoken = instruction === '' ? system : [...system, instruction];
  return {
    media: mediaReferences(chat.turns),
    body: (fetched) => {
      const contents = contentsOf(chat.turns, major >= 3, options, fetched);
      const config = generationConfig(chat, input);
      const parts = spoken.map((text) => ({ text }));
      return Buffer.from(
        writeJson({
          // A prompt must hold something that is no system text.
          ...(contents.length === 0 ? { contents: [{ role: 'user', parts }] } : { contents, ...(parts.length === 0 ? {} : { systemInstruction: { parts } }) }),
          ...(chat.tools.length === 0 ? {} : { tools: [{ functionDeclarations: chat.tools.map(declaration) }], toolConfig: { functionCallingConfig: callingConfig(chat.toolChoice, chat.tools) } }),
          ...(Object.keys(config).length === 0 ? {} : { generationConfig: config }),
        }),
      );
    },
  };
}
