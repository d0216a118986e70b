/**
 * Fields that a host does not support whatever its models can do, by provider id: the host refuses the field, answers in
 * its own format, or the worker leaves the field out. Requests that need such a field go elsewhere; if it only tunes the
 * answer, the client is told. The catalog's `unsupported_params` adds to these.
 */

/** `logprobs` and `top_logprobs`. */
export const NO_LOGPROBS_PROVIDERS: ReadonlySet<string> = new Set(['groq', 'mistral', 'perplexity', 'together', 'xiaomi', 'zai']);
/** `tool_choice` other than `auto` is not supported: the model decides whether to call a tool. */
export const AUTO_TOOL_CHOICE_PROVIDERS: ReadonlySet<string> = new Set(['moonshot', 'zai']);
/** The reverse: hosts known to accept `n` above 1. */
export const CHOICES_PROVIDERS: ReadonlySet<string> = new Set(['openai', 'azure-openai', 'mistral', 'together', 'fireworks', 'deepinfra', 'vllm', 'simulator']);
/** Only one stop sequence is accepted. */
export const ONE_STOP_PROVIDERS: ReadonlySet<string> = new Set(['zai']);
/** `parallel_tool_calls: false` is not supported: models may make several calls at once. */
export const NO_SINGLE_CALLS_PROVIDERS: ReadonlySet<string> = new Set(['zai']);
