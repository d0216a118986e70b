/** JSON Schema to Google's subset of OpenAPI's, only where nothing is lost: the caller sends the JSON Schema itself else. */
import { isObject, type JsonObject } from '../canonical.js';

const TYPES: Readonly<Record<string, string>> = { string: 'STRING', number: 'NUMBER', integer: 'INTEGER', boolean: 'BOOLEAN', array: 'ARRAY', object: 'OBJECT' };
/** Say nothing about which values conform, or are kept apart. */
const ANNOTATIONS: ReadonlySet<string> = new Set(['$schema', '$id', '$comment', '$defs', 'definitions', 'examples', 'default', 'deprecated', 'readOnly', 'writeOnly']);
const COPIED: ReadonlySet<string> = new Set(['title', 'description', 'minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties', 'minimum', 'maximum', 'pattern', 'required', 'propertyOrdering']);
const FORMATS: Readonly<Record<string, readonly string[]>> = { STRING: ['date-time'], NUMBER: ['float', 'double'], INTEGER: ['int32', 'int64'] };
/** Mean the same of a union and of each of its members. */
const BESIDE_UNIONS: ReadonlySet<string> = new Set(['title', 'description', 'nullable']);
/** References inside one another; deeper is taken for a cycle. */
const REFERENCES_MAX = 32;
/** Schemas of a request, those in one another each as often as it is referred to: a few definitions that refer to two others each come to billions. */
const SCHEMAS_MAX = 10_000;
/** Characters that may be said more than once, of a definition as often as it is referred to and of a union to each of its members: one long list that thousands refer to would come to gigabytes. */
const REPEATED_CHARS_MAX = 262_144;

/** Of all schemas of a request: what may still be converted. */
export interface SchemaBudget {
  schemas: number;
  repeatedChars: number;
  /** Characters of the definitions that were referred to so far. */
  readonly sizes: Map<JsonObject, number>;
}

export function schemaBudget(): SchemaBudget {
  return { schemas: SCHEMAS_MAX, repeatedChars: REPEATED_CHARS_MAX, sizes: new Map() };
}

interface Place {
  readonly root: JsonObject;
  readonly references: number;
  readonly budget: SchemaBudget;
}

function resolveReference(reference: unknown, root: JsonObject): JsonObject | undefined {
  if (typeof reference !== 'string' || !reference.startsWith('#/')) return undefined;
  let at: unknown = root;
  for (const step of reference.slice(2).split('/')) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    at = isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  }
  return isObject(at) ? at : undefined;
}

/** False when there is no room for so many characters more. */
function mayRepeat(chars: number, budget: SchemaBudget): boolean {
  budget.repeatedChars -= chars;
  return budget.repeatedChars >= 0;
}

function sizeOf(definition: JsonObject, { sizes }: SchemaBudget): number {
  let size = sizes.get(definition);
  if (size === undefined) sizes.set(definition, (size = JSON.stringify(definition).length));
  return size;
}

/** `type`, with null apart; undefined when several other types are allowed. */
function typeOf(schema: JsonObject): { readonly type: string; readonly isNullable: boolean } | undefined {
  const told = schema['type'];
  const names = Array.isArray(told) ? (told as readonly unknown[]) : told === undefined ? [] : [told];
  const others = names.filter((name) => name !== 'null');
  const isNullable = others.length < names.length || schema['nullable'] === true;
  if (others.length > 1) return undefined;
  const [name] = others;
  if (name === undefined) return isNullable && names.length > 0 ? undefined : { type: '', isNullable };
  return typeof name === 'string' && Object.hasOwn(TYPES, name) ? { type: TYPES[name] ?? '', isNullable } : undefined;
}

/** Schemas of which one must be met, null apart; undefined when one of them cannot be said. */
function convertAnyOf(value: unknown, place: Place): { readonly members: readonly JsonObject[]; readonly isNullable: boolean } | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  const isNull = (item: unknown): boolean => isObject(item) && item['type'] === 'null';
  const rest = (value as readonly unknown[]).filter((item) => !isNull(item));
  const converted: JsonObject[] = [];
  for (const item of rest) {
    const member = convert(item, place);
    if (member === undefined) return undefined;
    converted.push(member);
  }
  if (converted.length === 0) return undefined;
  const isUnion = (item: JsonObject): item is { readonly anyOf: readonly JsonObject[] } => Array.isArray(item['anyOf']);
  return { members: converted.flatMap((item) => (isUnion(item) ? item.anyOf : [item])), isNullable: rest.length < value.length };
}

