/** What hosts of the OpenAI wire do unlike OpenAI, and a request's fields as such a host takes them. */
import { rewriteJson } from '@signalbox/kernel/exact-numbers';
import { isObject, type JsonObject } from '../canonical.js';
import { markedAtEnd, plainText } from '../chat-turns.js';
import { LongStrings } from '../long-strings.js';
import { namedContent } from '../speakers.js';
import { takeTurns } from './alternating.js';
import { CACHE_FIELD, CACHE_KEY_FIELD, cacheKeySent, lastMarked, lastMarkedParts, marksLeft, mayHoldMarks, withBreakpoint, withCacheMark, withMarkBeside, withMarkInContent, withoutCacheMark } from './cache-marks.js';
import { withToolCalls } from './older-calls.js';
import { holdsOthers, plainCall, plainPart } from './strict-members.js';
import { thoughtOf, type ThoughtName } from './thoughts.js';

export interface ChatRequestField {
  readonly name: string;
  /** JSON text. */
  readonly value: Uint8Array;
}

export interface ChatQuirks {
  /** The host has no `developer` role: it becomes `system`. */
  readonly developerAsSystem: boolean;
  /** The host refuses `stream_options`; it tells usage unasked or never. */
  readonly noStreamOptions: boolean;
  /** Fields the host answers 400 to. */
  readonly dropFields: readonly string[];
  readonly renameFields: Readonly<Record<string, string>>;
  /**
   * `any`: that is the host's word for `required`, and a named tool is asked for by sending that one alone (Mistral).
   * `auto-only`: the host knows no other choice; `none` leaves the tools out (Z.ai).
   */
  readonly toolChoice: 'native' | 'any' | 'auto-only';
  /** Fields of a message that the host takes; a message with another one is refused. undefined = any. */
  readonly messageFields: readonly string[] | undefined;
  /** A tool's result may have the `name` of the tool, if it is not empty; other messages have none (Mistral). Beside `messageFields` without it. */
  readonly namesResults: boolean;
  /** Fields of an assistant's message in which the host takes back what a model thought. Others hold state of another maker's, or of none, and are not passed on. */
  readonly thoughtFields: readonly string[];
  /** Models, by the host's names, that take thoughts back; the others are refused for them. undefined = all. */
  readonly thoughtModels: RegExp | undefined;
  /** The one of `thoughtFields` that the host reads a model's text of thought in, which many clients send back under the other name: it is sent under this one. undefined = it reads it as it comes. */
  readonly thoughtName: ThoughtName | undefined;
  /** Models, by the host's names, that `thoughtName` is for. undefined = all. */
  readonly thoughtNameModels: RegExp | undefined;
  /** The host, or what its models' templates make of it, loses or refuses a text that comes in parts: those are joined, each on a line of its own. */
  readonly joinsTexts: boolean;
  /** The host's word for a part that is a file. */
  readonly filePart: 'file' | 'document_url';
  /** Ids of tool calls must be nine letters or digits: others are mapped, the same id always alike. */
  readonly shortToolCallIds: boolean;
  /** The host takes no words of a user's right behind results: the assistant must have answered those. A word of its own is put between them (Mistral). */
  readonly answersResults: boolean;
  /** The host refuses a message of the assistant that says nothing: it is left out. */
  readonly leavesOutMute: boolean;
  /** The host refuses a conversation that ends with words of the assistant: the user asks it to go on (Mistral). */
  readonly endsWithUser: boolean;
  /** User and assistant take turns there, the user first and last, and nobody speaks of tools but in words (Perplexity). */
  readonly alternates: boolean;
  /** How the host is told whether to think: `reasoning_effort` alone, `thinking: {type}` beside it, that alone, or `enable_thinking` with a budget instead of it. */
  readonly thinking: 'effort' | 'switch' | 'switch-alone' | 'budget';
  /** Models, by the host's names, that are told by `reasoning_effort` alone whatever `thinking` says. undefined = none. */
  readonly effortModels: RegExp | undefined;
  /** Models, by the host's names, that think unless they are told not to, which they are where the host would refuse: if thoughts of theirs are missing, or if a call is forced. `by`: the field that says so. undefined = none. */
  readonly stilled: { readonly models: RegExp; readonly by: 'thinking' | 'reasoning'; readonly withoutThoughts: 'calls' | 'turns'; readonly forForcedCalls: boolean } | undefined;
  /** Models, by the host's names, that think unless they are told not to, and are refused an answer in one piece while they do. undefined = none. */
  readonly thinksInStreams: RegExp | undefined;
  /** Stop sequences the host takes; more are cut off. */
  readonly stopMax: number;
  /** The host reads `cache_control` of parts and tools: the last four are sent as marks of five minutes, whatever they ask for. Strict hosts refuse it, the others cache by themselves: it is left out. */
  readonly takesCacheMarks: boolean;
  /** Models, by the catalog's ids, that read `prompt_cache_breakpoint` of parts (OpenAI from GPT-5.6 on): it is sent without a lifetime of its own. It is left out where another speaks, and for other models, some of whose hosts refuse it. undefined = none. */
  readonly breakpointModels: RegExp | undefined;
  /** The host reads `prompt_cache_key`, which strict hosts refuse: it is left out elsewhere. */
  readonly takesCacheKey: boolean;
  /** A client's address is not passed on: the host would follow it from inside the operator's network, or follows none. Images are sent inline. */
  readonly inlinesImages: boolean;
  /** `usage.cost` is what the host takes for the answer, in dollars. Elsewhere it may be anything. */
  readonly tellsCost: boolean;
  /** OpenAI's models from GPT-5.6 on think by default, and take tools on this wire only where they are told not to: they are, where a client says nothing of it. */
  readonly stillsForTools: boolean;
  /** The host takes messages out of the middle of a prompt that is too long for a small model, unless it is told not to, which it is. */
  readonly shortensPrompts: boolean;
}

