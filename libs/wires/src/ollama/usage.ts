/** Token counts of Ollama's last message to disjoint buckets. */
import type { JsonObject, Usage } from '../canonical.js';
import { tokenCount } from '../token-count.js';

/** undefined when either figure is missing or no count: a prompt that was still in memory is not counted there. Explicit zeros are figures. */
export function readUsage(last: JsonObject): Usage | undefined {
  const prompt = tokenCount(last['prompt_eval_count']);
  const output = tokenCount(last['eval_count']);
  if (prompt === undefined || output === undefined) return undefined;
  return { tokens: { inputUncached: prompt, cacheRead: 0, cacheWrite: 0, outputText: output, outputReasoning: 0, audio: 0, image: 0 }, cachedKnown: false, reasoningKnown: false, isSuspect: false };
}

/** True when there are figures, and they cannot be token counts. */
export function isUsageUnreadable(last: JsonObject): boolean {
  return [last['prompt_eval_count'], last['eval_count']].some((told) => told !== undefined && told !== null && tokenCount(told) === undefined);
}
