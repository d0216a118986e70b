/** Reads the body of POST /v1/chat/completions and checks every field and bound (docs/api.md). */
import { rewriteJson } from '@signalbox/kernel/exact-numbers';
import { isAutoModelId } from '@signalbox/kernel/model-lists';
import { BLANK_STOP, CRAMPED_EFFORT, effortParam, PERSONAL_USER, SECOND_SAMPLING, SECOND_STOP, SINGLE_CALLS, THINKING_SAMPLING, warmthParam, WHOLE_EFFORT, WIDE_PENALTIES } from '@signalbox/kernel/param-names';
import { isPersonalUser } from '@signalbox/kernel/personal-user';
import type { Variant } from '@signalbox/kernel/tiers';
import type { ChatRequest, ForwardedField } from '../../domain/chat-request.js';
import { calledToolBytes } from '../../domain/prompt-overheads.js';
import { TOOLS_MAX } from '../../domain/tool-request.js';
import { apiError, type ApiError } from '../../wire/errors.js';
import { unescapedBytes } from '../../wire/json-escapes.js';
import { ALL_WHOLE } from '../../wire/json-long-text.js';
import type { ByteRange } from '../../wire/json-pieces.js';
import { parseJsonObject, parseScanned, scanJsonObject, type JsonObjectRead, type ParsedJson } from '../../wire/json-scan.js';
import { jsonProblem } from '../../wire/json-words.js';
import { asArray, asBoolean, asInteger, asName, asNumber, asObject, asOneOf, asString, asStrings, Invalid, isAbsent, isNullAt, isObject, own, plainInteger, required, withoutNulls, wrongType, wrongValue, type JsonObject } from './checks.js';
import { checkMessages, sendableMessages, type MessageFacts } from './messages.js';
import { readPlugins, readPositive, readPrivacy, readProvider, readQuantization, unknownPreferences } from './preferences.js';
import { promptWindow } from './prompt-window.js';
import { checkResponseFormat, responseFormatOf, sendableFormat } from './response-format.js';

export type ChatRequestResult = { readonly kind: 'ok'; readonly request: ChatRequest } | { readonly kind: 'invalid'; readonly error: ApiError };

const MODEL_ID_MAX = 256;
const MODELS_MAX = 16;
const CHOICES_MAX = 128;
const SESSION_ID_MAX = 256;
const PROMPT_CACHE_KEY_MAX = 1_024;
/** Average for text. */
const BYTES_PER_TOKEN = 4;
/** An estimate: a photograph in full detail is 765 tokens with OpenAI, up to about 1,600 with Anthropic. */
const TOKENS_PER_MEDIA_PART = 1_000;
const BIAS_MAX = 100;
/** All hosts accept temperatures up to this. */
const WARM = 1;
const MAX_TOKENS_MAX = 4_294_967_295; // uint32 between the services.

/** Fields that only variant A has; `data_collection` and `zdr` apply in both. */
const VARIANT_A_ONLY = new Set(['plugins', 'plugin_options', 'preferred_max_latency', 'preferred_min_throughput', 'min_quantization', 'max_quantization', 'models', 'provider']);
/** Fields that control this gateway and are never forwarded. */
const OWN_FIELDS = new Set([...VARIANT_A_ONLY, 'model', 'stream', 'stream_options', 'max_tokens', 'max_completion_tokens', 'data_collection', 'zdr', 'session_id']);

type Check = (value: unknown, name: string) => void;

const aString: Check = (value, name) => void asName(value, name, { min: 1, max: 512 });
const aBoolean: Check = (value, name) => void asBoolean(value, name);
const within = (min: number, max: number): Check => (value, name) => void asNumber(value, name, min, max);

