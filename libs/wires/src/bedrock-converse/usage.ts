/** `usage` of Converse to disjoint buckets: `inputTokens` is without what the cache read or wrote, save where a stream of OpenAI's models tells it. */
import { isObject, type Usage } from '../canonical.js';
import { tokenCount } from '../token-count.js';

/** An hour's cache is dearer to write than the card says. */
function hasHourWrites(details: unknown): boolean {
  return Array.isArray(details) && (details as readonly unknown[]).some((item) => isObject(item) && item['ttl'] === '1h' && (tokenCount(item['inputTokens']) ?? 0) > 0);
}

/**
 * undefined when there is no usable figure. Thought is counted with the text, and not told apart. `isCacheInside`:
 * `inputTokens` is the whole prompt, and the total counts the cache a second time. Less than the cache alone is the rest
 * after all, as it is documented.
 */
export function readUsage(raw: unknown, isCacheInside = false): Usage | undefined {
  if (!isObject(raw)) return undefined;
  const input = tokenCount(raw['inputTokens']);
  const output = tokenCount(raw['outputTokens']);
  if (input === undefined || output === undefined) return undefined;
  const readTold = tokenCount(raw['cacheReadInputTokens']);
  const cacheRead = readTold ?? 0;
  const cacheWrite = tokenCount(raw['cacheWriteInputTokens']) ?? 0;
  const total = tokenCount(raw['totalTokens']);
  const inputUncached = isCacheInside && input >= cacheRead + cacheWrite ? input - cacheRead - cacheWrite : input;
  const totals = [input + cacheRead + cacheWrite + output, inputUncached + cacheRead + cacheWrite + output];
  return {
    tokens: { inputUncached, cacheRead, cacheWrite, outputText: output, outputReasoning: 0, audio: 0, image: 0 },
    cachedKnown: readTold !== undefined,
    reasoningKnown: false,
    isSuspect: (total !== undefined && !totals.includes(total)) || hasHourWrites(raw['cacheDetails']),
  };
}
