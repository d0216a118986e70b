/**
 * Names of providers as clients write them. Lists that come along from another gateway must keep their meaning: an
 * `ignore` whose name is not known here would be passed over without a word.
 */

/** OpenRouter's names, where they are others. */
const ELSEWHERE: ReadonlyMap<string, string> = new Map([
  ['azure', 'azure-openai'],
  ['moonshotai', 'moonshot'],
  ['z-ai', 'zai'],
]);

function idOf(name: string): string {
  const lower = name.toLowerCase();
  return ELSEWHERE.get(lower) ?? lower;
}

/** Ids of the catalog; what it does not have stays as it is. */
export function providersNamed(names: readonly string[]): readonly string[] {
  return names.length === 0 ? names : names.map(idOf);
}

/** Of a list that forbids: a part of a provider (`deepinfra/turbo`) forbids all of it, since parts are not told apart here. */
export function providersForbidden(names: readonly string[]): readonly string[] {
  return names.length === 0 ? names : names.map((name) => idOf(name.split('/', 1)[0] ?? name));
}
