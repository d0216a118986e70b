/** A JSON answer on wires without a setting for it: the model must call a tool whose input is the answer. */
import { isObject, type JsonObject } from './canonical.js';
import type { ChatInput } from './chat-request.js';

/** Name of that tool; it never reaches the client. */
export const JSON_TOOL = 'signalbox_json_answer';

/** Inputs of tools are objects. */
export function isObjectSchema(schema: JsonObject): boolean {
  return schema['type'] === 'object' || (schema['type'] === undefined && isObject(schema['properties']));
}

/** True when the answer's JSON comes as the input of `JSON_TOOL`, if it does: only then can a tool of that name be ours. */
export function mayUnwrap({ fields }: Pick<ChatInput, 'fields'>): boolean {
  let hasFormat = false;
  for (const { name } of fields) {
    if (name === 'tools') return false;
    hasFormat ||= name === 'response_format';
  }
  return hasFormat;
}
