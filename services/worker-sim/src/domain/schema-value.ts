/** Makes a small value that conforms to a JSON schema: first alternatives, shortest lists, all required fields. */
import { isObject } from '@signalbox/kernel/json-object';

const DEPTH_MAX = 16;

function textFor(schema: Readonly<Record<string, unknown>>): string {
  const formats: Readonly<Record<string, string>> = { date: '2026-01-01', 'date-time': '2026-01-01T00:00:00Z', email: 'simulator@example.com', uri: 'https://example.com/', uuid: '00000000-0000-4000-8000-000000000000', time: '00:00:00Z' };
  const format = typeof schema['format'] === 'string' ? formats[schema['format']] : undefined;
  const minimum = typeof schema['minLength'] === 'number' ? schema['minLength'] : 0;
  const maximum = typeof schema['maxLength'] === 'number' ? schema['maxLength'] : Infinity;
  const text = (format ?? 'simulated').padEnd(Math.min(minimum, 10_000), '.');
  return text.length > maximum ? text.slice(0, maximum) : text;
}

function numberFor(schema: Readonly<Record<string, unknown>>, isWhole: boolean): number {
  const told = (name: string): number | undefined => (typeof schema[name] === 'number' ? schema[name] : undefined);
  const step = told('multipleOf') ?? (isWhole ? 1 : 0);
  const above = told('exclusiveMinimum');
  // 1 if it is allowed: some clients always write the smallest safe integer as the minimum, which makes a poor example.
  let value = Math.max(1, told('minimum') ?? -Infinity, above === undefined ? -Infinity : above + (step || 0.5));
  const ceiling = told('maximum') ?? (told('exclusiveMaximum') === undefined ? undefined : (told('exclusiveMaximum') ?? 0) - (step || 0.5));
  if (ceiling !== undefined && value > ceiling) value = ceiling;
  return step > 0 ? Math.ceil(value / step) * step : value;
}

/** `root` resolves `#/…` references. Never throws; a schema that it cannot read gives null. */
export function valueForSchema(schema: unknown, root: unknown = schema, depth = 0): unknown {
  if (!isObject(schema) || depth > DEPTH_MAX) return schema === true ? {} : null;
  if (typeof schema['$ref'] === 'string' && schema['$ref'].startsWith('#')) {
    let target: unknown = root;
    for (const step of schema['$ref'].split('/').slice(1)) target = isObject(target) ? target[step.replace(/~1/g, '/').replace(/~0/g, '~')] : undefined;
    return valueForSchema(target, root, depth + 1);
  }
  if ('const' in schema) return schema['const'];
  if (Array.isArray(schema['enum'])) return schema['enum'][0] ?? null;
  for (const word of ['anyOf', 'oneOf'] as const) if (Array.isArray(schema[word])) return valueForSchema(schema[word][0], root, depth + 1);
  if (Array.isArray(schema['allOf'])) {
    const parts = (schema['allOf'] as readonly unknown[]).map((part) => valueForSchema(part, root, depth + 1));
    return parts.every(isObject) ? Object.assign({}, ...parts) : parts[0];
  }
  const type: unknown = Array.isArray(schema['type']) ? schema['type'][0] : schema['type'];
  if (type === 'object' || isObject(schema['properties'])) {
    const properties = isObject(schema['properties']) ? schema['properties'] : {};
    const required = Array.isArray(schema['required']) ? schema['required'].filter((name): name is string => typeof name === 'string') : Object.keys(properties);
    return Object.fromEntries(required.map((name) => [name, valueForSchema(properties[name], root, depth + 1)]));
  }
  switch (type) {
    case 'array':
      return Array.from({ length: Math.min(100, typeof schema['minItems'] === 'number' ? schema['minItems'] : 1) }, () => valueForSchema(schema['items'] ?? { type: 'string' }, root, depth + 1));
    case 'string':
      return textFor(schema);
    case 'integer':
      return numberFor(schema, true);
    case 'number':
      return numberFor(schema, false);
    case 'boolean':
      return true;
    case 'null':
      return null;
    default:
      return 'simulated';
  }
}
