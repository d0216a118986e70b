/** A body of the OpenAI wire for hosts that may not be given a client's addresses: what they point at is sent inline. */
import { isObject, type JsonObject } from '../canonical.js';
import { LongStrings } from '../long-strings.js';
import type { FetchedMedia, MediaReference } from '../media.js';
import { badInput } from '../unsendable.js';
import type { ChatQuirks } from './quirks.js';
import { composeChatBody, type ChatRequestField, type ChatRequestInput } from './request.js';

export interface ChatDraft {
  /** What has to be fetched before `body`; empty = nothing. */
  readonly media: readonly MediaReference[];
  /** The body's bytes. Throws Unsendable when a fetched medium is missing. */
  body(fetched: FetchedMedia): Buffer;
}

/** Media types that are worth fetching for this wire. */
export const FETCHED_TYPES = { image: ['image/png', 'image/jpeg', 'image/gif', 'image/webp'], audio: [], file: [] } as const;

/** Messages without any of these hold no image part, however its name is escaped: they are not parsed. */
const IMAGE_MARKS = ['image_url', '\\u'];

type Visit = (image: JsonObject, url: string, param: string) => JsonObject;

function visitPart(part: unknown, param: string, visit: Visit): unknown {
  const image = isObject(part) ? part['image_url'] : undefined;
  const url = isObject(image) ? image['url'] : undefined;
  if (!isObject(part) || !isObject(image) || typeof url !== 'string' || /^data:/i.test(url)) return part;
  return { ...part, image_url: visit(image, url, `${param}.image_url.url`) };
}

function visitMessage(message: unknown, param: string, visit: Visit): unknown {
  if (!isObject(message) || !Array.isArray(message['content'])) return message;
  return { ...message, content: (message['content'] as readonly unknown[]).map((part, index) => visitPart(part, `${param}.content.[${String(index)}]`, visit)) };
}

/** The messages with what `visit` makes of each image that is given by address. */
function visitImages(field: ChatRequestField, visit: Visit): ChatRequestField {
  const strings = new LongStrings(field.value);
  const messages = strings.parse();
  if (!Array.isArray(messages)) return field;
  return { ...field, value: strings.write(JSON.stringify(messages.map((message: unknown, index) => visitMessage(message, `messages.[${String(index)}]`, visit)))) };
}

function inline(fetched: FetchedMedia): Visit {
  return (image, url, param) => {
    const media = fetched.get(url);
    if (media === undefined) throw badInput(param, 'The address could not be fetched.');
    return { ...image, url: `data:${media.mediaType};base64,${media.base64}` };
  };
}

export function draftChatBody(input: ChatRequestInput, quirks: ChatQuirks): ChatDraft {
  const messages = input.fields.find(({ name }) => name === 'messages');
  const references = new Map<string, MediaReference>();
  const bytes = messages === undefined ? undefined : Buffer.from(messages.value.buffer, messages.value.byteOffset, messages.value.length);
  if (messages !== undefined && IMAGE_MARKS.some((mark) => bytes?.includes(mark))) {
    visitImages(messages, (image, url, param) => {
      if (!references.has(url)) references.set(url, { url, kind: 'image', param });
      return image;
    });
  }
  if (references.size === 0) return { media: [], body: () => composeChatBody(input, quirks) };
  const fieldsWith = (fetched: FetchedMedia): readonly ChatRequestField[] => input.fields.map((field) => (field === messages ? visitImages(field, inline(fetched)) : field));
  return { media: [...references.values()], body: (fetched) => composeChatBody({ ...input, fields: fieldsWith(fetched) }, quirks) };
}
