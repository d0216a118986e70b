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
  /** The best of its endpoints: place in the client's order, then tier, then effective cost. */
  readonly orderPosition: number;
  readonly tier: number;
  /** Nano-USD; a score. */
  readonly cost: number;
}
