/** Numbers that a log has left out: records are counted without them. */

/**
 * Of sequences after an end that was not orderly: more than anybody writes between two syncs of a slow disk. The ledger may
 * still come to know numbers that the log has lost, and would take what is written under them for booked.
 */
export const LEAP = 1_000_000;

export class Leaps {
  private readonly spans: { readonly first: number; readonly last: number }[] = [];

  /** `next` was given right after `before`: what lies between them is nobody's, if it is as much as a leap. */
  note(before: number, next: number): void {
    if (next - before > LEAP) this.spans.push({ first: before + 1, last: next - 1 });
  }

  /** Sequences above `after` and up to `upTo` that may be records. */
  between(after: number, upTo: number): number {
    let count = Math.max(0, upTo - after);
    for (const { first, last } of this.spans) count -= Math.max(0, Math.min(last, upTo) - Math.max(first - 1, after));
    return count;
  }
}