/** Fields that are forwarded as they were sent (but for `sendable`), with their checks. `messages` and `seed` are checked elsewhere. */
const FORWARDED = new Map<string, Check>(Object.entries<Check>({
  messages: () => undefined,
  temperature: within(0, 2),
  top_p: within(0, 1),
  presence_penalty: within(-2, 2),
  frequency_penalty: within(-2, 2),
  stop: checkStop,
  n: (value, name) => void asInteger(value, name, 1, CHOICES_MAX),
  seed: () => undefined,
  logit_bias: checkLogitBias,
  logprobs: aBoolean,
  top_logprobs: (value, name) => void asInteger(value, name, 0, 20),
  user: aString,
  metadata: checkMetadata,
  reasoning_effort: aString,
  service_tier: aString,
  verbosity: aString,
  modalities: checkModalities,
  tools: checkTools,
  tool_choice: checkToolChoice,
  parallel_tool_calls: aBoolean,
  response_format: checkResponseFormat,
  prompt_cache_key: (value, name) => void asName(value, name, { min: 1, max: PROMPT_CACHE_KEY_MAX }),
  cache_control: (value, name) => void asObject(value, name),
}));
const FIELDS_OF_B = [...FORWARDED.keys(), ...OWN_FIELDS].filter((name) => !VARIANT_A_ONLY.has(name));
/** Fields that change only what a request costs: an endpoint without a use for them serves it as well (ADR 96). */
const OF_CACHE = new Set(['prompt_cache_key', 'cache_control']);
/** Fields that have no meaning without tools; providers then refuse them. */
const OF_TOOLS = new Set(['tools', 'tool_choice', 'parallel_tool_calls']);
/** Fields that become part of the prompt. */
const OF_PROMPT = new Set(['messages', 'tools', 'response_format']);

/** May have 100,000 members, so the path of a member is built only for an error. */
function checkLogitBias(value: unknown, name: string): void {
  const biases = asObject(value, name);
  for (const token of Object.keys(biases)) {
    const bias = biases[token];
    if (typeof bias !== 'number' || !(Math.abs(bias) <= BIAS_MAX)) asNumber(bias, `${name}.${token}`, -BIAS_MAX, BIAS_MAX);
  }
}

function checkMetadata(value: unknown, name: string): void {
  const metadata = asObject(value, name);
  for (const key of Object.keys(metadata)) if (typeof metadata[key] !== 'string') throw wrongType(`${name}.${key}`, 'a string');
}

/** Spoken answers are refused: they need the field `audio`, which is not supported, and their cost would not be known. */
function checkModalities(value: unknown, name: string): void {
  asStrings(value, name, 8).forEach((modality, index) => {
    if (modality === 'audio') throw wrongValue(`${name}.[${index}]`, "'text', since no answer is spoken here");
  });
}

function checkStop(value: unknown, name: string): void {
  if (typeof value === 'string') return;
  if (!Array.isArray(value)) throw wrongType(name, 'a string or an array of strings');
  asArray(value, name, 4).forEach((item, index) => asString(item, `${name}.[${index}]`));
}

/** True if one of the stop sequences is only blank space. */
function isBlankStop(value: unknown): boolean {
  const stops: readonly unknown[] = Array.isArray(value) ? value : [value];
  return stops.some((stop) => typeof stop === 'string' && stop.trim() === '');
}

/** A 64-bit integer, read from its digits, since a large one loses precision as a number. */
function checkSeed(value: unknown, text: string): void {
  const isHuge = typeof value === 'number' && !(Math.abs(value) <= 2 ** 63);
  const seed = isHuge ? 2n ** 64n : BigInt(/^-?\d+$/.test(text) ? text : plainInteger(asInteger(value, 'seed', -(2 ** 63), 2 ** 63), text));
  if (BigInt.asIntN(64, seed) !== seed) throw wrongValue('seed', 'an integer from -9223372036854775808 to 9223372036854775807');
}

function checkTools(value: unknown, name: string): void {
  asArray(value, name, TOOLS_MAX).forEach((item, index) => {
    const param = `${name}.[${index}]`;
    const tool = asObject(item, param);
    asOneOf(required(own(tool, 'type'), `${param}.type`), `${param}.type`, ['function']);
    const at = `${param}.function`;
    const called = asObject(required(own(tool, 'function'), at), at);
    asString(required(own(called, 'name'), `${at}.name`), `${at}.name`, { min: 1, max: 256 });
    const description = own(called, 'description');
    if (!isAbsent(description)) asString(description, `${at}.description`);
    const parameters = own(called, 'parameters');
    if (!isAbsent(parameters)) asObject(parameters, `${at}.parameters`);
    const strict = own(called, 'strict');
    if (!isAbsent(strict)) asBoolean(strict, `${at}.strict`);
  });
}

