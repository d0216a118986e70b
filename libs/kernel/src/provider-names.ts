/**
 * Names of providers as clients write them. Lists written for another gateway must keep their meaning: an unknown name
 * in `ignore` would silently have no effect.
 */

/**
 * Other names of the catalog's providers: OpenRouter's ids, the names in its answers and its own clients, makers that
 * models are named after, and LiteLLM's model prefixes.
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

/** Names that may mean several providers here: a deny list excludes all of them, so that it never excludes too little. */
const WIDER: ReadonlyMap<string, readonly string[]> = new Map([['google', ['google-vertex', 'google-ai-studio']]]);

/** `Amazon Bedrock` becomes `amazon-bedrock`. */
const joined = (name: string): string => name.trim().toLowerCase().replaceAll(' ', '-');

function idOf(name: string): string {
  const id = joined(name);
  // An operator's own ids may have underscores.
  return ELSEWHERE.get(id) ?? ELSEWHERE.get(id.replaceAll('_', '-')) ?? id;
}

/** Converts names to ids of the catalog; unknown names stay unchanged. */
export function providersNamed(names: readonly string[]): readonly string[] {
  return names.length === 0 ? names : names.map(idOf);
}

/** For deny lists: a part of a provider (`deepinfra/turbo`) excludes the whole provider, since parts are not distinguished here. */
export function providersForbidden(names: readonly string[]): readonly string[] {
  return names.length === 0 ? names : names.flatMap((name) => {
    const whole = name.split('/', 1)[0] ?? name;
    return WIDER.get(joined(whole)) ?? idOf(whole);
  });
}
