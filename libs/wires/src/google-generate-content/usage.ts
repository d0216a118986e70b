/** `usageMetadata` to disjoint buckets. */
import { isObject, type Usage } from '../canonical.js';
import { tokenCount } from '../token-count.js';

/** Tokens of one kind of medium. */
function ofModality(details: unknown, modality: string): number {
  if (!Array.isArray(details)) return 0;
  return (details as readonly unknown[]).reduce<number>((sum, item) => (isObject(item) && item['modality'] === modality ? sum + (tokenCount(item['tokenCount']) ?? 0) : sum), 0);
}

/**
 * The prompt includes what came from the cache; candidates leave thoughts out, except where the total says that they
 * are in. undefined when there is no usable figure.
 */
export function readUsage(raw: unknown): Usage | undefined {
  if (!isObject(raw)) return undefined;
  const told = tokenCount(raw['promptTokenCount']);
  if (told === undefined) return undefined;
  const prompt = told + (tokenCount(raw['toolUsePromptTokenCount']) ?? 0);
  const candidates = tokenCount(raw['candidatesTokenCount']) ?? 0;
  const thoughtsTold = tokenCount(raw['thoughtsTokenCount']);
  const thoughts = thoughtsTold ?? 0;
  const total = tokenCount(raw['totalTokenCount']);
  const areThoughtsInside = thoughts > 0 && thoughts <= candidates && total === prompt + candidates;
  const outputText = areThoughtsInside ? candidates - thoughts : candidates;
  const cachedTold = tokenCount(raw['cachedContentTokenCount']);
  const cacheRead = Math.min(cachedTold ?? 0, prompt);
  const uncachedOf = (modality: string, room: number): number => Math.min(room, Math.max(0, ofModality(raw['promptTokensDetails'], modality) - ofModality(raw['cacheTokensDetails'], modality)));
  const audio = uncachedOf('AUDIO', prompt - cacheRead);
  const image = uncachedOf('IMAGE', prompt - cacheRead - audio);
  return {
    tokens: { inputUncached: prompt - cacheRead - audio - image, cacheRead, cacheWrite: 0, outputText, outputReasoning: thoughts, audio, image },
    cachedKnown: cachedTold !== undefined,
    reasoningKnown: thoughtsTold !== undefined,
    // What a model draws or says aloud is dearer than text: its price is not in the card.
    isSuspect: (cachedTold ?? 0) > prompt || (total !== undefined && total !== prompt + outputText + thoughts) || ['IMAGE', 'AUDIO'].some((modality) => ofModality(raw['candidatesTokensDetails'], modality) > 0),
  };
}