/** Sequences that the contract allows. */
const STOP_MAX = 4;

export const NO_QUIRKS: ChatQuirks = {
  developerAsSystem: false,
  noStreamOptions: false,
  dropFields: [],
  renameFields: {},
  toolChoice: 'native',
  messageFields: undefined,
  namesResults: false,
  thoughtFields: [],
  thoughtModels: undefined,
  thoughtName: undefined,
  thoughtNameModels: undefined,
  joinsTexts: false,
  filePart: 'file',
  shortToolCallIds: false,
  answersResults: false,
  leavesOutMute: false,
  endsWithUser: false,
  alternates: false,
  thinking: 'effort',
  effortModels: undefined,
  stilled: undefined,
  thinksInStreams: undefined,
  stopMax: STOP_MAX,
  takesCacheMarks: false,
  breakpointModels: undefined,
  takesCacheKey: false,
  inlinesImages: false,
  tellsCost: false,
  stillsForTools: false,
  shortensPrompts: false,
};
/** By the catalog's ids. */
export const FROM_GPT_5_6 = /^openai\/gpt-(?:5\.(?:[6-9]|\d\d)|[6-9]|\d\d)/;

/** Of OpenAI itself. */
export const OPENAI: ChatQuirks = { ...NO_QUIRKS, stillsForTools: true, breakpointModels: FROM_GPT_5_6, takesCacheKey: true };
/** Of its earlier models, and where others serve its models as it does: that Azure takes breakpoints on this wire is not known. */
export const OPENAI_WITHOUT_BREAKPOINTS: ChatQuirks = { ...OPENAI, breakpointModels: undefined };
/** That concern the conversation alone: the fields beside it stay as they are. */
const CONVERSATION_ALONE: ReadonlySet<ChatQuirks> = new Set([NO_QUIRKS, OPENAI, OPENAI_WITHOUT_BREAKPOINTS]);

/** Alibaba's first models that think or do not, with open weights: `qwen3-32b`, `qwen3-30b-a3b`. */
export const HYBRID_QWEN = /^qwen3-\d+(?:\.\d+)?b(?:-a\d+b)?$/;

/** Tokens of thought for the efforts that mean less than all it takes. */
const THINKING_BUDGETS: Readonly<Record<string, number>> = { minimal: 1_024, low: 4_096, medium: 16_384 };
const TOOL_CALL_ID_CHARS = 9;
const BASE_62 = 62;
/** Of the prime of FNV-1a with 64 bits, which is 2^40 and this. */
const FNV_PRIME_LOW = 0x1b3;
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

