/** Checks of `messages`. */
import { ALL_WHOLE, headOf, lengthOf, type WholeLengths } from '../../wire/json-long-text.js';
import { asArray, asObject, asOneOf, asString, isAbsent, isObject, missing, own, required, withoutNulls, wrongType, wrongValue, type JsonObject } from './checks.js';
import { soundTokensMax } from './sound.js';

export interface MessageFacts {
  readonly count: number;
  readonly vision: boolean;
  readonly imageCount: number;
  readonly fileInput: boolean;
  readonly audioInput: boolean;
  readonly hasUnboundedParts: boolean;
  /** Characters of images, sound and files within the body. They are not text, so their length says little about their tokens. */
  readonly inlineMediaChars: number;
  /** The part of `inlineMediaChars` that is images, whose tokens are bounded by their number. */
  readonly inlineImageChars: number;
  /** The part of `inlineMediaChars` that is sound of a known length, and the most tokens that it counts as. */
  readonly inlineSoundChars: number;
  readonly soundTokensMax: number;
  /** Number of parts that are not text. */
  readonly mediaParts: number;
  /** Text that identifies the conversation: beginnings and ends of the system messages and of the first user turn; at most 1,024 characters. */
  readonly opening: string;
  /** A message has content that is not sent to providers: images of image-gen, nulls, or empty lists of calls. */
  readonly hasUnsendable: boolean;
  /** Path of the first field with an id of something stored at a provider under a credential, such as an uploaded file; undefined = none. */
  readonly storedParam: string | undefined;
  /** Names of the tools that assistant messages called; undefined = none. */
  readonly calledTools: ReadonlySet<string> | undefined;
}

const ROLES = ['system', 'developer', 'user', 'assistant', 'tool', 'function'] as const;
type Role = (typeof ROLES)[number];
/** Fields of a message in which null counts as absent. */
const OPTIONAL = ['name', 'tool_calls', 'refusal', 'function_call', 'audio'] as const;
/**
 * Ids in a part that is not text: of an uploaded file (OpenAI in `file`, Mistral in the part itself), or of media in the
 * cache of a shared server (vLLM). They belong to the credential that stored the data.
 */
const STORED_IDS = ['file_id', 'uuid'] as const;
/** Parts that are no text. Some clients put them into the result of a tool. */
const MEDIA_TYPES: ReadonlySet<unknown> = new Set(['image_url', 'input_audio', 'file']);
const OPENING_MAX = 1_024;
/** Characters of a long text that are part of the opening, from each end, since programs often begin or end all prompts alike. */
const OPENING_END = 128;

interface Findings {
  /** Lengths of strings that were shortened when the body was parsed. */
  readonly wholeLengths: WholeLengths;
  count: number;
  vision: boolean;
  imageCount: number;
  fileInput: boolean;
  audioInput: boolean;
  hasUnboundedParts: boolean;
  inlineMediaChars: number;
  inlineImageChars: number;
  inlineSoundChars: number;
  soundTokensMax: number;
  mediaParts: number;
  opening: string;
  hasUnsendable: boolean;
  storedParam: string | undefined;
  calledTools: Set<string> | undefined;
  /** Ids of the tool calls so far; created with the first one. */
  calls: Set<string> | undefined;
}

/** Throws Invalid on the first invalid message. */
export function checkMessages(value: unknown, wholeLengths: WholeLengths = ALL_WHOLE): MessageFacts {
  const messages = asArray(required(value, 'messages'), 'messages');
  if (messages.length === 0) throw wrongValue('messages', 'at least one message');
  const found: Findings = { wholeLengths, count: messages.length, vision: false, imageCount: 0, fileInput: false, audioInput: false, hasUnboundedParts: false, inlineMediaChars: 0, inlineImageChars: 0, inlineSoundChars: 0, soundTokensMax: 0, mediaParts: 0, opening: '', hasUnsendable: false, storedParam: undefined, calledTools: undefined, calls: undefined };
  let hasUser = false;
  for (let index = 0; index < messages.length; index += 1) {
    const item = messages[index];
    const role = plainRole(item) ?? checkMessage(item, `messages.[${index}]`, found);
    const isOpening = role === 'system' || role === 'developer' || (role === 'user' && !hasUser);
    if (isOpening && found.opening.length < OPENING_MAX) found.opening += `${role}\n${openingText(isObject(item) ? own(item, 'content') : undefined, wholeLengths)}\n`;
    hasUser ||= role === 'user';
  }
  found.opening = found.opening.slice(0, OPENING_MAX);
  return found;
}

/** A fast check for the usual message with text only: its role if it is valid; undefined = it needs the full check. */
function plainRole(item: unknown): Role | undefined {
  if (!isObject(item) || typeof own(item, 'content') !== 'string' || Object.hasOwn(item, 'name')) return undefined;
  const role = own(item, 'role');
  if (role === 'user' || role === 'system' || role === 'developer') return role;
  return role === 'assistant' && !Object.hasOwn(item, 'tool_calls') && !Object.hasOwn(item, 'function_call') && !Object.hasOwn(item, 'refusal') && !Object.hasOwn(item, 'images') && !Object.hasOwn(item, 'audio') ? role : undefined;
}

