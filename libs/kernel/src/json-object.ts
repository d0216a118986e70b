/** Of values that came as JSON. */

export type JsonObject = Readonly<Record<string, unknown>>;

/** Neither null nor a list. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
