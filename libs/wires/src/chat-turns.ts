/** A client's messages as wires other than OpenAI's read them. Edge has checked their shape; the older function form becomes tool calls. */
import { isObject, type JsonObject } from './canonical.js';
import { readMediaSource, type MediaKind, type MediaReference, type MediaSource } from './media.js';
import { namedParts } from './speakers.js';
import { createUniqueNames } from './unique-names.js';
import { notTakenHere } from './unsendable.js';

export interface TextPart {
  readonly type: 'text';
  readonly text: string;
  /** The client wants the prompt cached up to here (`cache_control`). */
  readonly isCacheEnd: boolean;
}

export interface MediaPart {
  readonly type: 'media';
  readonly kind: MediaKind;
  readonly source: MediaSource;
  /** File name, empty = none told. */
  readonly name: string;
  /** `auto`, `low`, `high`; empty = not told. */
  readonly detail: string;
  /** Names the message and part for the client. */
  readonly param: string;
  /** As of a text part. */
  readonly isCacheEnd: boolean;
}

export type UserPart = TextPart | MediaPart;

export interface TurnCall {
  /** Of no other call of the conversation, unless it is empty. */
  readonly id: string;
  readonly name: string;
  /** JSON text as the model wrote it; may be empty or malformed. */
  readonly arguments: string;
  /** Provider-only state that went out with the call; empty = none. */
  readonly extra: JsonObject;
  /** As of a text part. */
  readonly isCacheEnd: boolean;
}

/** Text up to a mark of the prompt cache, or up to the end. */
export interface MarkedText {
  readonly text: string;
  readonly isCacheEnd: boolean;
}

export type Turn =
  /** `pieces`: the same text, cut behind each mark, since what follows one may change with each request. */
  | { readonly role: 'system'; readonly text: string; readonly pieces: readonly MarkedText[] }
  | { readonly role: 'user'; readonly parts: readonly UserPart[] }
  /** `isCacheEnd`: of the text. */
  | { readonly role: 'assistant'; readonly text: string; readonly calls: readonly TurnCall[]; readonly message: JsonObject; readonly isCacheEnd: boolean }
  | { readonly role: 'tool'; readonly callId: string; readonly name: string; readonly text: string; readonly isCacheEnd: boolean };

const NO_EXTRA: JsonObject = {};

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
export const extraOf = (holder: JsonObject): JsonObject => (isObject(holder['extra_content']) ? holder['extra_content'] : NO_EXTRA);

/** The client wants the prompt cached up to the end of this, whatever else the mark says. */
export const hasCacheControl = (holder: JsonObject): boolean => isObject(holder['cache_control']);
const endsInCache = (content: unknown): boolean => listOf(content).some((part) => isObject(part) && hasCacheControl(part));

/** A conversation of which the last message has a mark: a request's own `cache_control` asks for one behind all it holds. */
export function markedAtEnd(messages: unknown): unknown {
  const last = listOf(messages).at(-1);
  return isObject(last) ? [...listOf(messages).slice(0, -1), { ...last, cache_control: {} }] : messages;
}

/** What a message consists of; its own mark is one behind its last piece. */
function endingAsMarked<Piece extends { readonly isCacheEnd: boolean }>(pieces: readonly Piece[], message: JsonObject): readonly Piece[] {
  return hasCacheControl(message) ? pieces.map((piece, at) => (at === pieces.length - 1 ? { ...piece, isCacheEnd: true } : piece)) : pieces;
}

const partText = (part: unknown): string => (isObject(part) ? textOf(part['text']) || textOf(part['refusal']) : '');

/** Text of a string or of text (and refusal) parts, joined. */
export function plainText(content: unknown): string {
  return typeof content === 'string' ? content : listOf(content).map(partText).join('');
}

/** Text of a string or of text parts, joined from mark to mark. */
function textPieces(content: unknown): readonly MarkedText[] {
  if (typeof content === 'string') return [{ text: content, isCacheEnd: false }];
  const pieces: MarkedText[] = [];
  let texts: string[] = [];
  const close = (isCacheEnd: boolean): void => {
    if (texts.length > 0) pieces.push({ text: texts.join(''), isCacheEnd });
    texts = [];
  };
  for (const part of listOf(content)) {
    texts.push(partText(part));
    if (isObject(part) && hasCacheControl(part)) close(true);
  }
  close(false);
  return pieces;
}

