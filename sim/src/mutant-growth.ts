/** Broken variants of a worker that extends holds, for the mutation run. */
import type { ExtendHold } from '@signalbox/worker-kit/proof';

/** Ignores the epoch of the counters in which the growth was granted. */
export const inAnyLife = (extendHold: ExtendHold): ExtendHold => (accountId, requestId, toNanoUsd, toTokens, _epoch, draw) => extendHold(accountId, requestId, toNanoUsd, toTokens, '', draw);

/** Treats a missing answer as a refusal. */
export const refusedWhenAway = (extendHold: ExtendHold): ExtendHold => (...question) => extendHold(...question).catch(() => false);