function checkToolChoice(value: unknown, name: string): void {
  if (typeof value === 'string') {
    asOneOf(value, name, ['none', 'auto', 'required']);
    return;
  }
  if (!isObject(value)) throw wrongType(name, 'a string or an object');
  asOneOf(required(own(value, 'type'), `${name}.type`), `${name}.type`, ['function']);
  const called = asObject(required(own(value, 'function'), `${name}.function`), `${name}.function`);
  asString(required(own(called, 'name'), `${name}.function.name`), `${name}.function.name`, { min: 1 });
}

/** The name of the function in a tool or a tool choice. */
function calledName(tool: unknown): unknown {
  const called = isObject(tool) ? own(tool, 'function') : undefined;
  return isObject(called) ? own(called, 'name') : undefined;
}

/** With an answer of at most this many tokens, models that take a number of tokens for reasoning do not reason. */
const THOUGHT_TOKENS_MIN = 1_024;
const THOUGHT_EFFORTS = new Set<unknown>(['minimal', 'low', 'medium', 'high', 'xhigh', 'max']);

/** Whether reasoning is asked for, and whether the token limit leaves room for it. */
function effortOf(body: JsonObject, maxTokens: number | undefined): 'none' | 'cramped' | 'roomy' {
  if (!THOUGHT_EFFORTS.has(own(body, 'reasoning_effort'))) return 'none';
  return maxTokens === undefined || maxTokens > THOUGHT_TOKENS_MIN ? 'roomy' : 'cramped';
}

/** Adds the names (as in `addMark`) of what a reasoning effort requires of an endpoint. With a forced tool call no model reasons, so sampling is not restricted. */
function addEffort(params: string[], body: JsonObject, maxTokens: number | undefined, stream: boolean, isForced: boolean): void {
  const effort = effortOf(body, maxTokens);
  if (effort === 'cramped') params.push(CRAMPED_EFFORT);
  if (effort !== 'none' && !stream) params.push(WHOLE_EFFORT);
  const named = effortParam(own(body, 'reasoning_effort'));
  if (named !== undefined) params.push(named);
  if (isForced || effort !== 'roomy') return;
  if (params.includes('temperature')) params.push(THINKING_SAMPLING.temperature);
  if (params.includes('top_p')) params.push(THINKING_SAMPLING.top_p);
}

/** The name of a conversation from the body's session id, if any, and its opening text. */
export type NameSession = (sessionId: string | undefined, opening: string) => string;

/** Never throws on any bytes. Parses the body once. Forwarded fields are ranges of `body`, which must not change afterwards. */
export function readChatRequest(body: Buffer, variant: Variant, nameSession: NameSession): ChatRequestResult {
  return requestOf(body, parseJsonObject(body, true), variant, nameSession);
}

/** As `readChatRequest`, but lets other requests run between the steps: with 100,000 values each step takes tens of milliseconds. */
export async function readLargeChatRequest(body: Buffer, variant: Variant, nameSession: NameSession, nextTurn: () => Promise<void>): Promise<ChatRequestResult> {
  const scanned = scanJsonObject(body, true);
  if (scanned.kind === 'invalid') return requestOf(body, scanned, variant, nameSession);
  await nextTurn();
  const json = parseScanned(scanned);
  await nextTurn();
  return requestOf(body, json, variant, nameSession);
}

function requestOf(body: Buffer, json: JsonObjectRead, variant: Variant, nameSession: NameSession): ChatRequestResult {
  if (json.kind === 'invalid') return { kind: 'invalid', error: apiError('bad_json', { message: jsonProblem(json, body.length) }) };
  try {
    return { kind: 'ok', request: read(body, json, variant, nameSession) };
  } catch (error) {
    if (error instanceof Invalid) return { kind: 'invalid', error: error.error };
    throw error;
  }
}

