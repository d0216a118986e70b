/** Headers that hold one value: node:http joins two of them with a comma, and the two would be read as a third. */

/** `rawHeaders` alternates names and values; `name` in lower case. */
export function isGivenTwice(rawHeaders: readonly string[], name: string): boolean {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const given = rawHeaders[i];
    if (given?.length === name.length && given.toLowerCase() === name) count += 1;
  }
  return count > 1;
}
