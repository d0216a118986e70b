import type { Model } from './catalog.js';
import type { Candidate } from './rank.js';

/** A model with its eligible endpoints, as `auto` sees it. */
export interface ModelGroup {
  readonly model: Model;
  readonly candidates: readonly Candidate[];
  /** Predicted, in [0, 1]. */
  readonly quality: number;
  /** Standard deviation of its log-odds. */
  readonly deviation: number;
  readonly outputTokens: number;
  /** Of its endpoints the first by place in the client's order, then on the account's own credential, then by tier, then by effective cost. */
  readonly best: Candidate;
  /** Of `best`, as all below. */
  readonly orderPosition: number;
  readonly tier: number;
  /** Nano-USD; a score. */
  readonly cost: number;
}
