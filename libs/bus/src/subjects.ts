/** Subject patterns, alike for every transport. */

/** True when `subject` fits `pattern`: `*` is one token, `>` one or more at the end. */
export function subjectMatches(pattern: string, subject: string): boolean {
  const wanted = pattern.split('.');
  const tokens = subject.split('.');
  for (const [index, token] of wanted.entries()) {
    if (token === '>') return tokens.length > index;
    const actual = tokens[index];
    if (actual === undefined || (token !== '*' && token !== actual)) return false;
  }
  return wanted.length === tokens.length;
}

/** Where messages go that no delivery could handle, kept for a person to look at. */
export function deadLetterSubject(subject: string): string {
  return `dlq.v1.${subject}`;
}

/** After this many deliveries to a handler that fails and does not say why a message is poison. */
export const DELIVERIES_MAX = 5;
