/** Ids of calls for providers that take letters, digits, `_` and `-` alone. */

/** Maps ids, the same for a call and its result; those that fit stay as they are. */
export function createCallIds(charsMax = Infinity): (id: string) => string {
  const told = new Map<string, string>();
  const taken = new Set<string>();
  return (id) => {
    let own = told.get(id);
    if (own === undefined) {
      const base = id.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, charsMax) || 'call';
      own = base;
      for (let copy = 1; taken.has(own); copy += 1) {
        const suffix = `_${String(copy)}`;
        own = `${base.slice(0, charsMax - suffix.length)}${suffix}`;
      }
      taken.add(own);
      told.set(id, own);
    }
    return own;
  };
}
