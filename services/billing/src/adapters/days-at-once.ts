/** Sums over all accounts are read some days at a time, so that no statement reads more than it has time for. */

/** With 100,000 keys or accounts some 1.4 GB, which a slow disk gives within the time-out of a statement. */
export const DAYS_AT_ONCE = 7;

/** The days in their order, as many in each part as one statement adds up. */
export function inParts(days: readonly string[]): readonly (readonly [string, ...string[]])[] {
  const parts: [string, ...string[]][] = [];
  for (const [at, day] of days.entries()) if (at % DAYS_AT_ONCE === 0) parts.push([day, ...days.slice(at + 1, at + DAYS_AT_ONCE)]);
  return parts;
}
