/** Checks and rewrites `response_format`. */
import { rewriteJson } from '@signalbox/kernel/exact-numbers';
import { scanJsonObject } from '../../wire/json-scan.js';
import { asBoolean, asObject, asOneOf, asString, isAbsent, isNullAt, isObject, own, required, withoutNulls, type JsonObject } from './checks.js';

export function checkResponseFormat(value: unknown, name: string): void {
  const format = asObject(value, name);
  const type = asOneOf(required(own(format, 'type'), `${name}.type`), `${name}.type`, ['text', 'json_object', 'json_schema']);
  if (type === 'json_object' && !isAbsent(own(format, 'schema'))) asObject(own(format, 'schema'), `${name}.schema`);
  if (type !== 'json_schema') return;
  const at = `${name}.json_schema`;
  const schema = asObject(required(own(format, 'json_schema'), at), at);
  asString(required(own(schema, 'name'), `${at}.name`), `${at}.name`, { min: 1, max: 256 });
  asObject(required(own(schema, 'schema'), `${at}.schema`), `${at}.schema`);
  const strict = own(schema, 'strict');
  if (!isAbsent(strict)) asBoolean(strict, `${at}.strict`);
  const description = own(schema, 'description');
  if (!isAbsent(description)) asString(description, `${at}.description`);
}

/** `json_object` with a non-empty `schema`, a form of hosts of open models (ADR 95). */
function isObjectBySchema(format: JsonObject): boolean {
  const schema = own(format, 'schema');
  return own(format, 'type') === 'json_object' && isObject(schema) && Object.keys(schema).length > 0;
}

/** The format that an endpoint must support; '' = text. */
export function responseFormatOf(value: unknown): '' | 'json_object' | 'json_schema' {
  if (!isObject(value)) return '';
  const type = own(value, 'type');
  if (type === 'json_object') return isObjectBySchema(value) ? 'json_schema' : type;
  return type === 'json_schema' ? type : '';
}

const NAMED = Buffer.from('{"type":"json_schema","json_schema":{"name":"answer","schema":');
const CLOSING = Buffer.from('}}');

/** A checked format in the form that all hosts take; the bytes of a schema are unchanged. `raw`: the field's bytes. Undefined = sent as it is. */
export function sendableFormat(format: JsonObject, raw: Buffer): Buffer | undefined {
  if (isObjectBySchema(format)) {
    const scan = scanJsonObject(raw);
    const range = scan.kind === 'scanned' ? scan.fields.get('schema') : undefined;
    return range === undefined ? undefined : Buffer.concat([NAMED, raw.subarray(range.start, range.end), CLOSING]);
  }
  // OpenAI refuses members that it does not know.
  if (own(format, 'type') === 'json_object' && Object.hasOwn(format, 'schema')) return Buffer.from('{"type":"json_object"}');
  if (!isNullAt(format, ['json_schema']) && !isNullAt(own(format, 'json_schema'), ['description', 'strict'])) return undefined;
  const members = (value: unknown): [string, unknown][] => Object.entries(value as JsonObject).filter(([, member]) => member !== null);
  return Buffer.from(rewriteJson(raw.toString('utf8'), (value) => Object.fromEntries(members(value).map(([key, member]) => [key, withoutNulls(member, 0)]))) ?? raw);
}
