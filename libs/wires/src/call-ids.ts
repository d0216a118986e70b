/** Ids of calls for providers that take letters, digits, `_` and `-` alone. */

/** Maps ids, the same for a call and its result; those that fit stay as they are. */
export function createCallIds(charsMax = Infinity): (id: string) => string {
  const told = new Map<string, string>();
  const taken = new Set<string>();
  /** The copy that was tried last, by what ids have in common: each is tried once, however many there are. */
  const copies = new Map<string, number>();
  return (id) => {
    let own = told.get(id);
    if (own === undefined) {
      const base = id.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, charsMax) || 'call';
      own = base;
      let copy = copies.get(base) ?? 0;
      while (taken.has(own)) {
        copy += 1;
        const suffix = `_${String(copy)}`;
        own = `${base.slice(0, charsMax - suffix.length)}${suffix}`;
      }
      copies.set(base, copy);
      taken.add(own);
      told.set(id, own);
    }
    return own;
  };
}
