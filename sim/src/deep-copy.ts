/** A deep copy that shares nothing with the original; keeps classes, maps, sets, typed arrays and shared references. */
export function deepCopy<Value>(value: Value): Value {
  return copy(value, new Map()) as Value;
}

function copy(value: unknown, known: Map<object, object>): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const before = known.get(value);
  if (before !== undefined) return before;
  if (ArrayBuffer.isView(value)) return structuredClone(value);
  if (value instanceof Map) {
    const map = new Map<unknown, unknown>();
    known.set(value, map);
    for (const [key, item] of value) map.set(key, copy(item, known));
    return map;
  }
  if (value instanceof Set) {
    const set = new Set<unknown>();
    known.set(value, set);
    for (const item of value) set.add(copy(item, known));
    return set;
  }
  if (Array.isArray(value)) {
    const list: unknown[] = [];
    known.set(value, list);
    for (const item of value) list.push(copy(item, known));
    return list;
  }
  const made = Object.create(Object.getPrototypeOf(value) as object | null) as Record<string, unknown>;
  known.set(value, made);
  for (const [name, item] of Object.entries(value)) made[name] = copy(item, known);
  return made;
}
