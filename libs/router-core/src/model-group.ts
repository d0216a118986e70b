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
  /** The first of its endpoints by the client's order, then the account's own credential, then tier, then effective cost. */
  readonly best: Candidate;
  /** Of `best`, like all fields below. */
  readonly orderPosition: number;
  readonly tier: number;
  /** Nano-USD; a score for ordering. */
  readonly cost: number;
}
