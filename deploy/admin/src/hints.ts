/** What to do about a refusal that says that something is not there: the command that lists what is. */

const LISTS: readonly (readonly [RegExp, string])[] = [
  [/\b(?:No such|names no) account\.$/, '`account list` shows all.'],
  [/^No such key\.$/, '`key list --account ID` shows those of an account.'],
  [/^No such source\.$/, '`search list` and `book list` show all.'],
  [/^No such writer\.$/, '`watermarks` shows all.'],
  [/^No such event\.$/, '`dead list` shows all.'],
  [/\bnames no provider that this gateway serves\.$/, '`providers` shows all.'],
];

/** `sentence` of the server, and what helps where something does. */
export function withHint(sentence: string): string {
  const hint = LISTS.find(([said]) => said.test(sentence))?.[1];
  return hint === undefined ? sentence : `${sentence} ${hint}`;
}
