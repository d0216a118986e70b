/** Values of SECRETS_KEY as they may stand in settings. What is tried in vain costs a digest: whatever a value is, its id tells. */

/** As it stands, and with or without the line break that a file of a secret, or an editor of one, leaves behind it. */
export function spellingsOf(value: string): string[] {
  const bare = value.trim();
  return bare === '' ? [] : [...new Set([value, bare, `${bare}\n`, `${bare}\r\n`])];
}

/** Of values with commas between them, each in every spelling. A value may have commas itself, so all that stands between any two is one too. */
export function valuesIn(list: string): string[] {
  const parts = list.split(',');
  const runs = parts.flatMap((_part, from) => parts.slice(from).map((_last, length) => parts.slice(from, from + length + 1).join(',')));
  return [...new Set(runs.flatMap(spellingsOf))];
}
