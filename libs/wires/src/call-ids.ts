/** Ids of calls for providers that take letters, digits, `_` and `-` alone. */
import { createUniqueNames } from './unique-names.js';

/** Maps ids, the same for a call and its result; those that fit stay as they are. */
export function createCallIds(charsMax = Infinity): (id: string) => string {
  const told = new Map<string, string>();
  const unique = createUniqueNames(1, (base, copy) => {
    const suffix = `_${String(copy)}`;
    return `${base.slice(0, charsMax - suffix.length)}${suffix}`;
  });
  return (id) => {
    let own = told.get(id);
    if (own === undefined) told.set(id, (own = unique(id.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, charsMax) || 'call')));
    return own;
  };
}
