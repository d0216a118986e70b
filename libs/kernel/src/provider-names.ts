/**
 * Names of providers as clients write them. Lists that come along from another gateway must keep their meaning: an
 * `ignore` whose name is not known here would be passed over without a word.
 */

/**
 * Names that others have for providers of the catalog: OpenRouter's ids, the words that its answers and its own clients
 * call the same providers by, makers as the models are named after them, and what LiteLLM writes before a model.
 */
const ELSEWHERE: ReadonlyMap<string, string> = new Map([
  ['azure', 'azure-openai'],
  ['azure-ai', 'azure-openai'],
  ['azure-text', 'azure-openai'],
  ['bedrock', 'amazon-bedrock'],
  ['bedrock-converse', 'amazon-bedrock'],
  ['codestral', 'mistral'],
  ['cohere-chat', 'cohere'],
  ['dashscope', 'alibaba'],
  ['fireworks-ai', 'fireworks'],
  ['gemini', 'google-ai-studio'],
  ['google', 'google-vertex'],
  ['hosted-vllm', 'vllm'],
  ['meta-llama', 'meta'],
  ['mistralai', 'mistral'],
  ['moonshotai', 'moonshot'],
  ['moonshot-ai', 'moonshot'],
  ['ollama-chat', 'ollama'],
  ['together-ai', 'together'],
  ['vertex-ai', 'google-vertex'],
  ['vertex-ai-beta', 'google-vertex'],
  ['x-ai', 'xai'],
  ['xiaomi-mimo', 'xiaomi'],
  ['z-ai', 'zai'],
  ['z.ai', 'zai'],
]);

/** A name that may mean more than one here: a list that forbids leaves out all of them, so that a wish is never read too narrowly. */
const WIDER: ReadonlyMap<string, readonly string[]> = new Map([['google', ['google-vertex', 'google-ai-studio']]]);

/** `Amazon Bedrock` is `amazon-bedrock`. */
const joined = (name: string): string => name.trim().toLowerCase().replaceAll(' ', '-');

function idOf(name: string): string {
  const id = joined(name);
  // An operator's own ids may have underscores.
  return ELSEWHERE.get(id) ?? ELSEWHERE.get(id.replaceAll('_', '-')) ?? id;
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