/**
 * Messages as JSON text, without images that image-gen made (models take none in an assistant's message, and they would
 * count as prompt), without nulls except for `content` (hosts refuse them as a wrong type), and without empty lists of calls.
 */
export function sendableMessages(messages: unknown): Buffer {
  const list = Array.isArray(messages) ? (messages as readonly unknown[]) : [];
  return Buffer.from(JSON.stringify(list.map((message) => (isObject(message) ? sendable(message) : message))));
}

function sendable(message: JsonObject): JsonObject {
  const isAssistant = own(message, 'role') === 'assistant';
  const kept: Record<string, unknown> = {};
  for (const name of Object.keys(message)) {
    const value = message[name];
    if ((name !== 'content' && value === null) || (name === 'tool_calls' && Array.isArray(value) && value.length === 0) || (isAssistant && name === 'images' && Array.isArray(value))) continue;
    // Nulls in parts and calls are one level further down.
    kept[name] = (name === 'content' || name === 'tool_calls') && Array.isArray(value) ? (value as readonly unknown[]).map((item) => withoutNulls(item, 1)) : value;
  }
  return kept;
}

function openingText(content: unknown, wholeLengths: WholeLengths): string {
  if (typeof content === 'string') return bothEnds(content, wholeLengths);
  if (!Array.isArray(content)) return '';
  let text = '';
  for (const part of content as readonly unknown[]) {
    if (text.length >= OPENING_MAX) break;
    const value = isObject(part) ? own(part, 'text') : undefined;
    if (typeof value === 'string') text += bothEnds(value, wholeLengths);
  }
  return text;
}

function bothEnds(text: string, { texts }: WholeLengths): string {
  return text.length <= 2 * OPENING_END ? text : `${text.slice(0, OPENING_END)}${lengthOf(text, texts)}${text.slice(-OPENING_END)}`;
}

function checkMessage(item: unknown, param: string, found: Findings): Role {
  const message = asObject(item, param);
  const role = asOneOf(required(own(message, 'role'), `${param}.role`), `${param}.role`, ROLES);
  checkOptionalString(message, 'name', param);
  if (OPTIONAL.some((optional) => own(message, optional) === null)) found.hasUnsendable = true;
  checkContent(message, role, param, found);
  return role;
}

function checkContent(message: JsonObject, role: Role, param: string, found: Findings): void {
  const content = own(message, 'content');
  switch (role) {
    case 'system':
    case 'developer':
      checkTextContent(required(content, `${param}.content`), `${param}.content`);
      return;
    case 'user':
      checkUserContent(required(content, `${param}.content`), `${param}.content`, found);
      return;
    case 'assistant':
      checkAssistant(message, param, found);
      return;
    case 'tool': {
      const at = `${param}.tool_call_id`;
      const id = asString(required(own(message, 'tool_call_id'), at), at);
      if (found.calls?.has(id) !== true) throw wrongValue(at, 'the id of a tool call in an assistant message before it');
      checkTextContent(required(content, `${param}.content`), `${param}.content`);
      return;
    }
    case 'function':
      if (!isAbsent(content)) asString(content, `${param}.content`);
      return;
  }
}

function checkOptionalString(object: JsonObject, name: string, param: string): void {
  const value = own(object, name);
  if (!isAbsent(value)) asString(value, `${param}.${name}`);
}

function parts(content: unknown, param: string): readonly unknown[] {
  if (!Array.isArray(content)) throw wrongType(param, 'a string or an array of content parts');
  if (content.length === 0) throw wrongValue(param, 'at least one content part');
  return content;
}

function checkTextContent(content: unknown, param: string, types: readonly string[] = ['text']): void {
  if (typeof content === 'string') return;
  parts(content, param).forEach((item, index) => {
    const at = `${param}.[${index}]`;
    const part = asObject(item, at);
    const given = required(own(part, 'type'), `${at}.type`);
    if (MEDIA_TYPES.has(given)) throw wrongValue(`${at}.type`, `${types.map((type) => `'${type}'`).join(', ')}, since only a message of a user holds images, sound or files`);
    const type = asOneOf(given, `${at}.type`, types);
    asString(required(own(part, type), `${at}.${type}`), `${at}.${type}`);
  });
}

function checkUserContent(content: unknown, param: string, found: Findings): void {
  if (typeof content === 'string') return;
  parts(content, param).forEach((item, index) => {
    const at = `${param}.[${index}]`;
    const part = asObject(item, at);
    const type = asOneOf(required(own(part, 'type'), `${at}.type`), `${at}.type`, ['text', 'image_url', 'input_audio', 'file']);
    const inner = `${at}.${type}`;
    const value = required(own(part, type), inner);
    if (type === 'text') asString(value, inner);
    else if (type === 'image_url') checkImage(asObject(value, inner), inner, found);
    else if (type === 'input_audio') checkAudio(asObject(value, inner), inner, found);
    else checkFile(asObject(value, inner), inner, found);
    if (type !== 'text') found.storedParam ??= storedIn(part, at) ?? storedIn(value, inner);
  });
}

