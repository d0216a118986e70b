/** JSON inside JSON: what a client or model wrote goes on as it was written, so that numbers keep every digit. */
import { isObject, parsedObject, type JsonObject } from './canonical.js';

/** Text that JSON.parse takes; written as it is. */
export class RawJson {
  constructor(readonly text: string) {}
}

/** The text itself when it is one JSON object; undefined else. */
export function rawObject(text: string): RawJson | undefined {
  return parsedObject(text) === undefined ? undefined : new RawJson(text);
}

/** A call's arguments for wires that have an object there: what a model wrote is none now and then, and is kept in one. */
export function argumentsObject(text: string): RawJson | JsonObject {
  return rawObject(text) ?? (text.trim() === '' ? {} : { arguments: text });
}

/** Like JSON.stringify, with RawJson anywhere in plain objects and arrays. */
export function writeJson(value: unknown): string {
  if (value instanceof RawJson) return value.text;
  if (Array.isArray(value)) return `[${(value as readonly unknown[]).map(writeJson).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value) ?? 'null';
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${writeJson(member)}`).join(',')}}`;
}