/** The fields that variant B has. Selected by name, since a body may have 100,000 others. */
function knownToB(object: JsonObject): JsonObject {
  const known: Record<string, unknown> = {};
  for (const name of FIELDS_OF_B) if (Object.hasOwn(object, name)) known[name] = object[name];
  return known;
}

function read(body: Buffer, { object, fields: ranges, wholeLengths }: ParsedJson, variant: Variant, nameSession: NameSession): ChatRequest {
  const ours = variant === 'A' ? object : knownToB(object);
  const model = asName(required(own(ours, 'model'), 'model'), 'model', { min: 1, max: MODEL_ID_MAX });
  const messages = checkMessages(own(ours, 'messages'), wholeLengths);
  const tools = own(ours, 'tools');
  const hasTools = Array.isArray(tools) && tools.length > 0;
  const { fields, waitingToolFields, params, promptBytes, ignoredParams } = split(body, object, ours, ranges, hasTools, messages.hasUnsendable ? sendableMessages(wholeLengths === ALL_WHOLE ? own(ours, 'messages') : wholeMessages(body, ranges)) : undefined);
  const { stream, includeUsage } = readStream(ours);
  const maxTokens = readMaxTokens(ours);
  if (maxTokens !== undefined) params.push('max_tokens');
  const toolChoice = own(ours, 'tool_choice');
  const isForced = toolChoice === 'required' || isObject(toolChoice);
  addEffort(params, ours, maxTokens, stream, isForced);
  const choices = own(ours, 'n');
  const quantization = readQuantization(ours);
  const plugins = readPlugins(own(ours, 'plugins'), own(ours, 'plugin_options'));
  // A plugin may offer the tool that must be called.
  if (isForced && !hasTools && plugins.ids.length === 0) throw wrongValue('tool_choice', '`tools` beside it');
  if (isObject(toolChoice) && hasTools && plugins.ids.length === 0 && !tools.some((tool) => calledName(tool) === calledName(toolChoice))) throw wrongValue('tool_choice', 'the name of one of `tools`');
  const { dataCollection, zdr } = readPrivacy(object);
  const models = own(ours, 'models');
  const sessionId = own(ours, 'session_id');
  const user = own(ours, 'user');
  const topLogprobs = own(ours, 'top_logprobs');
  return {
    model,
    models: isAbsent(models) ? [] : asStrings(models, 'models', MODELS_MAX),
    stream,
    includeUsage,
    maxTokens,
    maxTokensParam: maxTokens === undefined ? undefined : isAbsent(own(ours, 'max_tokens')) ? 'max_completion_tokens' : 'max_tokens',
    choices: typeof choices === 'number' ? choices : 1,
    fields,
    ...(waitingToolFields.length > 0 && plugins.ids.length > 0 ? { waitingToolFields } : {}),
    needs: {
      tools: hasTools,
      forcedToolChoice: isForced && hasTools,
      parallelToolCalls: params.includes('parallel_tool_calls'),
      responseFormat: responseFormatOf(own(ours, 'response_format')),
      vision: messages.vision,
      fileInput: messages.fileInput,
      audioInput: messages.audioInput,
      streaming: stream,
      logprobs: own(ours, 'logprobs') === true || (typeof topLogprobs === 'number' && topLogprobs > 0),
      choices: typeof choices === 'number' ? choices : 1,
      params,
      ownCredential: messages.storedParam !== undefined,
    },
    storedParam: messages.storedParam,
    messageCount: messages.count,
    imageCount: messages.imageCount,
    calledToolBytes: calledToolBytes(messages.calledTools),
    promptBytes,
    inlineImageBytes: messages.inlineImageChars,
    inlineSoundBytes: messages.inlineSoundChars,
    soundTokensMax: messages.soundTokensMax,
    promptTokens: estimatedTokens(promptBytes, messages),
    mediaTokens: mediaTokens(messages),
    hasUnboundedParts: messages.hasUnboundedParts,
    dataCollection,
    zdr,
    preferredMaxLatency: readPositive(ours, 'preferred_max_latency'),
    preferredMinThroughput: readPositive(ours, 'preferred_min_throughput'),
    minQuantization: quantization.min,
    maxQuantization: quantization.max,
    provider: readProvider(own(ours, 'provider')),
    pluginIds: plugins.ids,
    pluginOptions: plugins.options,
    user: typeof user === 'string' && user !== '' ? user : undefined,
    ignoredParams: [...ignoredParams, ...unknownPreferences(own(ours, 'provider'))],
    session: nameSession(isAbsent(sessionId) ? undefined : asName(sessionId, 'session_id', { min: 1, max: SESSION_ID_MAX }), messages.opening),
    promptText: choosesModel(model, models) ? promptWindow(own(ours, 'messages')) : '',
  };
}

