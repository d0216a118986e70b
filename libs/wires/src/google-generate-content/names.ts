/** Names of functions: those that generateContent refuses, since they begin with neither a letter nor an underscore, have one put before them. */
import { isObject } from '../canonical.js';
import type { ChatRequestField } from '../openai-chat/request.js';

const NAME_CHARS_MAX = 64;
const BEGINS_WELL = /^[A-Za-z_]/;
/** Nearly no tools have such a name: the others are not parsed for it. */
const ODD_NAME = /"name"\s*:\s*"[^A-Za-z_"]/;
const NONE: ReadonlyMap<string, string> = new Map();

/** A name as it is sent. */
export function sentName(name: string): string {
  return BEGINS_WELL.test(name) ? name : `_${name}`.slice(0, NAME_CHARS_MAX);
}

/** The client's own names by those that were sent for them, of the tools that are sent under another. */
export function clientNames(fields: readonly ChatRequestField[]): ReadonlyMap<string, string> {
  const value = fields.find(({ name }) => name === 'tools')?.value;
  const text = value === undefined ? '' : Buffer.from(value.buffer, value.byteOffset, value.length).toString('utf8');
  if (!ODD_NAME.test(text)) return NONE;
  const tools: unknown = JSON.parse(text);
  const names = (Array.isArray(tools) ? (tools as readonly unknown[]) : []).flatMap((tool) => {
    const called = isObject(tool) ? tool['function'] : undefined;
    return isObject(called) && typeof called['name'] === 'string' ? [called['name']] : [];
  });
  // A tool that has that name by itself is meant by it.
  return new Map(names.flatMap((name) => (sentName(name) === name || names.includes(sentName(name)) ? [] : [[sentName(name), name] as const])));
}
