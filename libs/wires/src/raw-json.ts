/** JSON inside JSON: what a client or model wrote goes on as it was written, so that numbers keep every digit. */
import { jsonRootOf } from '@signalbox/kernel/json-root';
import { isObject, type JsonObject } from './canonical.js';

/** Text that JSON.parse takes; written as it is. */
export class RawJson {
  constructor(readonly text: string) {}
}

/** The text itself when it is one JSON object; undefined else. It is not parsed: values in a text of a client's are as many as it likes. */
export function rawObject(text: string): RawJson | undefined {
  return jsonRootOf(text) === 'object' ? new RawJson(text) : undefined;
}

/** A value that holds neither RawJson nor this, written natively: a schema may have 100,000 members, for which the rest of `writeJson` takes ten times as long. */
export class PlainJson {
  constructor(readonly value: JsonObject) {}
}

/** A call's arguments for wires that have an object there: what a model wrote is none now and then, and is kept in one. */
export function argumentsObject(text: string): RawJson | JsonObject {
  return rawObject(text) ?? (text.trim() === '' ? {} : { arguments: text });
}

/** Base64 needs no escapes, and a file of it is megabytes. */
export function base64Json(base64: string): RawJson {
  return new RawJson(`"${base64}"`);
}

/** `,"name":` of members that are written: the wires' own words, since what a client names is PlainJson. */
const leads = new Map<string, string>();
const LEADS_MAX = 512;

function leadOf(name: string): string {
  let lead = leads.get(name);
  if (lead === undefined) {
    lead = `,${JSON.stringify(name)}:`;
    if (leads.size < LEADS_MAX) leads.set(name, lead);
  }
  return lead;
}

/** Like JSON.stringify, with RawJson and PlainJson anywhere in plain objects and arrays. */
export function writeJson(value: unknown): string {
  // Added to one text, which is copied once: joined level by level, a file in it would be copied at each.
  let out = '';
  const write = (member: unknown): void => {
    if (member instanceof RawJson) out += member.text;
    else if (member instanceof PlainJson) out += JSON.stringify(member.value);
    else if (Array.isArray(member)) {
      out += '[';
      for (let at = 0; at < member.length; at += 1) {
        if (at > 0) out += ',';
        write(member[at]);
      }
      out += ']';
    } else if (isObject(member)) {
      out += '{';
      let isFirst = true;
      for (const name of Object.keys(member)) {
        if (member[name] === undefined) continue;
        out += isFirst ? leadOf(name).slice(1) : leadOf(name);
        isFirst = false;
        write(member[name]);
      }
      out += '}';
    } else out += JSON.stringify(member) ?? 'null';
  };
  write(value);
  return out;
}
