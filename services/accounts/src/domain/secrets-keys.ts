/** Possible readings of SECRETS_KEY values in settings. Trying a wrong one costs only a digest, since a value is recognised by its id. */

/** The value itself, and with and without the final line break that a secret's file or an editor may add. */
export function spellingsOf(value: string): string[] {
  const bare = value.trim();
  return bare === '' ? [] : [...new Set([value, bare, `${bare}\n`, `${bare}\r\n`])];
}

/** All possible values in a comma-separated list, each in every spelling. A value may contain commas itself, so the text between any two commas counts too. */
export function valuesIn(list: string): string[] {
  const parts = list.split(',');
  const runs = parts.flatMap((_part, from) => parts.slice(from).map((_last, length) => parts.slice(from, from + length + 1).join(',')));
  return [...new Set(runs.flatMap(spellingsOf))];
}
