/**
 * What hosts lack whatever their models can, by the catalog's ids of providers: they refuse a field, answer it in a shape
 * of their own, or their worker leaves it out. Requests that need one go elsewhere; where it only tunes an answer the
 * client is told. Beside it stand the catalog's `unsupported_params`.
 */

/** `logprobs` and `top_logprobs`. */
export const NO_LOGPROBS_PROVIDERS: ReadonlySet<string> = new Set(['groq', 'mistral', 'perplexity', 'together', 'xiaomi', 'zai']);
/** The model alone decides whether a tool is called. */
export const AUTO_TOOL_CHOICE_PROVIDERS: ReadonlySet<string> = new Set(['moonshot', 'zai']);
/** The other way round: known to take `n` above 1. */
export const CHOICES_PROVIDERS: ReadonlySet<string> = new Set(['openai', 'azure-openai', 'mistral', 'together', 'fireworks', 'deepinfra', 'vllm', 'simulator']);
/** They take one stop sequence. */
export const ONE_STOP_PROVIDERS: ReadonlySet<string> = new Set(['zai']);
/** `parallel_tool_calls`: their models may make several calls at once. */
export const NO_SINGLE_CALLS_PROVIDERS: ReadonlySet<string> = new Set(['zai']);