/** The messages with their whole strings, which `parseJsonObject` shortened. */
function wholeMessages(body: Buffer, ranges: ReadonlyMap<string, ByteRange>): unknown {
  const range = ranges.get('messages');
  return range === undefined ? undefined : JSON.parse(body.toString('utf8', range.start, range.end));
}

/** Estimated tokens of the prompt. */
export function estimatedTokens(promptBytes: number, facts: MessageFacts): number {
  return Math.ceil(Math.max(0, promptBytes - facts.inlineMediaChars) / BYTES_PER_TOKEN) + mediaTokens(facts);
}

/** The part of the estimate for media, which is only a guess: providers count an image as tens to tens of thousands of tokens. */
export function mediaTokens({ mediaParts }: MessageFacts): number {
  return mediaParts * TOKENS_PER_MEDIA_PART;
}

/** True if routing chooses the model (`auto`). */
function choosesModel(model: string, models: unknown): boolean {
  return isAutoModelId(model) || (Array.isArray(models) && models.some((name) => typeof name === 'string' && isAutoModelId(name)));
}

interface Split {
  readonly fields: readonly ForwardedField[];
  /** Fields about tools of a request without tools. */
  readonly waitingToolFields: readonly ForwardedField[];
  /** Names of the forwarded fields except `messages` and those of caches, and of special values (`addMark`). */
  readonly params: string[];
  /** Bytes of the fields that become prompt; in messages escapes count as the characters that they stand for. */
  readonly promptBytes: number;
  readonly ignoredParams: readonly string[];
}

/** The first byte of `null`, with which no other JSON value begins. */
const FIRST_OF_NULL = 0x6e;

/** True for an empty `stop`, `user` or `prompt_cache_key`, which some clients always send and hosts refuse. */
const isEmpty = (name: string, value: unknown): boolean => (name === 'stop' && Array.isArray(value) && value.length === 0) || ((name === 'user' || name === 'prompt_cache_key') && value === '');

/** Checks the forwarded fields and cuts them out of the body; collects unknown names. `messages`: if given, replaces the client's. */
function split(body: Buffer, object: JsonObject, ours: JsonObject, ranges: ReadonlyMap<string, ByteRange>, hasTools: boolean, messages: Buffer | undefined): Split {
  const fields: ForwardedField[] = [];
  const waitingToolFields: ForwardedField[] = [];
  const params: string[] = [];
  const ignoredParams: string[] = [];
  let promptBytes = 0;
  for (const [name, { start, end }] of ranges) {
    const check = FORWARDED.get(name);
    if (check === undefined) {
      // Whether it is null is read from the body: to find 100,000 names in the object takes 50 ms.
      if (body[start] !== FIRST_OF_NULL && (!OWN_FIELDS.has(name) || !Object.hasOwn(ours, name))) ignoredParams.push(name);
      continue;
    }
    const value = own(object, name);
    if (isAbsent(value) || isEmpty(name, value)) continue;
    check(value, name);
    if (name === 'seed') checkSeed(value, body.toString('latin1', start, end));
    if (!hasTools && OF_TOOLS.has(name)) {
      if (name !== 'tools') waitingToolFields.push({ name, value: body.subarray(start, end) });
      continue;
    }
    const raw = body.subarray(start, end);
    const sent = (name === 'messages' ? messages : sendable(name, value, raw)) ?? raw;
    fields.push({ name, value: sent });
    if (name !== 'messages' && !OF_CACHE.has(name)) params.push(name);
    addMark(params, name, value);
    // Messages count by their characters; tools and schemas by their JSON bytes, since hosts pass them to the model in forms of their own.
    if (OF_PROMPT.has(name)) promptBytes += name === 'messages' ? unescapedBytes(sent) : sent.length;
  }
  if (params.includes('temperature') && params.includes('top_p')) params.push(SECOND_SAMPLING);
  return { fields, waitingToolFields, params, promptBytes, ignoredParams };
}

