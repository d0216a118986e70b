/** `usage` of the OpenAI wire to disjoint buckets. */
import { roundedNano, type NanoUsd } from '@signalbox/kernel/money';
import { ATTEMPT_COST_NANO_USD_MAX } from '@signalbox/kernel/tokens';
import { isObject, type JsonObject, type Usage } from '../canonical.js';
import { tokenCount as count } from '../token-count.js';

/** Whether the figures are those of Perplexity's research, which alone tells thoughts beside what it read: it bills both beside the prompt and the completion, and leaves them out of the total. */
function isOfResearch(raw: JsonObject): boolean {
  return count(raw['reasoning_tokens']) !== undefined && (count(raw['citation_tokens']) ?? count(raw['num_search_queries'])) !== undefined;
}

/** `cost` of a host that takes dollars by what it says there; undefined for what the ledger could not book. */
function costOf(told: unknown): NanoUsd | undefined {
  if (typeof told !== 'number' || !Number.isFinite(told) || told < 0) return undefined;
  const cost = roundedNano(told);
  return cost <= ATTEMPT_COST_NANO_USD_MAX ? cost : undefined;
}

/** undefined when there is no usable figure: the caller estimates. Explicit zeros are figures. `tellsCost`: the host's `cost` is what it takes, in dollars. */
export function readUsage(raw: unknown, tellsCost = false): Usage | undefined {
  if (!isObject(raw)) return undefined;
  const told = count(raw['prompt_tokens']);
  const completion = count(raw['completion_tokens']);
  if (told === undefined || completion === undefined) return undefined;
  const isResearch = isOfResearch(raw);
  const prompt = told + (isResearch ? (count(raw['citation_tokens']) ?? 0) : 0);
  const promptDetails = [raw['prompt_tokens_details'], raw['prompt_token_details']].find(isObject) ?? {};
  const completionDetails = isObject(raw['completion_tokens_details']) ? raw['completion_tokens_details'] : {};
  // DeepSeek tells hits at the top level; Moonshot `cached_tokens`; Mistral's reference has the details under either name, and `num_cached_tokens`.
  const cachedTold = count(promptDetails['cached_tokens']) ?? count(raw['prompt_cache_hit_tokens']) ?? count(raw['cached_tokens']) ?? count(raw['num_cached_tokens']);
  const reasoningTold = count(completionDetails['reasoning_tokens']) ?? count(raw['reasoning_tokens']);
  const total = count(raw['total_tokens']);
  // xAI leaves reasoning out of completion_tokens; its total shows it.
  const isReasoningOutside = reasoningTold !== undefined && reasoningTold > 0 && (isResearch || total === prompt + completion + reasoningTold);
  const output = isReasoningOutside ? completion + reasoningTold : completion;
  const cacheRead = Math.min(cachedTold ?? 0, prompt);
  // OpenRouter and Alibaba tell what a cache took up, too.
  const writtenTold = count(promptDetails['cache_write_tokens']) ?? count(promptDetails['cache_creation_input_tokens']) ?? 0;
  const cacheWrite = Math.min(writtenTold, prompt - cacheRead);
  const audioTold = count(promptDetails['audio_tokens']) ?? 0;
  const audio = Math.min(audioTold, prompt - cacheRead - cacheWrite);
  const outputReasoning = Math.min(reasoningTold ?? 0, output);
  return {
    tokens: { inputUncached: prompt - cacheRead - cacheWrite - audio, cacheRead, cacheWrite, outputText: output - outputReasoning, outputReasoning, audio, image: 0 },
    cachedKnown: cachedTold !== undefined,
    reasoningKnown: reasoningTold !== undefined,
    isSuspect: (cachedTold ?? 0) + writtenTold > prompt || (reasoningTold ?? 0) > output,
    ...(tellsCost ? { costNanoUsd: costOf(raw['cost']) } : {}),
  };
}
