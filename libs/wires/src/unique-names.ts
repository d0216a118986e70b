/** Names that a provider wants each once in a request. */

/** Copies of a base that are tried in turn; beyond them one that nobody tried yet. */
const TRIES_IN_TURN = 16;

/**
 * Answers `base` at its first use and `copyOf(base, n)` afterwards, n counting up from `firstCopy` past what is taken. One
 * pass, however often a base comes again, and however many bases have copies in common, as cut ones do: a request has tens
 * of thousands of them if its writer likes.
 */
export function createUniqueNames(firstCopy: number, copyOf: (base: string, copy: number) => string): (base: string) => string {
  const taken = new Set<string>();
  /** Next copy to try, by base. */
  const next = new Map<string, number>();
  /** Above every copy that was tried: each from here on is tried once, and taken by one name at most. */
  let untried = firstCopy;
  return (base) => {
    let own = base;
    let copy = next.get(base) ?? firstCopy;
    for (let tries = 0; taken.has(own); tries += 1) {
      if (tries === TRIES_IN_TURN) copy = untried;
      own = copyOf(base, copy);
      copy += 1;
      untried = Math.max(untried, copy);
    }
    next.set(base, copy);
    taken.add(own);
    return own;
  };
}
