/** Cohere's `usage` to disjoint buckets. */
import { isObject, type Usage } from '../canonical.js';
import { tokenCount } from '../token-count.js';

interface Pair {
  readonly input: number;
  readonly output: number;
}

function pairOf(raw: unknown): Pair | undefined {
  if (!isObject(raw)) return undefined;
  const input = tokenCount(raw['input_tokens']);
  const output = tokenCount(raw['output_tokens']);
  return input === undefined || output === undefined ? undefined : { input, output };
}

/** Billed units, which leave out what Cohere adds to a prompt by itself; tokens where they are not told. undefined when there is no usable figure. */
export function readUsage(raw: unknown): Usage | undefined {
  if (!isObject(raw)) return undefined;
  const real = pairOf(raw['tokens']);
  const counted = pairOf(raw['billed_units']) ?? real;
  if (counted === undefined) return undefined;
  const cachedTold = tokenCount(raw['cached_tokens']);
  // Hits are counted in the whole prompt, which is longer than what is billed.
  const cacheRead = Math.min(cachedTold ?? 0, counted.input);
  return {
    tokens: { inputUncached: counted.input - cacheRead, cacheRead, cacheWrite: 0, outputText: counted.output, outputReasoning: 0, audio: 0, image: 0 },
    cachedKnown: cachedTold !== undefined,
    reasoningKnown: false,
    isSuspect: (cachedTold ?? 0) > Math.max(counted.input, real?.input ?? 0),
  };
}
