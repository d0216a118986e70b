/** Names that a provider wants each once in a request. */

/**
 * Answers `base` at its first use and `copyOf(base, n)` afterwards, n counting up from `firstCopy` past what is taken. One
 * pass, however often a base comes again: a request has tens of thousands of them if its writer likes.
 */
export function createUniqueNames(firstCopy: number, copyOf: (base: string, copy: number) => string): (base: string) => string {
  const taken = new Set<string>();
  /** Next copy to try, by base. */
  const next = new Map<string, number>();
  return (base) => {
    let own = base;
    let copy = next.get(base) ?? firstCopy;
    while (taken.has(own)) {
      own = copyOf(base, copy);
      copy += 1;
    }
    next.set(base, copy);
    taken.add(own);
    return own;
  };
}
