/** `usage` of Converse to disjoint buckets: `inputTokens` is already without what the cache read or wrote. */
import { isObject, type Usage } from '../canonical.js';
import { tokenCount } from '../token-count.js';

/** An hour's cache is dearer to write than the card says. */
function hasHourWrites(details: unknown): boolean {
  return Array.isArray(details) && (details as readonly unknown[]).some((item) => isObject(item) && item['ttl'] === '1h' && (tokenCount(item['inputTokens']) ?? 0) > 0);
}

/** undefined when there is no usable figure. Thought is counted with the text, and not told apart. */
export function readUsage(raw: unknown): Usage | undefined {
  if (!isObject(raw)) return undefined;
  const input = tokenCount(raw['inputTokens']);
  const output = tokenCount(raw['outputTokens']);
  if (input === undefined || output === undefined) return undefined;
  const readTold = tokenCount(raw['cacheReadInputTokens']);
  const cacheRead = readTold ?? 0;
  const cacheWrite = tokenCount(raw['cacheWriteInputTokens']) ?? 0;
  const total = tokenCount(raw['totalTokens']);
  return {
    tokens: { inputUncached: input, cacheRead, cacheWrite, outputText: output, outputReasoning: 0, audio: 0, image: 0 },
    cachedKnown: readTold !== undefined,
    reasoningKnown: false,
    isSuspect: (total !== undefined && total !== input + cacheRead + cacheWrite + output) || hasHourWrites(raw['cacheDetails']),
  };
}
