/** Sequence numbers that a log has skipped; records are counted without them. */

/**
 * Sequences skipped after an unclean shutdown: more than anybody writes between two syncs of a slow disk. The ledger may have,
 * or still receive, records that the log lost. It would take new records with the same numbers for already booked.
 */
export const LEAP = 1_000_000;

export class Leaps {
  private readonly spans: { readonly first: number; readonly last: number }[] = [];

  /** `next` directly followed `before`: the numbers between were skipped, if the gap is as large as a leap. */
  note(before: number, next: number): void {
    if (next - before > LEAP) this.spans.push({ first: before + 1, last: next - 1 });
  }

  /** Number of sequences above `after`, up to and including `upTo`, that may be records. */
  between(after: number, upTo: number): number {
    let count = Math.max(0, upTo - after);
    for (const { first, last } of this.spans) count -= Math.max(0, Math.min(last, upTo) - Math.max(first - 1, after));
    return count;
  }
}