/** The path of an id; undefined = none, or it is empty. */
function storedIn(holder: unknown, param: string): string | undefined {
  if (!isObject(holder)) return undefined;
  const name = STORED_IDS.find((id) => !isAbsent(own(holder, id)) && own(holder, id) !== '');
  return name === undefined ? undefined : `${param}.${name}`;
}

function checkImage(image: JsonObject, param: string, found: Findings): void {
  const at = `${param}.url`;
  const url = asString(required(own(image, 'url'), at), at);
  const scheme = url.slice(0, 8).toLowerCase();
  const isData = scheme.startsWith('data:');
  if (!isData && (scheme !== 'https://' || url.length <= 8)) throw wrongValue(at, 'an https or data URL');
  const detail = own(image, 'detail');
  if (detail === null) found.hasUnsendable = true;
  if (!isAbsent(detail)) asOneOf(detail, `${param}.detail`, ['auto', 'low', 'high']);
  found.vision = true;
  found.imageCount += 1;
  found.mediaParts += 1;
  // The tokens of an image are bounded, whatever its size (domain/prompt-overheads.ts).
  if (!isData) return;
  const chars = lengthOf(url, found.wholeLengths.media);
  found.inlineMediaChars += chars;
  found.inlineImageChars += chars;
}

function checkAudio(audio: JsonObject, param: string, found: Findings): void {
  const data = asString(required(own(audio, 'data'), `${param}.data`), `${param}.data`, { min: 1 });
  const chars = lengthOf(data, found.wholeLengths.media);
  found.inlineMediaChars += chars;
  found.mediaParts += 1;
  const format = asString(required(own(audio, 'format'), `${param}.format`), `${param}.format`, { min: 1 });
  found.audioInput = true;
  const tokens = soundTokensMax(format, headOf(data), chars);
  if (tokens === undefined) return;
  found.inlineSoundChars += chars;
  found.soundTokensMax += tokens;
}

function checkFile(file: JsonObject, param: string, found: Findings): void {
  for (const name of ['filename', 'file_data', 'file_id']) {
    checkOptionalString(file, name, param);
    if (own(file, name) === null) found.hasUnsendable = true;
  }
  if (isAbsent(own(file, 'file_data')) && isAbsent(own(file, 'file_id'))) throw missing(`${param}.file_data`);
  const data = own(file, 'file_data');
  if (typeof data === 'string') found.inlineMediaChars += lengthOf(data, found.wholeLengths.media);
  found.mediaParts += 1;
  found.fileInput = true;
  // Text in a file is usually compressed, so its bytes do not bound its tokens.
  found.hasUnboundedParts = true;
}

function checkAssistant(message: JsonObject, param: string, found: Findings): void {
  checkOptionalString(message, 'refusal', param);
  if (Array.isArray(own(message, 'images'))) found.hasUnsendable = true;
  const audio = own(message, 'audio');
  // The id of an earlier spoken answer.
  if (isObject(audio) && !isAbsent(own(audio, 'id'))) found.storedParam ??= `${param}.audio.id`;
  const toolCalls = own(message, 'tool_calls');
  let callCount = 0;
  if (!isAbsent(toolCalls)) {
    const items = asArray(toolCalls, `${param}.tool_calls`);
    callCount = items.length;
    // Hosts refuse an empty list.
    if (callCount === 0) found.hasUnsendable = true;
    const calls = (found.calls ??= new Set());
    items.forEach((item, index) => calls.add(checkToolCall(item, `${param}.tool_calls.[${index}]`, found)));
  }
  const older = own(message, 'function_call');
  const olderName = isObject(older) ? own(older, 'name') : undefined;
  if (isObject(older)) (found.calledTools ??= new Set()).add(typeof olderName === 'string' ? olderName : '');
  const content = own(message, 'content');
  if (!isAbsent(content)) {
    checkTextContent(content, `${param}.content`, ['text', 'refusal']);
    return;
  }
  // Earlier refusals, and the old form of a tool call, have no content.
  if (callCount === 0 && isAbsent(own(message, 'refusal')) && !isObject(older)) throw missing(`${param}.content`);
}

/** Checks a tool call and returns its id. */
function checkToolCall(item: unknown, param: string, found: Findings): string {
  const call = asObject(item, param);
  const id = asString(required(own(call, 'id'), `${param}.id`), `${param}.id`, { min: 1 });
  asOneOf(required(own(call, 'type'), `${param}.type`), `${param}.type`, ['function']);
  const at = `${param}.function`;
  const called = asObject(required(own(call, 'function'), at), at);
  (found.calledTools ??= new Set()).add(asString(required(own(called, 'name'), `${at}.name`), `${at}.name`, { min: 1 }));
  asString(required(own(called, 'arguments'), `${at}.arguments`), `${at}.arguments`);
  return id;
}
