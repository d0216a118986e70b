/**
 * Names of providers as clients write them. Lists that come along from another gateway must keep their meaning: an
 * `ignore` whose name is not known here would be passed over without a word.
 */

/** OpenRouter's names, where they are others: its ids, and the words that its answers and its own clients call the same providers by. */
const ELSEWHERE: ReadonlyMap<string, string> = new Map([
  ['azure', 'azure-openai'],
  ['google', 'google-vertex'],
  ['moonshotai', 'moonshot'],
  ['moonshot-ai', 'moonshot'],
  ['z-ai', 'zai'],
  ['z.ai', 'zai'],
]);

/** A name that may mean more than one here: a list that forbids leaves out all of them, so that a wish is never read too narrowly. */
const WIDER: ReadonlyMap<string, readonly string[]> = new Map([['google', ['google-vertex', 'google-ai-studio']]]);

/** `Amazon Bedrock` is `amazon-bedrock`. */
const joined = (name: string): string => name.trim().toLowerCase().replaceAll(' ', '-');

function idOf(name: string): string {
  const id = joined(name);
  return ELSEWHERE.get(id) ?? id;
}

/** Ids of the catalog; what it does not have stays as it is. */
export function providersNamed(names: readonly string[]): readonly string[] {
  return names.length === 0 ? names : names.map(idOf);
}

/** Of a list that forbids: a part of a provider (`deepinfra/turbo`) forbids all of it, since parts are not told apart here. */
export function providersForbidden(names: readonly string[]): readonly string[] {
  return names.length === 0 ? names : names.flatMap((name) => {
    const whole = name.split('/', 1)[0] ?? name;
    return WIDER.get(joined(whole)) ?? idOf(whole);
  });
}