function parsed(value: Uint8Array): unknown {
  return JSON.parse(bufferOf(value).toString('utf8'));
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

/** FNV-1a over UTF-8, 64 bit, in base 62: one id in 10^16 meets another of its conversation. */
function shortId(id: string): string {
  if (/^[a-zA-Z0-9]{9}$/.test(id)) return id;
  // In quarters, the lowest first: a request may hold megabytes of ids, and a bigint for each byte of them would hold the event loop for a second.
  let [a, b, c, d] = [0x2325, 0x8422, 0x9ce4, 0xcbf2];
  const bytes = Buffer.from(id);
  for (let at = 0; at < bytes.length; at += 1) {
    const mixed = a ^ (bytes[at] ?? 0);
    const first = mixed * FNV_PRIME_LOW;
    const second = b * FNV_PRIME_LOW + (first >>> 16);
    const third = c * FNV_PRIME_LOW + (mixed << 8) + (second >>> 16);
    d = (d * FNV_PRIME_LOW + (b << 8) + (third >>> 16)) & 0xffff;
    a = first & 0xffff;
    b = second & 0xffff;
    c = third & 0xffff;
  }
  let text = '';
  while (text.length < TOOL_CALL_ID_CHARS) {
    const third = ((d % BASE_62) << 16) | c;
    const second = ((third % BASE_62) << 16) | b;
    const first = ((second % BASE_62) << 16) | a;
    text += DIGITS[first % BASE_62] ?? '0';
    a = Math.floor(first / BASE_62);
    b = Math.floor(second / BASE_62);
    c = Math.floor(third / BASE_62);
    d = Math.floor(d / BASE_62);
  }
  return text;
}

/** What clients send back of a model's thought and of a provider's own state. */
const THOUGHT_FIELDS = ['reasoning', 'reasoning_content', 'reasoning_details', 'extra_content'] as const;
const THOUGHT_MARKS = ['"reasoning', '"extra_content"'] as const;
/** The place of a call in a stream: part of no request, and refused in one by OpenAI. Clients that put calls together from a stream send it back. */
const CALL_PLACE = 'index';
const CALL_PLACE_MARK = `"${CALL_PLACE}"`;
/** In a text of a client's its quotes are escaped. */
const TEXT_PART_MARK = '"text"';

function isKept(name: string, { messageFields, thoughtFields, takesCacheMarks }: ChatQuirks): boolean {
  if (name === CACHE_FIELD && !takesCacheMarks) return false;
  const isThought = THOUGHT_FIELDS.some((field) => field === name) && !thoughtFields.includes(name);
  return !isThought && (messageFields === undefined || messageFields.includes(name));
}

function adaptToolCall(call: unknown, quirks: ChatQuirks): unknown {
  if (!isObject(call)) return call;
  const kept = quirks.messageFields === undefined ? Object.fromEntries(Object.entries(call).filter(([name]) => name !== CALL_PLACE && isKept(name, quirks))) : plainCall(call);
  return withoutCacheMark(quirks.shortToolCallIds && typeof kept['id'] === 'string' ? { ...kept, id: shortId(kept['id']) } : kept);
}

function adaptPart(told: unknown, quirks: ChatQuirks, isAssistant: boolean): unknown {
  const marked = withBreakpoint(withCacheMark(told, quirks), quirks, isAssistant);
  const part = quirks.messageFields === undefined ? marked : plainPart(marked);
  const file = quirks.filePart !== 'file' && isObject(part) && part['type'] === 'file' ? part['file'] : undefined;
  if (!isObject(file) || typeof file['file_data'] !== 'string') return part;
  return { type: 'document_url', document_url: file['file_data'], ...(typeof file['filename'] === 'string' ? { document_name: file['filename'] } : {}) };
}

const isTextPart = (part: unknown): part is JsonObject => isObject(part) && (typeof part['text'] === 'string' || typeof part['refusal'] === 'string') && !Object.hasOwn(part, CACHE_FIELD);

/** Parts that are nothing but text, as one; a mark of a cache keeps them apart. */
function joinedTexts(parts: readonly unknown[], { joinsTexts }: ChatQuirks): unknown {
  return joinsTexts && parts.every(isTextPart) ? parts.map((part) => plainText([part])).join('\n') : parts;
}

function adaptMessage(message: unknown, quirks: ChatQuirks): unknown {
  if (!isObject(message)) return message;
  const isAssistant = message['role'] === 'assistant';
  const adapted: Record<string, unknown> = Object.fromEntries(Object.entries(message).filter(([name]) => (quirks.messageFields === undefined && !isAssistant && name !== CACHE_FIELD) || isKept(name, quirks)));
  if (quirks.thoughtName !== undefined && isAssistant) {
    const thought = thoughtOf(message, quirks.thoughtName);
    if (thought !== '') adapted[quirks.thoughtName] = thought;
  }
  if (quirks.namesResults && message['role'] === 'tool' && typeof message['name'] === 'string' && message['name'] !== '') adapted['name'] = message['name'];
  if (quirks.developerAsSystem && adapted['role'] === 'developer') adapted['role'] = 'system';
  if (quirks.shortToolCallIds && typeof adapted['tool_call_id'] === 'string') adapted['tool_call_id'] = shortId(adapted['tool_call_id']);
  if (message['role'] === 'user' && !Object.hasOwn(adapted, 'name')) adapted['content'] = namedContent(adapted['content'], message['name']);
  if (Array.isArray(adapted['tool_calls'])) adapted['tool_calls'] = (adapted['tool_calls'] as readonly unknown[]).map((call) => adaptToolCall(call, quirks));
  if (Array.isArray(adapted['content'])) adapted['content'] = joinedTexts((adapted['content'] as readonly unknown[]).map((part) => adaptPart(part, quirks, isAssistant)), quirks);
  return withMarkInContent(adapted, quirks);
}

/** What a message of the assistant may hold in the place of words. */
const SAID_OTHERWISE = ['tool_calls', 'function_call', 'audio'] as const;

const isSaid = (value: unknown): boolean => value !== undefined && value !== null && value !== '' && !(Array.isArray(value) && value.length === 0);

/** A message of the assistant with its refusal as its words, for hosts that know no field for one; none where it says nothing. */
function spoken(message: unknown): readonly unknown[] {
  if (!isObject(message) || message['role'] !== 'assistant' || plainText(message['content']).trim() !== '') return [message];
  const { refusal, ...rest } = message;
  if (typeof refusal === 'string' && refusal.trim() !== '') return [{ ...rest, content: refusal }];
  return SAID_OTHERWISE.some((name) => isSaid(message[name])) ? [message] : [];
}

/** As they came where nobody says anything: the host says what it lacks. */
function withoutMute(messages: readonly unknown[]): readonly unknown[] {
  const kept = messages.flatMap(spoken);
  return kept.length === 0 ? messages : kept;
}

const GO_ON = { role: 'user', content: 'Continue.' };

function toldToGoOn(messages: readonly unknown[]): readonly unknown[] {
  const last = messages.at(-1);
  return isObject(last) && last['role'] === 'assistant' ? [...messages, GO_ON] : messages;
}

const ACKNOWLEDGED = { role: 'assistant', content: 'OK.' };

function answerResults(messages: readonly unknown[]): readonly unknown[] {
  const roleOf = (message: unknown): unknown => (isObject(message) ? message['role'] : undefined);
  return messages.flatMap((message, at) => (roleOf(message) === 'user' && roleOf(messages[at - 1]) === 'tool' ? [ACKNOWLEDGED, message] : [message]));
}

/** Words that must stand in the messages for a quirk to matter: they may be megabytes, and few hold any. */
function concerns(messages: Buffer, quirks: ChatQuirks): boolean {
  if (quirks.alternates) return true;
  const hasAssistant = messages.includes('"assistant"');
  if (hasAssistant && (messages.includes(CALL_PLACE_MARK) || THOUGHT_MARKS.some((mark) => messages.includes(mark)))) return true;
  if (quirks.developerAsSystem && messages.includes('"developer"')) return true;
  if (mayHoldMarks(messages, quirks)) return true;
  if (quirks.joinsTexts && messages.includes(TEXT_PART_MARK)) return true;
  if (quirks.filePart !== 'file' && messages.includes('"file"')) return true;
  if (hasAssistant && (quirks.leavesOutMute || quirks.endsWithUser)) return true;
  if ((quirks.messageFields !== undefined || quirks.shortToolCallIds || quirks.answersResults) && (hasAssistant || messages.includes('"tool"') || messages.includes('"name"'))) return true;
  return quirks.messageFields !== undefined && holdsOthers(messages, quirks.messageFields);
}

function adaptMessages(value: Uint8Array, quirks: ChatQuirks, isMarkedAtEnd: boolean): Uint8Array {
  if (!isMarkedAtEnd && !concerns(bufferOf(value), quirks)) return value;
  const strings = new LongStrings(value);
  const messages = isMarkedAtEnd ? markedAtEnd(strings.parse()) : strings.parse();
  if (!Array.isArray(messages)) return value;
  const told = messages as readonly unknown[];
  const turns = quirks.alternates ? takeTurns(told) : quirks.messageFields === undefined ? told : withToolCalls(told);
  const said = quirks.leavesOutMute ? withoutMute(turns) : turns;
  const adapted = lastMarkedParts(said.map((message) => adaptMessage(message, quirks)), quirks);
  const answered = quirks.answersResults ? answerResults(adapted) : adapted;
  return strings.write(JSON.stringify(quirks.endsWithUser ? toldToGoOn(answered) : answered));
}

/** A list of tools written anew, with every digit of the numbers in it; the same bytes where it is no list. */
function rewritten(value: Uint8Array, change: (tools: readonly unknown[]) => readonly unknown[]): Uint8Array {
  const written = rewriteJson(bufferOf(value).toString('utf8'), (tools) => (Array.isArray(tools) ? change(tools as readonly unknown[]) : undefined));
  return written === undefined ? value : Buffer.from(written);
}

/** The tools with plain marks of a cache, those for which the messages leave room, or with none. They come first in a prompt: later marks cover them. */
function adaptTools(value: Uint8Array, quirks: ChatQuirks, messages: Uint8Array | undefined): Uint8Array {
  if (!mayHoldMarks(bufferOf(value), quirks)) return value;
  return rewritten(value, (tools) => {
    const adapted = tools.map((tool) => withMarkBeside(tool, quirks));
    return quirks.takesCacheMarks ? lastMarked(adapted, { marks: marksLeft(messages) }) : adapted;
  });
}

interface Tooling {
  readonly tools: ChatRequestField | undefined;
  readonly choice: ChatRequestField | undefined;
}

function nameOf(tool: unknown): unknown {
  return isObject(tool) && isObject(tool['function']) ? tool['function']['name'] : undefined;
}

function adaptTooling({ tools, choice }: Tooling, quirks: ChatQuirks): Tooling {
  if (quirks.toolChoice === 'native' || choice === undefined) return { tools, choice };
  const wanted = parsed(choice.value);
  if (quirks.toolChoice === 'auto-only') return { tools: wanted === 'none' ? undefined : tools, choice: undefined };
  if (wanted === 'required') return { tools, choice: { ...choice, value: json('any') } };
  const name = nameOf(wanted);
  if (name === undefined || tools === undefined) return { tools, choice };
  return { tools: { ...tools, value: rewritten(tools.value, (all) => all.filter((tool) => nameOf(tool) === name)) }, choice: { ...choice, value: json('any') } };
}

function thinkingFields(field: ChatRequestField, quirks: ChatQuirks): readonly ChatRequestField[] {
  const effort = parsed(field.value);
  if (quirks.thinking === 'effort' || typeof effort !== 'string') return [field];
  const isOn = effort !== 'none';
  if (quirks.thinking !== 'budget') {
    const told = { name: 'thinking', value: json({ type: isOn ? 'enabled' : 'disabled' }) };
    return isOn && quirks.thinking === 'switch' ? [told, field] : [told];
  }
  const budget = Object.hasOwn(THINKING_BUDGETS, effort) ? THINKING_BUDGETS[effort] : undefined;
  const told = { name: 'enable_thinking', value: json(isOn) };
  return budget === undefined ? [told] : [told, { name: 'thinking_budget', value: json(budget) }];
}

function adaptStop(value: Uint8Array, stopMax: number): Uint8Array {
  const stop = parsed(value);
  return Array.isArray(stop) && stop.length > stopMax ? json(stop.slice(0, stopMax)) : value;
}

/** The same list where nothing of messages and tools has to change, as for nearly every request. */
function withConversation(fields: readonly ChatRequestField[], quirks: ChatQuirks): readonly ChatRequestField[] {
  let isChanged = false;
  const told = fields.find(({ name }) => name === 'messages');
  const messages = told === undefined ? undefined : adaptMessages(told.value, quirks, quirks.takesCacheMarks && fields.some(({ name }) => name === CACHE_FIELD));
  const adapted = fields.map((field) => {
    const value = field === told && messages !== undefined ? messages : field.name === 'tools' ? adaptTools(field.value, quirks, messages) : field.value;
    if (value === field.value) return field;
    isChanged = true;
    return { ...field, value };
  });
  return isChanged ? adapted : fields;
}

function withoutBreakpoints(quirks: ChatQuirks): ChatQuirks {
  return quirks === OPENAI ? OPENAI_WITHOUT_BREAKPOINTS : { ...quirks, breakpointModels: undefined };
}

/** What Mistral's models refuse wherever they are served: their maker's own code checks a conversation on Azure, in vLLM and behind OpenRouter as well. */
const MISTRAL_MODELS = /^mistralai\//;

/** Of one model of the host. `model`: its id in the catalog. */
export function quirksOfModel(host: ChatQuirks, providerModelId: string, model = ''): ChatQuirks {
  const known = host.breakpointModels === undefined || host.breakpointModels.test(model) ? host : withoutBreakpoints(host);
  const quirks = MISTRAL_MODELS.test(model) ? { ...known, shortToolCallIds: true, answersResults: true } : known;
  if (quirks.effortModels?.test(providerModelId) === true) return { ...quirks, thinking: 'effort' };
  if (quirks.thoughtNameModels?.test(providerModelId) === false) return { ...quirks, thoughtName: undefined };
  return quirks.thoughtModels === undefined || quirks.thoughtModels.test(providerModelId) ? quirks : { ...quirks, thoughtFields: [], thoughtName: undefined };
}

/** A request's own wishes for the cache, as the host takes them: its mark is one of the messages by now. */
function withCacheFields(fields: readonly ChatRequestField[], { takesCacheKey }: ChatQuirks): readonly ChatRequestField[] {
  if (!fields.some(({ name }) => name === CACHE_FIELD || name === CACHE_KEY_FIELD)) return fields;
  return fields.flatMap((field) => {
    if (field.name === CACHE_KEY_FIELD) return takesCacheKey ? [{ ...field, value: cacheKeySent(field.value) }] : [];
    return field.name === CACHE_FIELD ? [] : [field];
  });
}

/** The fields as the host takes them, in no particular order. Untouched values stay the bytes that the client sent. */
export function adaptFields(fields: readonly ChatRequestField[], quirks: ChatQuirks): readonly ChatRequestField[] {
  const conversation = withCacheFields(withConversation(fields, quirks), quirks);
  if (CONVERSATION_ALONE.has(quirks)) return conversation;
  const find = (name: string): ChatRequestField | undefined => conversation.find((field) => field.name === name);
  const { tools, choice } = adaptTooling({ tools: find('tools'), choice: find('tool_choice') }, quirks);
  const others = conversation.flatMap((field): readonly ChatRequestField[] => {
    switch (field.name) {
      case 'tools':
      case 'tool_choice':
        return [];
      case 'reasoning_effort':
        return thinkingFields(field, quirks);
      case 'stop':
        return [{ ...field, value: adaptStop(field.value, quirks.stopMax) }];
      default:
        return [field];
    }
  });
  return [...others, tools, choice]
    .filter((field) => field !== undefined)
    .filter(({ name }) => !quirks.dropFields.includes(name))
    .map((field) => (Object.hasOwn(quirks.renameFields, field.name) ? { ...field, name: quirks.renameFields[field.name] ?? field.name } : field));
}
