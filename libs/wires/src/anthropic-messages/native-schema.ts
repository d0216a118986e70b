/** JSON Schemas as `output_config.format` takes them: closed objects, no bounds on numbers, lengths or counts. */
import { isObject, type JsonObject } from '../canonical.js';

/** Meaning the same here and there. */
const KEPT = new Set(['type', 'description', 'title', 'enum', 'const', 'default', 'required', '$ref']);
/** Not taken there: said in the description instead. The client's own schema is what the answer is held to. */
const BOUNDS = new Set([
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'minLength', 'maxLength', 'pattern', 'format', 'minItems', 'maxItems'],
  ...['uniqueItems', 'minProperties', 'maxProperties', 'examples', '$comment', 'deprecated', 'readOnly', 'writeOnly'],
]);
/** Say nothing about values. */
const NAMES = new Set(['$schema', '$id']);
const DEPTH_MAX = 32;
/** Definitions that lead to one another; a longer way is taken for one without end. */
const REFERENCES_MAX = 256;
/** Schemas in one another: far more than are taken there. Each takes some microseconds, and a client may send 100,000. */
const SCHEMAS_MAX = 10_000;

/** Properties that may be left out, and such of several types, that a request may have: with more it is refused. */
const OPTIONAL_MAX = 24;
const UNIONS_MAX = 16;

/** Thrown inside this module only. */
class Inexpressible extends Error {}

/** What may still be said. */
interface Budget {
  schemas: number;
  optional: number;
  unions: number;
}

function expressibleList(value: unknown, depth: number, budget: Budget): readonly JsonObject[] {
  if (!Array.isArray(value)) throw new Inexpressible();
  return (value as readonly unknown[]).map((item) => express(item, depth, budget));
}

function expressibleMap(value: unknown, depth: number, budget: Budget): JsonObject {
  if (!isObject(value)) throw new Inexpressible();
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, express(item, depth, budget)]));
}

const isUnion = (schema: unknown): boolean => isObject(schema) && (schema['anyOf'] !== undefined || (Array.isArray(schema['type']) && schema['type'].length > 1));

function spendProperties(properties: JsonObject, required: unknown, budget: Budget): void {
  const needed = new Set(Array.isArray(required) ? (required as readonly unknown[]) : []);
  budget.optional -= Object.keys(properties).filter((name) => !needed.has(name)).length;
  budget.unions -= Object.values(properties).filter(isUnion).length;
  if (budget.optional < 0 || budget.unions < 0) throw new Inexpressible();
}

const isFlat = (value: unknown): boolean => typeof value !== 'object' || value === null;

function express(schema: unknown, depth: number, budget: Budget): JsonObject {
  budget.schemas -= 1;
  // A boolean schema, and one that nests without end, have no words there.
  if (!isObject(schema) || depth > DEPTH_MAX || budget.schemas < 0) throw new Inexpressible();
  const told: Record<string, unknown> = {};
  const bounds: string[] = [];
  for (const [name, value] of Object.entries(schema)) {
    if (NAMES.has(name)) continue;
    if (BOUNDS.has(name)) bounds.push(`${name}: ${JSON.stringify(value)}`);
    else if (name === 'properties') {
      const properties = expressibleMap(value, depth + 1, budget);
      spendProperties(properties, schema['required'], budget);
      told[name] = properties;
    } else if (name === '$defs' || name === 'definitions') told[name] = expressibleMap(value, depth + 1, budget);
    else if (name === 'items') told[name] = express(value, depth + 1, budget);
    else if (name === 'anyOf' || name === 'oneOf') told['anyOf'] = expressibleList(value, depth + 1, budget);
    else if (name === 'allOf') told[name] = expressibleList(value, depth + 1, budget);
    else if (name === 'additionalProperties') {
      if (value !== false) throw new Inexpressible();
    } else if (!KEPT.has(name) || (name === '$ref' && !(typeof value === 'string' && value.startsWith('#/')))) throw new Inexpressible();
    else told[name] = value;
  }
  if (Array.isArray(told['enum']) && !(told['enum'] as readonly unknown[]).every(isFlat)) throw new Inexpressible();
  if (!isFlat(told['const'])) throw new Inexpressible();
  const isObjectType = told['type'] === 'object' || (Array.isArray(told['type']) && told['type'].includes('object'));
  if (isObjectType) {
    // An open object would be closed to nothing.
    if (told['properties'] === undefined) throw new Inexpressible();
    told['additionalProperties'] = false;
  }
  if (bounds.length > 0) told['description'] = [told['description'], `{${bounds.join(', ')}}`].filter((part) => typeof part === 'string' && part !== '').join('\n\n');
  return told;
}

/** A reference that leads back to where it stands, or to anything but a definition: refused there. */
function isRecursive(schema: JsonObject): boolean {
  const definitions = new Map<string, string>();
  for (const holder of ['$defs', 'definitions'] as const) {
    const defined = schema[holder];
    if (isObject(defined)) for (const [name, value] of Object.entries(defined)) definitions.set(`#/${holder}/${name}`, JSON.stringify(value));
  }
  const state = new Map<string, 'open' | 'done'>();
  const leadsBack = (text: string, way: number): boolean =>
    [...text.matchAll(/"\$ref":"([^"]*)"/g)].some(([, ref = '']) => {
      const definition = definitions.get(ref);
      if (definition === undefined || state.get(ref) === 'open' || way >= REFERENCES_MAX) return true;
      if (state.get(ref) === 'done') return false;
      state.set(ref, 'open');
      const isBack = leadsBack(definition, way + 1);
      state.set(ref, 'done');
      return isBack;
    });
  return leadsBack(JSON.stringify(schema), 0);
}

/** undefined when it cannot be said there without changing what the answer may be. */
export function nativeSchema(schema: JsonObject): JsonObject | undefined {
  try {
    const told = express(schema, 0, { schemas: SCHEMAS_MAX, optional: OPTIONAL_MAX, unions: UNIONS_MAX });
    return isRecursive(schema) ? undefined : told;
  } catch (error) {
    if (error instanceof Inexpressible) return undefined;
    throw error;
  }
}