function mediaPart(part: JsonObject, param: string): MediaPart {
  const inner = part[textOf(part['type'])];
  const of = isObject(inner) ? inner : {};
  const isCacheEnd = hasCacheControl(part);
  switch (part['type']) {
    case 'image_url': {
      const at = `${param}.image_url.url`;
      return { type: 'media', kind: 'image', source: readMediaSource(textOf(of['url']), 'image', at), name: '', detail: textOf(of['detail']), param: at, isCacheEnd };
    }
    case 'input_audio': {
      const at = `${param}.input_audio.data`;
      const data = textOf(of['data']);
      const format = textOf(of['format']).toLowerCase();
      const url = data.startsWith('data:') ? data : `data:audio/${format};base64,${data}`;
      return { type: 'media', kind: 'audio', source: readMediaSource(url, 'audio', at), name: '', detail: '', param: at, isCacheEnd };
    }
    default: {
      const at = `${param}.file.file_data`;
      // An id names an upload at one provider, which is not known here.
      if (typeof of['file_data'] !== 'string') throw notTakenHere(`${param}.file.file_id`, 'A file must be sent as `file_data`.');
      return { type: 'media', kind: 'file', source: readMediaSource(of['file_data'], 'file', at), name: textOf(of['filename']), detail: '', param: at, isCacheEnd };
    }
  }
}

function userParts(content: unknown, param: string): readonly UserPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content, isCacheEnd: false }];
  return listOf(content).flatMap((part, index): UserPart[] => {
    if (!isObject(part)) return [];
    if (part['type'] === 'text') return [{ type: 'text', text: textOf(part['text']), isCacheEnd: hasCacheControl(part) }];
    return [mediaPart(part, `${param}.[${String(index)}]`)];
  });
}

function callsOf(message: JsonObject, position: number): readonly TurnCall[] {
  const calls = listOf(message['tool_calls'])
    .filter(isObject)
    .map((call) => {
      const fn = isObject(call['function']) ? call['function'] : {};
      return { id: textOf(call['id']), name: textOf(fn['name']), arguments: textOf(fn['arguments']), extra: extraOf(call), isCacheEnd: hasCacheControl(call) || hasCacheControl(fn) };
    });
  const older = message['function_call'];
  if (!isObject(older)) return calls;
  return [...calls, { id: `call_fn_${String(position)}`, name: textOf(older['name']), arguments: textOf(older['arguments']), extra: NO_EXTRA, isCacheEnd: false }];
}

interface CallRegister {
  /** Calls of one turn, under ids that no earlier call has. */
  enter(calls: readonly TurnCall[]): readonly TurnCall[];
  /** The call that a result answers, by the id that the client knows it under; empty = the last one. */
  answered(id: string): TurnCall | undefined;
}

/** Some models number the calls of each answer anew, and hosts that hold ids to be unique refuse the second of a name. */
function createCallRegister(): CallRegister {
  const ownId = createUniqueNames(2, (id, copy) => `${id}_${String(copy)}`);
  /** Calls by the client's id, of the turn that used it last; those before the last go with their answer. */
  const waiting = new Map<string, TurnCall[]>();
  let last: TurnCall | undefined;
  return {
    enter: (calls) => {
      for (const { id } of calls) waiting.delete(id);
      return calls.map((told) => {
        const call = { ...told, id: told.id === '' ? '' : ownId(told.id) };
        const same = waiting.get(told.id);
        if (same === undefined) waiting.set(told.id, [call]);
        else same.push(call);
        last = call;
        return call;
      });
    },
    answered: (id) => {
      if (id === '') return last;
      const calls = waiting.get(id) ?? [];
      return calls.length > 1 ? calls.shift() : calls[0];
    },
  };
}

/** Throws Unsendable on media that are not what they say. */
export function readTurns(messages: unknown): readonly Turn[] {
  const register = createCallRegister();
  return listOf(messages).flatMap((message, index): Turn[] => {
    if (!isObject(message)) return [];
    switch (message['role']) {
      case 'system':
      case 'developer':
        return [{ role: 'system', text: plainText(message['content']), pieces: endingAsMarked(textPieces(message['content']), message) }];
      case 'user':
        return [{ role: 'user', parts: endingAsMarked(namedParts(userParts(message['content'], `messages.[${String(index)}].content`), message['name'], (text): UserPart => ({ type: 'text', text, isCacheEnd: false })), message) }];
      case 'assistant': {
        const calls = register.enter(endingAsMarked(callsOf(message, index), message));
        const isCacheEnd = endsInCache(message['content']) || (calls.length === 0 && hasCacheControl(message));
        return [{ role: 'assistant', text: plainText(message['content']) || textOf(message['refusal']), calls, message, isCacheEnd }];
      }
      case 'tool':
      case 'function': {
        const told = textOf(message['tool_call_id']);
        const call = register.answered(told);
        return [{ role: 'tool', callId: call?.id ?? told, name: call?.name ?? textOf(message['name']), text: plainText(message['content']), isCacheEnd: endsInCache(message['content']) || hasCacheControl(message) }];
      }
      default:
        return [];
    }
  });
}

/** What has to be fetched first, each URL once. */
export function mediaReferences(turns: readonly Turn[]): readonly MediaReference[] {
  const found = new Map<string, MediaReference>();
  for (const turn of turns) {
    if (turn.role !== 'user') continue;
    for (const part of turn.parts) {
      if (part.type === 'media' && part.source.kind === 'url' && !found.has(part.source.url)) found.set(part.source.url, { url: part.source.url, kind: part.kind, param: part.param });
    }
  }
  return [...found.values()];
}
