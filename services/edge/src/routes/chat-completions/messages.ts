/** Checks of `messages` (contract, section 3). */
import { ALL_WHOLE, lengthOf, type WholeLengths } from '../../wire/json-long-text.js';
import { asArray, asObject, asOneOf, asString, isAbsent, isObject, missing, own, required, withoutNulls, wrongType, wrongValue, type JsonObject } from './checks.js';

export interface MessageFacts {
  readonly count: number;
  readonly vision: boolean;
  readonly imageCount: number;
  readonly fileInput: boolean;
  readonly audioInput: boolean;
  readonly hasUnboundedParts: boolean;
  /** Characters of images, sound and files sent inside the body: they are no text, so their length says little of their tokens. */
  readonly inlineMediaChars: number;
  /** Parts that are no text. */
  readonly mediaParts: number;
  /** What names a conversation: the ends of the system messages and of the first user turn. */
  readonly opening: string;
  /** A message holds what no provider is to get: images of image-gen that came back, or null for a field that hosts want left out. */
  readonly hasUnsendable: boolean;
  /** Names the first id of what lies at a provider under a credential, such as an uploaded file; undefined = there is none. */
  readonly storedParam: string | undefined;
  /** Names of the tools that assistant messages called; undefined = none. */
  readonly calledTools: ReadonlySet<string> | undefined;
}

const ROLES = ['system', 'developer', 'user', 'assistant', 'tool', 'function'] as const;
type Role = (typeof ROLES)[number];
/** Of a message: null is taken for absent. */
const OPTIONAL = ['name', 'tool_calls', 'refusal', 'function_call', 'audio'] as const;
/**
 * Ids in a part that is no text: of an uploaded file (OpenAI in `file`, Mistral in the part itself), of media in the cache
 * of a server that is shared (vLLM). They belong to the credential that put there what they name.
 */
const STORED_IDS = ['file_id', 'uuid'] as const;
const OPENING_MAX = 1_024;
/** Characters of a text that count to the opening, from either end: programs often begin or end all their prompts alike. */
const OPENING_END = 128;

interface Findings {
  /** Of strings that were shortened. */
  readonly wholeLengths: WholeLengths;
  count: number;
  vision: boolean;
  imageCount: number;
  fileInput: boolean;
  audioInput: boolean;
  hasUnboundedParts: boolean;
  inlineMediaChars: number;
  mediaParts: number;
  opening: string;
  hasUnsendable: boolean;
  storedParam: string | undefined;
  calledTools: Set<string> | undefined;
  /** Ids of the tool calls so far; made for the first one. */
  calls: Set<string> | undefined;
}

/** Throws Invalid on the first message that breaks the contract. */
export function checkMessages(value: unknown, wholeLengths: WholeLengths = ALL_WHOLE): MessageFacts {
  const messages = asArray(required(value, 'messages'), 'messages');
  if (messages.length === 0) throw wrongValue('messages', 'at least one message');
  const found: Findings = { wholeLengths, count: messages.length, vision: false, imageCount: 0, fileInput: false, audioInput: false, hasUnboundedParts: false, inlineMediaChars: 0, mediaParts: 0, opening: '', hasUnsendable: false, storedParam: undefined, calledTools: undefined, calls: undefined };
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

/** The role of a message that is nothing but text, as nearly all are: nothing of it can break the contract. Undefined = look closely. */
function plainRole(item: unknown): Role | undefined {
  if (!isObject(item) || typeof own(item, 'content') !== 'string' || Object.hasOwn(item, 'name')) return undefined;
  const role = own(item, 'role');
  if (role === 'user' || role === 'system' || role === 'developer') return role;
  return role === 'assistant' && !Object.hasOwn(item, 'tool_calls') && !Object.hasOwn(item, 'function_call') && !Object.hasOwn(item, 'refusal') && !Object.hasOwn(item, 'images') && !Object.hasOwn(item, 'audio') ? role : undefined;
}

/**
 * Messages, as JSON text, without images that were made for the user (models take none in an assistant's message, and they
 * would count as prompt), without nulls, content apart: to clients null is absent, to hosts it is a wrong type, and without
 * empty lists of calls.
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
    // Parts and calls: what they hold lies one level further down.
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
    const type = asOneOf(required(own(part, 'type'), `${at}.type`), `${at}.type`, types);
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

/** Names the id. An empty one names nothing. */
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
  // Whatever an image's bytes are, and wherever they lie, what a provider counts it as is bounded (domain/prompt-overheads.ts).
  if (isData) found.inlineMediaChars += lengthOf(url, found.wholeLengths.media);
}

function checkAudio(audio: JsonObject, param: string, found: Findings): void {
  found.inlineMediaChars += lengthOf(asString(required(own(audio, 'data'), `${param}.data`), `${param}.data`, { min: 1 }), found.wholeLengths.media);
  found.mediaParts += 1;
  asString(required(own(audio, 'format'), `${param}.format`), `${param}.format`, { min: 1 });
  found.audioInput = true;
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
  // Text in a file is compressed as a rule: its bytes do not bound its tokens.
  found.hasUnboundedParts = true;
}

function checkAssistant(message: JsonObject, param: string, found: Findings): void {
  checkOptionalString(message, 'refusal', param);
  if (Array.isArray(own(message, 'images'))) found.hasUnsendable = true;
  const audio = own(message, 'audio');
  // Sound that a model spoke before, by its id.
  if (isObject(audio) && !isAbsent(own(audio, 'id'))) found.storedParam ??= `${param}.audio.id`;
  const toolCalls = own(message, 'tool_calls');
  let callCount = 0;
  if (!isAbsent(toolCalls)) {
    const items = asArray(toolCalls, `${param}.tool_calls`);
    callCount = items.length;
    // No call at all: hosts refuse an empty list.
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
  // A refusal that we answered, and the old form of a tool call, come back without content too.
  if (callCount === 0 && isAbsent(own(message, 'refusal')) && !isObject(older)) throw missing(`${param}.content`);
}

/** Its id. */
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