/** Adds names for values that some hosts refuse, although they take the field. */
function addMark(params: string[], name: string, value: unknown): void {
  switch (name) {
    case 'stop':
      if (isBlankStop(value)) params.push(BLANK_STOP);
      if (Array.isArray(value) && value.length > 1) params.push(SECOND_STOP);
      return;
    case 'parallel_tool_calls':
      if (value === false) params.push(SINGLE_CALLS);
      return;
    case 'temperature':
      if (typeof value === 'number' && value > WARM) params.push(warmthParam(value));
      return;
    case 'presence_penalty':
    case 'frequency_penalty':
      if (typeof value === 'number' && (value < 0 || value > 1)) params.push(WIDE_PENALTIES[name]);
      return;
    case 'user':
      if (typeof value === 'string' && isPersonalUser(value)) params.push(PERSONAL_USER);
      return;
    default:
  }
}

/** The field without nulls that count as absent here but that hosts refuse as a wrong type, and with an integer such as 1e2 written as 100; the content of schemas is unchanged. `raw`: the field's bytes. Undefined = sent as it is. */
function sendable(name: string, value: unknown, raw: Buffer): Buffer | undefined {
  if (name === 'tools' && Array.isArray(value)) {
    if (!(value as readonly JsonObject[]).some((tool) => isNullAt(own(tool, 'function'), ['description', 'parameters', 'strict']))) return undefined;
    return Buffer.from(rewriteJson(raw.toString('utf8'), (tools) => (tools as readonly JsonObject[]).map((tool) => ({ ...tool, function: withoutNulls(own(tool, 'function'), 0) }))) ?? raw);
  }
  if (name === 'response_format' && isObject(value)) return sendableFormat(value, raw);
  if (!INTEGERS.has(name) || typeof value !== 'number') return undefined;
  const text = raw.toString('latin1');
  return PLAIN.test(text) ? undefined : Buffer.from(plainInteger(value, text));
}

const INTEGERS = new Set(['n', 'seed', 'top_logprobs']);
const PLAIN = /^(?:0|-?[1-9]\d*)$/;

function readStream(body: JsonObject): { readonly stream: boolean; readonly includeUsage: boolean } {
  const value = own(body, 'stream');
  const stream = isAbsent(value) ? false : asBoolean(value, 'stream');
  const options = own(body, 'stream_options');
  if (isAbsent(options)) return { stream, includeUsage: false };
  const object = asObject(options, 'stream_options');
  if (!stream) throw wrongValue('stream_options', 'it only with `stream: true`');
  const include = own(object, 'include_usage');
  return { stream, includeUsage: isAbsent(include) ? false : asBoolean(include, 'stream_options.include_usage') };
}

function readMaxTokens(body: JsonObject): number | undefined {
  const older = own(body, 'max_tokens');
  const newer = own(body, 'max_completion_tokens');
  if (!isAbsent(older) && !isAbsent(newer)) throw wrongValue('max_tokens', 'either it or `max_completion_tokens`, not both');
  if (!isAbsent(older)) return asInteger(older, 'max_tokens', 1, MAX_TOKENS_MAX);
  return isAbsent(newer) ? undefined : asInteger(newer, 'max_completion_tokens', 1, MAX_TOKENS_MAX);
}
