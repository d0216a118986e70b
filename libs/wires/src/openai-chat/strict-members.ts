/** Members of messages that a client keeps for itself, for hosts that refuse those that they do not know. */
import { isObject, type JsonObject } from '../canonical.js';
import { endOfString } from '../long-strings.js';
import { BREAKPOINT_FIELD, CACHE_FIELD } from './cache-marks.js';

function picked(source: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(source).filter(([name]) => names.includes(name)));
}

/** A call as strict hosts take it: OpenAI's SDK writes `parsed_arguments` beside the arguments. */
export function plainCall(call: JsonObject): JsonObject {
  const plain = picked(call, ['id', 'type', 'function']);
  return isObject(plain['function']) ? { ...plain, function: picked(plain['function'], ['name', 'arguments']) } : plain;
}

/** What the parts of a content hold under the name of their kind. A `file_id` is of the account's own, as edge has seen to. */
const PART_MEMBERS: Readonly<Record<string, readonly string[]>> = { text: [], refusal: [], image_url: ['url', 'detail'], input_audio: ['data', 'format'], file: ['file_data', 'filename', 'file_id'] };

/** A part without what a client keeps of its own beside it, for hosts that refuse fields they do not know. */
export function plainPart(part: unknown): unknown {
  const kind = isObject(part) ? part['type'] : undefined;
  const members = typeof kind === 'string' && Object.hasOwn(PART_MEMBERS, kind) ? PART_MEMBERS[kind] : undefined;
  if (!isObject(part) || typeof kind !== 'string' || members === undefined) return part;
  const plain = picked(part, ['type', kind, 'file_id', CACHE_FIELD, BREAKPOINT_FIELD]);
  return isObject(plain[kind]) ? { ...plain, [kind]: picked(plain[kind], members) } : plain;
}

/** Members that every host takes, by the brackets around them: of a message, of a part of its content, and of what a part holds. */
const COMMON_MEMBERS: ReadonlyMap<number, readonly string[]> = new Map([[2, ['role', 'content']], [4, ['type', 'text', 'image_url', 'input_audio', 'file']], [5, ['url', 'detail', 'data', 'format', 'file_data', 'filename']]]);
const MESSAGE_DEPTH = 2;
const QUOTE = 0x22;
const COLON = 0x3a;
const SPACE = 0x20;
/** `[`, `{` and `]`, `}`. */
const OPENING: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const CLOSING: ReadonlySet<number> = new Set([0x5d, 0x7d]);

/** Whether a message holds a member that is none of `fields`, or something in it one that is not common. Strings are passed over, not read. */
export function holdsOthers(messages: Buffer, fields: readonly string[]): boolean {
  let depth = 0;
  for (let at = 0; at < messages.length; at += 1) {
    const byte = messages[at] ?? SPACE;
    if (byte <= SPACE) continue;
    if (OPENING.has(byte)) depth += 1;
    else if (CLOSING.has(byte)) depth -= 1;
    if (byte !== QUOTE) continue;
    const end = endOfString(messages, at + 1);
    if (end === -1) return true;
    let next = end + 1;
    while ((messages[next] ?? QUOTE) <= SPACE) next += 1;
    if (messages[next] === COLON) {
      const name = messages.toString('latin1', at + 1, end);
      if (COMMON_MEMBERS.get(depth)?.includes(name) !== true && !(depth === MESSAGE_DEPTH && fields.includes(name))) return true;
    }
    at = next - 1;
  }
  return false;
}
