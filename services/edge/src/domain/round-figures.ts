/** What the rounds of one request come to. */
import type { End__Output } from '@signalbox/contracts/worker';
import { NO_TOKENS, type TokenCounts } from '@signalbox/kernel/tokens';

const added = (a: TokenCounts, b: TokenCounts): TokenCounts => ({
  inputUncached: a.inputUncached + b.inputUncached, cacheRead: a.cacheRead + b.cacheRead, cacheWrite: a.cacheWrite + b.cacheWrite, outputText: a.outputText + b.outputText,
  outputReasoning: a.outputReasoning + b.outputReasoning, audio: a.audio + b.audio, image: a.image + b.image,
});

/** Figures of all rounds together; the rest is the last one's. */
export function summed(ends: readonly End__Output[], last: End__Output): End__Output {
  const all = [...ends, last];
  return {
    ...last,
    tokens: all.reduce((sum: TokenCounts, { tokens }) => added(sum, tokens ?? NO_TOKENS), NO_TOKENS),
    costNanoUsd: String(all.reduce((sum, { costNanoUsd }) => sum + BigInt(costNanoUsd), 0n)),
    savingsNanoUsd: String(all.reduce((sum, { savingsNanoUsd }) => sum + BigInt(savingsNanoUsd), 0n)),
    source: all.find(({ source }) => source !== 'PROVIDER')?.source ?? last.source,
    flags: [...new Set(all.flatMap(({ flags }) => flags))],
    cachedKnown: all.every(({ cachedKnown }) => cachedKnown),
    reasoningKnown: all.every(({ reasoningKnown }) => reasoningKnown),
  };
}
