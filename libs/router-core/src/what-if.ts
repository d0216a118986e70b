/** Recorded decisions beside those of another policy, price list or catalog: without prompts and without calls (ROUTING, section 7). */
import type { Catalog } from './catalog.js';
import { expectedOf, replay, type Changes, type DecisionRecord, type Expected } from './record.js';

/** Sums of expectations in nano-USD, never billed, over the decisions that both sides have a plan for. */
export interface Side {
  readonly cost: number;
  readonly quality: number;
  /** Against each side's own reference. */
  readonly savings: number;
  /** Requests by the model that comes first. */
  readonly models: ReadonlyMap<string, number>;
}

export interface Comparison {
  readonly compared: number;
  /** Another model comes first. */
  readonly moved: number;
  /** Only the changed side has no plan. */
  readonly refused: number;
  /** Pinned models, and what was refused then. */
  readonly skipped: number;
  readonly recorded: Side;
  readonly changed: Side;
}

interface OpenSide {
  cost: number;
  quality: number;
  savings: number;
  readonly models: Map<string, number>;
}

function add(side: OpenSide, expected: Expected): void {
  side.cost += expected.cost ?? 0;
  side.quality += expected.quality ?? 0;
  side.savings += expected.savings ?? 0;
  if (expected.model !== undefined) side.models.set(expected.model, (side.models.get(expected.model) ?? 0) + 1);
}

/**
 * Decides each record as it was in `before` and with the changes in `after`. Both sides are weighed by the prediction that
 * the record holds, so the difference is the policy's or the catalog's alone.
 */
export function whatIf(records: Iterable<DecisionRecord>, before: (record: DecisionRecord) => Catalog, after: Catalog, changes: Changes): Comparison {
  const recorded: OpenSide = { cost: 0, quality: 0, savings: 0, models: new Map() };
  const changed: OpenSide = { cost: 0, quality: 0, savings: 0, models: new Map() };
  let [compared, moved, refused, skipped] = [0, 0, 0, 0];
  for (const record of records) {
    const then = expectedOf(replay(record, before(record)));
    if (then.model === undefined) {
      skipped += 1;
      continue;
    }
    const now = expectedOf(replay(record, after, changes));
    if (now.model === undefined) {
      refused += 1;
      continue;
    }
    compared += 1;
    if (now.model !== then.model) moved += 1;
    add(recorded, then);
    add(changed, now);
  }
  return { compared, moved, refused, skipped, recorded, changed };
}
