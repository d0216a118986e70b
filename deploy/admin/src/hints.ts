/** Hints for refusals that say that something does not exist: the command that lists what exists. */

const LISTS: readonly (readonly [RegExp, string])[] = [
  [/\b(?:No such|names no) account\.$/, '`account list` shows all.'],
  [/^No such key\.$/, '`key list --account ID` shows those of an account.'],
  [/^No such source\.$/, '`search list` and `book list` show all.'],
  [/^No such writer\.$/, '`watermarks` shows all.'],
  [/^No such event\.$/, '`dead list` shows all.'],
  [/\bnames no provider that this gateway serves\.$/, '`providers` shows all.'],
];

/** The server's `sentence`, with a hint if there is one. */
export function withHint(sentence: string): string {
  const hint = LISTS.find(([said]) => said.test(sentence))?.[1];
  return hint === undefined ? sentence : `${sentence} ${hint}`;
}
