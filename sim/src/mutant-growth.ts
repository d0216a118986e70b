/** Broken variants of a worker that makes holds grow, for the mutation run. */
import type { ExtendHold } from '@signalbox/worker-kit/proof';

/** Does not look at the life of the counters in which the growth was given. */
export const inAnyLife = (extendHold: ExtendHold): ExtendHold => (accountId, requestId, toNanoUsd, toTokens, _epoch, draw) => extendHold(accountId, requestId, toNanoUsd, toTokens, '', draw);

/** Takes no answer for a refusal. */
export const refusedWhenAway = (extendHold: ExtendHold): ExtendHold => (...question) => extendHold(...question).catch(() => false);