/** Vertex refuses whatever stands beside `anyOf`: what is said of all of them is said of each. */
function unionOf(members: readonly JsonObject[], { description, ...about }: JsonObject): JsonObject {
  const told = members.map((member) => {
    const words = [description, member['description']].filter((text) => typeof text === 'string' && text !== '');
    return { ...about, ...member, ...(words.length === 0 ? {} : { description: words.join(' ') }) };
  });
  return told.length === 1 ? (told[0] ?? {}) : { anyOf: told };
}

function convertProperties(value: unknown, place: Place): JsonObject | undefined {
  if (!isObject(value)) return undefined;
  const names = Object.keys(value);
  if (names.length > place.budget.schemas) return undefined;
  const converted: [string, JsonObject][] = [];
  for (const name of names) {
    const property = convert(value[name], place);
    if (property === undefined) return undefined;
    converted.push([name, property]);
  }
  return Object.fromEntries(converted);
}

function convert(schema: unknown, place: Place): JsonObject | undefined {
  place.budget.schemas -= 1;
  if (!isObject(schema) || place.budget.schemas < 0) return undefined;
  if (schema['$ref'] !== undefined) {
    const target = place.references < REFERENCES_MAX ? resolveReference(schema['$ref'], place.root) : undefined;
    if (target === undefined || !mayRepeat(sizeOf(target, place.budget), place.budget)) return undefined;
    const { $ref: _reference, ...siblings } = schema;
    return convert({ ...target, ...siblings }, { ...place, references: place.references + 1 });
  }
  const kind = typeOf(schema);
  if (kind === undefined) return undefined;
  const out: Record<string, unknown> = { ...(kind.type === '' ? {} : { type: kind.type }), ...(kind.isNullable ? { nullable: true } : {}) };
  let union: ReturnType<typeof convertAnyOf>;
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword === 'type' || keyword === 'nullable' || ANNOTATIONS.has(keyword)) continue;
    if (COPIED.has(keyword)) out[keyword] = value;
    else if (keyword === 'format') {
      if (typeof value === 'string' && FORMATS[kind.type]?.includes(value) === true) out['format'] = value;
    } else if (keyword === 'enum' || keyword === 'const') {
      const values = keyword === 'const' ? [value] : value;
      if (kind.type !== 'STRING' || !Array.isArray(values) || !values.every((item) => typeof item === 'string' && item !== '')) return undefined;
      out['enum'] = values;
    } else if (keyword === 'additionalProperties') {
      // Nothing beyond `properties` is generated anyway.
      if (typeof value !== 'boolean') return undefined;
    } else if (keyword === 'properties') {
      const properties = convertProperties(value, place);
      if (properties === undefined) return undefined;
      out['properties'] = properties;
    } else if (keyword === 'items') {
      const items = convert(value, place);
      if (items === undefined) return undefined;
      out['items'] = items;
    } else if (keyword === 'anyOf') {
      union = convertAnyOf(value, place);
      if (union === undefined) return undefined;
      if (union.isNullable) out['nullable'] = true;
    } else return undefined;
  }
  if (union !== undefined) {
    const { type, ...about } = out;
    const isSaidOfEach = union.members.every((member) => type === undefined || member['type'] === type) && Object.keys(about).every((name) => BESIDE_UNIONS.has(name));
    return isSaidOfEach && mayRepeat((union.members.length - 1) * JSON.stringify(about).length, place.budget) ? unionOf(union.members, about) : undefined;
  }
  // Google refuses objects without properties and lists without items.
  if (out['type'] === 'OBJECT' && Object.keys(isObject(out['properties']) ? out['properties'] : {}).length === 0) return undefined;
  if (out['type'] === 'ARRAY' && out['items'] === undefined) return undefined;
  return out['type'] === undefined ? undefined : out;
}

/** undefined when the subset cannot say the same, or the budget is used up. */
export function toOpenApiSchema(schema: JsonObject, budget = schemaBudget()): JsonObject | undefined {
  return convert(schema, { root: schema, references: 0, budget });
}
